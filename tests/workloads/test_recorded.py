"""Recorded workloads: what each file says is what is loaded, and a file that is not as expected is refused.

The small archives are made here, in the layout of the published ones. The published ones are read where they are.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packages import MAKERS, RUN, agentdojo, kunko, packed, sensebench, yentlbench

import saverouter as sr
from saverouter.encoders import token_counts
from saverouter.workloads import recorded, registry

ROOT = Path(__file__).resolve().parents[2]
FILES = {source.benchmark: source.file for source in registry.sources(room="recorded")}
every = pytest.mark.parametrize("name", recorded.READERS)


@pytest.fixture
def put(own_cache, no_downloads, tmp_path, monkeypatch):
    """Puts an archive where a workload's file belongs, and its hash into a registry of the test's own."""
    copy = tmp_path / "registry.csv"
    shutil.copy(registry.registry_file(), copy)
    monkeypatch.setattr(registry, "registry_file", lambda: copy)

    def make(name, files, *, trusted=True, link="", cut=None) -> Path:
        path = packed(no_downloads / name / FILES[name], files, link)
        path.write_bytes(path.read_bytes()[:cut])
        if trusted:
            table = pd.read_csv(copy, dtype=str, keep_default_na=False)
            found = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
            table.loc[table["file"] == path.name, ["bytes", "sha256"]] = [str(found[0]), found[1]]
            table.to_csv(copy, index=False)
        return path

    return make


def test_yentlbench_as_it_is_written(put):
    put("yentlbench", yentlbench())
    work = sr.load("recorded/yentlbench")
    assert work.models == ("a/cheap", "b/dear")
    assert work.query_ids.tolist() == ["female-01", "female-02", "male-01", "male-02"]
    assert work.prompts[0] == "Sex: female, patient 0"
    np.testing.assert_array_equal(work.quality, [[1, 1], [0, 0]] * 2)
    np.testing.assert_allclose(work.cost, [[1.5e-6, 5.05e-5]] * 4)
    assert work.clusters.tolist() == ["patient 01", "patient 02"] * 2


def test_sensebench_as_it_is_written(put):
    put("sensebench", sensebench())
    work = sr.load("recorded/sensebench")
    assert work.models == ("cheap-minimal", "dear-medium") and work.clusters is None
    assert work.tasks.tolist() == ["semeval2013", "senseval2"]
    assert work.prompts.tolist() == ["art in semeval2013.d0.t1?", "art in senseval2.d0.t0?"]
    np.testing.assert_array_equal(work.quality, [[0, 1], [1, 1]])
    assert (work.cost == 2e-3).all() and any(text.startswith("1 answers were not valid") for text in work.provenance)


def test_kunko_as_it_is_written(put):
    put("kunko", kunko())
    work = sr.load("recorded/kunko")
    assert work.models == ("gemini-3.6-flash", "jev", "laya", "qwen3-8b") and work.clusters is None
    np.testing.assert_array_equal(work.quality, [[1, 1, 1, 1], [0, 1, 0, 0]] * 3)
    assert work.prompts[0] == "Sort this: order, spam\n\nemail-routing-v2 no 0" and (work.cost == 1e-5).all()
    assert set(work.families["template"]) == {"order/en-1"}


def test_agentdojo_is_charged_turn_by_turn(put):
    put("agentdojo", agentdojo())
    work = sr.load("recorded/agentdojo")
    assert work.models == ("gpt-4o-2024-05-13", "gpt-4o-mini-2024-07-18") and set(work.clusters) == {
        "slack/user_task_0"
    }
    assert work.query_ids.tolist() == [
        f"slack/user_task_0/{a}" for a in ("important_instructions/injection_task_0", "none/none")
    ]
    tokens = [
        count
        for _, count in sorted(
            token_counts(text for _, text in RUN).items(), key=lambda e: [t for _, t in RUN].index(e[0])
        )
    ]
    read = sum(tokens[:2]) + sum(tokens[:4])
    written = tokens[2] + tokens[4]
    dear, cheap = (5 * read + 15 * written) / 1e6, (0.15 * read + 0.6 * written) / 1e6
    np.testing.assert_allclose(work.cost, [[dear, cheap]] * 2)
    assert any(text.startswith("1 runs were kept without messages") for text in work.provenance)


@every
def test_a_workload_says_where_it_comes_from_and_is_kept(name, put):
    path = put(name, MAKERS[name]())
    assert recorded.present()[name]
    work = sr.load(f"recorded/{name}")
    assert work.name == f"recorded/{name}" and not work.simulated and work.available.all()
    told = " | ".join(work.provenance)
    assert FILES[name] in told and ("MIT" in told or "Apache-2.0" in told) and "left out" in told
    path.unlink()  # what was read once is kept
    again = sr.load(f"recorded/{name}")
    assert again.fingerprint == work.fingerprint and again.provenance == work.provenance
    assert recorded.present()[name] and sr.load(f"recorded/{name}", size=2).name == work.name


@every
def test_a_missing_file_is_named_with_the_remedies(name, put, no_downloads, tmp_path, monkeypatch):
    assert not recorded.present()[name] and recorded.present()["paretobandit"]
    with pytest.raises(sr.SaveRouterError, match=f"recorded/{name} needs {FILES[name]}.*make install.*SAVEROUTER_DATA"):
        sr.load(f"recorded/{name}")
    path = put(name, MAKERS[name]())
    path.rename(tmp_path / path.name)
    monkeypatch.setenv("SAVEROUTER_DATA", str(tmp_path))
    assert len(sr.load(f"recorded/{name}"))


def test_an_unknown_name_is_told():
    with pytest.raises(sr.SaveRouterError, match="did you mean 'sensebench'"):
        sr.load("recorded/sensebnch")


@every
def test_another_content_than_recorded_is_refused(name, put):
    put(name, MAKERS[name](), trusted=False)
    with pytest.raises(sr.SaveRouterError, match=f"{FILES[name]} of {name} has .* sha256 .* it is not used"):
        sr.load(f"recorded/{name}")


@every
def test_a_link_or_a_way_out_is_refused(name, put):
    put(name, MAKERS[name](), link="some/results/link.json")
    with pytest.raises(sr.SaveRouterError, match="holds 'some/results/link.json', a link or a device; it is not used"):
        sr.load(f"recorded/{name}")
    put(name, MAKERS[name]() | {"../evil.json": b"{}"})
    with pytest.raises(sr.SaveRouterError, match="leads out of its folder"):
        sr.load(f"recorded/{name}")


@every
def test_a_cut_or_empty_archive_is_refused(name, put):
    put(name, MAKERS[name](), cut=300)
    with pytest.raises(sr.SaveRouterError, match=f"recorded/{name} cannot be read from {FILES[name]}"):
        sr.load(f"recorded/{name}")
    put(name, {"other/file.txt": b"1"})
    with pytest.raises(sr.SaveRouterError, match=f"recorded/{name} cannot be read .* not the expected"):
        sr.load(f"recorded/{name}")


@every
def test_a_missing_member_is_refused(name, put):
    files = MAKERS[name]()
    for member in files:
        if not any(skipped in member for skipped in ("logprob", "tool_filter", "/dos/", "calls.jsonl")):
            put(name, {key: content for key, content in files.items() if key != member})
            with pytest.raises(sr.SaveRouterError, match=f"recorded/{name} cannot be read"):
                sr.load(f"recorded/{name}")


@pytest.mark.parametrize("name, files, message", [
    ("yentlbench", yentlbench(right=(7.5, True)), "quality of model .* is 7.5; expected 0..1"),
    ("yentlbench", yentlbench(right=("yes", True)), "not laid out as expected .*yes"),
    ("sensebench", sensebench(cost=-1.0), "cost of model .* is -1; expected a finite number"),
    ("kunko", kunko(cost=-1e-5), "cost of model .* is -1e-05"),
    ("agentdojo", agentdojo(utility=2), "quality of model .* is 2; expected 0..1"),
    ("agentdojo", agentdojo(utility=None), "not laid out as expected"),
])  # fmt: skip
def test_a_value_out_of_range_is_refused(put, name, files, message):
    put(name, files)
    with pytest.raises(sr.SaveRouterError, match=f"recorded/{name} cannot be read from .*{message}"):
        sr.load(f"recorded/{name}")


def test_a_model_without_a_price_is_refused(put):
    files = {name.replace("gpt-4o-mini-2024-07-18", "gpt-9"): content for name, content in agentdojo().items()}
    put("agentdojo", files)
    with pytest.raises(sr.SaveRouterError, match="data/prices.csv has no price of 'gpt-9'; add a row"):
        sr.load("recorded/agentdojo")


def test_nothing_of_a_package_runs():
    code = "import sys, saverouter as sr; sr.load('recorded/paretobandit'); print('pareto_bandit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_the_short_name_means_the_same():
    assert sr.load("recorded/paretobandit").fingerprint == sr.load("paretobandit").fingerprint
    assert sr.load("recorded/paretobandit").name == "paretobandit"


def real(name) -> sr.Workload:
    if not recorded.present()[name]:
        pytest.skip(f"{FILES[name]} is not here; 'make install' fetches it")
    return sr.load(f"recorded/{name}")


def means(work, rows=slice(None)) -> tuple[dict, dict]:
    return (dict(zip(work.models, getattr(work, kind)[rows].mean(axis=0), strict=True)) for kind in ("quality", "cost"))


def test_the_published_yentlbench():
    work = real("yentlbench")
    assert work.quality.shape == (280, 15) and work.available.all()
    assert np.unique(work.clusters, return_counts=True)[1].tolist() == [4] * 70
    bare = {
        (c, "\n".join(x for x in p.split("\n") if not x.startswith("Sex:")))
        for c, p in zip(work.clusters, work.prompts, strict=True)
    }
    assert len(bare) == 70  # a patient's four wordings differ in that line alone
    quality, cost = (list(found.values()) for found in means(work))
    assert min(quality) == pytest.approx(0.443, abs=1e-3) and max(quality) == pytest.approx(0.614, abs=1e-3)
    assert min(cost) == pytest.approx(5.5e-5, rel=0.01) and max(cost) == pytest.approx(6.8e-3, rel=0.01)


def test_the_published_sensebench():
    work = real("sensebench")
    assert work.quality.shape == (4917, 2) and len({*work.prompts}) == 4917
    np.testing.assert_allclose(work.quality.mean(axis=0), [0.8385, 0.9406], atol=1e-4)
    np.testing.assert_allclose(work.cost.mean(axis=0), [1.85e-4, 6.40e-3], rtol=0.01)
    right = work.quality == 1
    assert (right[:, 1] & ~right[:, 0]).sum() == 624 and (right[:, 0] & ~right[:, 1]).sum() == 122


def test_the_published_agentdojo():
    work = real("agentdojo")
    assert work.quality.shape == (753, 17) and work.available.all()
    assert len({*work.clusters}) == len({*work.prompts}) == 124
    kinds = np.array(["injection" if "/injection_task" in q and q.endswith("none/none") else "clean" if q.endswith("none/none")
                      else "attacked" for q in work.query_ids])  # fmt: skip
    assert [int((kinds == kind).sum()) for kind in ("clean", "attacked", "injection")] == [97, 629, 27]
    clean, _ = means(work, kinds == "clean")
    assert min(clean.values()) == pytest.approx(0.25, abs=0.01) and max(clean.values()) == pytest.approx(0.79, abs=0.01)


def test_the_published_kunko():
    work = real("kunko")
    assert work.quality.shape == (3050, 4) and len({*work.prompts}) == 3050
    expected = {"jev": (1.00, 0.911, 0.692), "gemini-3.6-flash": (1.00, 0.989, 0.717), "qwen3-8b": (0.985, 0.713, 0.351),
                "laya": (0.602, 0.443, 0.407)}  # fmt: skip
    for place, part in enumerate(recorded.kunko.SETS):
        quality, cost = means(work, work.tasks == part)
        assert quality == pytest.approx({model: values[place] for model, values in expected.items()}, abs=1e-3)
        assert cost["laya"] == cost["qwen3-8b"] == 0 and 4e-4 < cost["gemini-3.6-flash"] < 8e-4
    train, test = work.split(together="template")
    assert not {*train.families["template"]} & {*test.families["template"]}


@every
def test_the_published_files_are_where_the_hash_says(name):
    source = registry.sources(name, "recorded")[0]
    if registry.find(source) is None:
        pytest.skip(f"{source.file} is not here; 'make install' fetches it")
    assert registry.checked(source, registry.find(source)) == source
