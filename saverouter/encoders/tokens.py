"""How many tokens a text has, by MiniLM's own tokenizer: a yardstick where no model's own count was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .minilm import _weights_folder

AT_A_TIME = 1_000


def token_counts(texts: Iterable[str]) -> dict[str, int]:
    """The number of tokens of each distinct text, without the tokens that mark its ends and without a limit."""
    wanted = list(dict.fromkeys(texts))
    counts: dict[str, int] = {}
    for start in range(0, len(wanted), AT_A_TIME):
        part = wanted[start : start + AT_A_TIME]
        clean = [text.encode(errors="replace").decode() for text in part]  # half a surrogate is no text
        found = _tokenizer().encode_batch_fast(clean, add_special_tokens=False)
        counts |= {text: len(tokens) for text, tokens in zip(part, found, strict=True)}
    return counts


@cache
def _tokenizer():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_weights_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
