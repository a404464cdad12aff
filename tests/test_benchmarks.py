"""The benchmarks run, small, and find equal what should be equal. Nothing is timed."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import growth
    import ours
    import recording
    import stages

    yield stages, ours, growth, recording
    for name in ("black_box", "growth", "ours", "stages", "inputs", "recording"):
        sys.modules.pop(name, None)


def test_every_stage_runs_and_a_difference_is_noticed(bench, tmp_path):
    stages, ours, _, recording = bench
    for number, (stage, full) in enumerate(stages.FULL.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        stages.prepare(folder, stage, stages.sizes(full, quick=True))
        seconds, made = ours.STAGES[stage](recording.load(folder))
        assert seconds > 0
        assert stages.agreement(stage, made, {**made, "converged": None})
        if stage in stages.NOT_IN_RELEASE:
            continue
        what = {"features": "indices", "acquisition": "mask", "frontier": "peak"}.get(stage, "quality")
        wrong = ~made[what] if made[what].dtype == bool else np.asarray(made[what]) + 1
        with pytest.raises(AssertionError):
            stages.agreement(stage, *({**made, what: wrong}, made) if stage == "fit" else (made, {**made, what: wrong}))


def test_encoders_are_compared(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import encoders

    table = encoders.compare(40).set_index("encoder")
    assert list(table.index[:2]) == ["torch-fp32", "openvino-fp32"] and table.notna().all().all()
    assert table.loc["torch-fp32", "times torch"] == 1 and table.loc["openvino-fp32", "largest difference"] < 1e-5
    for name in ("encoders", "recording"):
        sys.modules.pop(name, None)


def test_a_service_is_watched(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import service

    for keep in (False, True):
        found = service.alone(prompts=100, handles=256, stub=True, keep=keep)
        assert (found["files left"] > 0) == keep and found["memory at the end, MB"] > 0
    sys.modules.pop("service", None)


def test_live_calls_are_measured(monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import live

    table = live.compare(24, [1, 4], latency=0.01)
    assert table["calls"].tolist() == [24, 24] and table["times faster"][0] == 1 and (table["seconds"] > 0).all()
    sys.modules.pop("live", None)


def test_growth_is_measured_and_drawn(bench):
    *_, growth, _ = bench
    frame = pd.DataFrame([growth.measure(size, models) for size, models in growth.QUICK[:2]])
    assert (frame[growth.STEPS] > 0).all().all()
    drawing = growth.figure({"queries": frame, "models": frame})
    lines = [len(panel.lines) for panel in drawing.axes]
    assert lines == 2 * [len(growth.STEPS) + 1] + 2 * [1]  # seconds above, memory below
