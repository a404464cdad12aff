"""The examples of the READMEs run, and what they name exists."""

import re
from pathlib import Path

import pytest
from conftest import long_frame, make_workload

import saverouter as sr

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / name / "README.md"
    for name in (".", "saverouter/routers", "data", "benchmarks", "saverouter/live", "examples/gateway")
]


def test_the_readmes_examples_run(tmp_path, monkeypatch):
    pages = [path.read_text(encoding="utf-8") for path in PAGES]
    own_data, own_router, _ = re.findall(r"```python\n(.*?)```", "".join(pages), re.S)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_names_what_exists(page):
    for path in re.findall(r"\]\(((?!http)[^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / path).exists(), path


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
