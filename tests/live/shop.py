"""A small pool and an in-process client for it: what the tests of this room share."""

from provider import PRICE, USAGE

from saverouter.live import LiveFeedback, Model, Patience

PROMPTS = [f"What is {number} plus {number}?" for number in range(12)]
FAST = Patience(timeout=20.0, attempts=4, total=60.0, in_row=10, first_wait=0.001)


def score(question, answer):
    """A judge: the answer is the quality."""
    return float(answer)


def reply(model, text="1", usage=USAGE, served=None):
    return {
        "id": "x", "model": served or model.sent, "choices": [{"message": {"content": text}}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]},
    }  # fmt: skip


class Desk:
    """A client that answers from a function and counts; what it raises or returns is up to that function."""

    def __init__(self, say=lambda model, prompt, number: reply(model)):
        self.say, self.asked = say, []

    def __call__(self, model, messages, timeout):
        self.asked.append((model.name, messages[-1]["content"]))
        return self.say(model, messages[-1]["content"], len(self.asked) - 1)


def pool(names="ab", **options):
    return [Model(name, **{"max_tokens": 20, "key": None, **options}) for name in names]


def buying(ledger, client=None, prompts=PROMPTS, models=None, **options):
    models = pool() if models is None else models
    given = dict(judge=score, prices={model.name: PRICE for model in models}, max_spend=1.0, patience=FAST, workers=4,
                 client=Desk() if client is None else client, sleep=lambda seconds: None)  # fmt: skip
    return LiveFeedback(prompts, models, ledger=ledger, **(given | options))


class Status(Exception):
    """An error as the openai package raises it."""

    def __init__(self, status_code, text="no", code=None, headers=()):
        super().__init__(text)
        self.status_code, self.code, self.headers = status_code, code, dict(headers)
