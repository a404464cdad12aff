"""A litellm hook: what asks for ``saverouter/auto`` is answered by the model that a saved router chooses."""

import asyncio
import json
import logging
import os

from litellm.integrations.custom_logger import CustomLogger

import saverouter as sr

VIRTUAL, HEADER = "saverouter/auto", "x-saverouter-model"
# What asks a model for text, as litellm calls it; elsewhere the proxy refuses the virtual name, which is no model.
SERVED = "completion acompletion text_completion atext_completion responses aresponses anthropic_messages".split()
log = logging.getLogger("saverouter.gateway")


class SaveRouterHook(CustomLogger):
    """Serves by the certified policy of the router in a folder, and by the policy's reference where that fails.

    names : what the gateway calls models of the router's pool, where it calls them otherwise
    """

    def __init__(self, folder: str, names: dict[str, str]):
        super().__init__()
        self.router, self.names = sr.load_router(folder), names
        if self.router.certificate_ is None:
            raise sr.SaveRouterError("SAVEROUTER_ROUTER was saved without a certificate; save it with certificate=...")
        if unknown := set(names) - set(self.router.models_):
            raise sr.SaveRouterError(f"SAVEROUTER_NAMES has {min(unknown)!r}; the pool is {self.router.models_}")
        self.reference = self.router.certificate_.reference
        self.choose("an encoder that cannot run is noticed now, and the first request does not wait for it")

    def choose(self, text: str) -> str:
        """The router's model for a prompt."""
        return self.router.route([text], policy=self.router.policy_)[0]

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        if data.get("model") != VIRTUAL or call_type not in SERVED:
            return data
        chosen, why = self.reference, "there is no text to route by"
        if text := text_of(data.get("messages") or data.get("input") or data.get("prompt")):
            try:
                chosen, why = await asyncio.to_thread(self.choose, text), None
            except Exception as error:  # its message may quote the prompt
                why = f"the router failed with {type(error).__name__}"
        data["model"] = self.names.get(chosen, chosen)
        if why:
            log.warning("%s: %s, the reference, serves this request (%s)", why, data["model"], call_type)
        note(data)[HEADER] = data["model"]
        return data

    async def async_post_call_response_headers_hook(self, data, user_api_key_dict, response, **_):
        noted = note(data).get(HEADER)
        return {HEADER: noted} if noted and noted == data.get("model") else None  # a caller may have written something


def note(data: dict) -> dict:
    """Where litellm keeps what it knows of a request; ``metadata`` is the caller's own, and goes upstream, on some paths."""
    name = "litellm_metadata" if "litellm_metadata" in data else "metadata"
    if not isinstance(data.get(name), dict):
        data[name] = {}
    return data[name]


def text_of(said: object) -> str:
    """A text, or that of the last user message, whose content may be a list of parts; empty where there is none."""
    if isinstance(said, list):
        users = [one for one in said if isinstance(one, dict) and one.get("role") == "user"]
        said = users[-1].get("content") if users else None
    if isinstance(said, list):
        parts = [part for part in said if isinstance(part, dict) and part.get("type") in ("text", "input_text")]
        said = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return said if isinstance(said, str) and said.strip() else ""


def from_environment() -> SaveRouterHook:
    """The hook, or an error that keeps the proxy from starting: without a router all would be dear, and nobody told."""
    if not os.environ.get("SAVEROUTER_ROUTER"):
        raise sr.SaveRouterError("SAVEROUTER_ROUTER is not set; name the folder that router.save(folder) was given")
    try:
        names = dict(json.loads(os.environ.get("SAVEROUTER_NAMES") or "{}"))
    except (ValueError, TypeError):
        raise sr.SaveRouterError('SAVEROUTER_NAMES is no JSON such as {"gpt-4o": "our-gpt-4o"}') from None
    return SaveRouterHook(os.environ["SAVEROUTER_ROUTER"], names)


handler = from_environment()
