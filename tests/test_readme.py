"""The README's examples run, and what it names exists."""

import re
from pathlib import Path

import pytest
from conftest import long_frame, make_workload

import saverouter as sr
from saverouter.paper import main_results

ROOT = Path(__file__).resolve().parents[1]


def test_the_readmes_examples_run(tmp_path, monkeypatch):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    own_data, own_router = re.findall(r"```python\n(.*?)```", readme, re.S)
    monkeypatch.chdir(tmp_path)
    long_frame(make_workload(n=200)).to_csv("my_outcomes.csv", index=False)
    names = {}
    exec(own_data, names)
    assert names["result"].peak_score > 0
    monkeypatch.setattr(sr, "ROUTERS", dict(sr.ROUTERS))
    exec(own_router, names)
    train, test = names["train"], names["test"]
    feedback = train.feedback()
    router = names["GlobalMean"]().fit(train.queries, feedback)
    result = sr.evaluate(router, test, supervision_cost=feedback.spent)
    assert feedback.spent == pytest.approx(train.cost.sum()) and result.router == "Global mean"
    assert sr.ROUTERS["global_mean"] is names["GlobalMean"]


def test_the_readme_names_what_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\(((?!http)[^)]+)\)", readme):
        assert (ROOT / path).exists(), path
    assert main_results("routerbench").loc["SaveRouter", "sa_bep"] == 42_600
