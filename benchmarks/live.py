"""Buying from a local server with 1 and with more workers, as a ratio of one run. python benchmarks/live.py

The server is a process of its own and takes 50 ms for every call; the ledger lies on the disk of the working folder, synced as
always. Outcomes must be the same. The table goes to reports/bench.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd

from saverouter.live import LiveFeedback, Model, read_ledger

PRICE = (1e-6, 2e-6)


class Server(BaseHTTPRequestHandler):
    """Answers every prompt with its length, after so many seconds."""

    protocol_version = "HTTP/1.1"
    latency = 0.05

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.latency)
        answer = {"role": "assistant", "content": f"{len(asked['messages'][-1]['content']) % 2}"}
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        body = json.dumps(
            {"id": "x", "model": asked["model"], "choices": [{"index": 0, "message": answer}], "usage": usage}
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


def serve(latency: float) -> None:
    """Until it is ended; says its port first."""
    Server.latency = latency
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def serving(latency: float):
    """The address of a server in another process."""
    command = [sys.executable, __file__, "--serve", str(latency)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def score(question, answer):
    """The answer is the quality."""
    return float(answer)


def measure(address: str, calls: int, workers: int, folder: str) -> tuple[dict, pd.DataFrame]:
    """Seconds for so many calls, and what was bought."""
    prompts = [f"prompt {'x' * (number % 7)} number {number}" for number in range(calls)]
    model = Model("m", max_tokens=5, endpoint=address, key=None)
    ledger = Path(folder) / f"{workers}.sqlite"
    with LiveFeedback(
        prompts, [model], judge=score, prices={"m": PRICE}, max_spend=10.0, workers=workers, ledger=ledger
    ) as feedback:
        start = time.perf_counter()
        feedback.reveal(np.arange(calls), 0)
        seconds = time.perf_counter() - start
        assert feedback.spent == read_ledger(ledger).spent or abs(feedback.spent - read_ledger(ledger).spent) < 1e-9
        return {"calls": calls, "workers": workers, "seconds": seconds}, feedback.observations


def compare(calls: int, workers: list[int], latency: float) -> pd.DataFrame:
    """The same purchase with every number of workers."""
    rows, first = [], None
    with serving(latency) as address, tempfile.TemporaryDirectory(dir=".") as folder:
        for number in workers:
            row, bought = measure(address, calls, number, folder)
            first = bought if first is None else first
            pd.testing.assert_frame_equal(first, bought)
            rows.append(
                {
                    **row,
                    "latency, ms": 1e3 * latency,
                    "times faster": rows[0]["seconds"] / row["seconds"] if rows else 1.0,
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--latency", type=float, default=0.05, help="seconds that the server takes for a call")
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
    table = compare(options.calls, options.workers, options.latency)
    print(table.to_string(index=False, float_format="{:.4g}".format))
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "live.csv", index=False)


if __name__ == "__main__":
    main()
