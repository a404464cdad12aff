"""Buys in processes that may be killed: reads (ledger, address, cap, prompts) from its input, forks, and tells how it ended."""

import json
import os
import sys

import numpy as np
import openai  # noqa: F401  once, before runs are forked
from provider import PRICE
from shop import score

import saverouter as sr
from saverouter.live import LiveFeedback, Model, Patience

NAMES = ("a", "b")
HASTE = Patience(timeout=0.4, attempts=4, total=5.0, in_row=50, first_wait=0.005, longest_wait=0.05)


def buy(ledger, address, cap, prompts):
    """Every pair, in batches, with 8 workers; 0 when all is bought, 3 where the cap is too low."""
    queries = [f"prompt number {number}" for number in range(prompts)]
    models = [Model(name, max_tokens=20, endpoint=address, key=None) for name in NAMES]
    try:
        with LiveFeedback(
            queries, models, judge=score, prices=dict.fromkeys(NAMES, PRICE), max_spend=cap, workers=8, ledger=ledger,
            resolve="retry", patience=HASTE,
        ) as feedback:  # fmt: skip
            tell("ready")
            for start in range(0, prompts, 16):
                rows = np.arange(start, min(start + 16, prompts))
                feedback.reveal(np.repeat(rows, 2), np.tile([0, 1], len(rows)))
        return 0
    except sr.SaveRouterError as error:
        tell(str(error))
        return 3 if "the cap is reached" in str(error) else 4


def tell(text):
    print(json.dumps(text), flush=True)


def main():
    for line in sys.stdin:
        child = os.fork()
        if not child:
            code = 5
            try:
                code = buy(*json.loads(line))
            finally:
                os._exit(code)
        tell(child)
        tell({"ended": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})


if __name__ == "__main__":
    main()
