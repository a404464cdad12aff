"""What notebooks leave behind, and when."""

import matplotlib
import pandas as pd
import pytest

from saverouter.errors import SaveRouterError
from saverouter.studies.profiles import PROFILES, profile
from saverouter.workbook.outputs import save_figure, save_table, watermark

matplotlib.use("agg")


def test_nothing_is_written_unless_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("SAVEROUTER_REPORTS", raising=False)
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": [1]})
    assert save_table(frame, "t") is frame
    assert list(tmp_path.iterdir()) == []


def test_tables_keep_a_meaningful_index(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEROUTER_REPORTS", str(tmp_path))
    frame = pd.DataFrame({"sa_bep": [1.5, float("inf")]}, index=pd.Index(["knn", "mlp"], name="router"))
    styled = frame.style
    assert save_table(styled, "t") is styled
    assert (tmp_path / "tables" / "t.csv").read_text() == "router,sa_bep\nknn,1.5\nmlp,inf\n"


def test_figures_as_png_and_svg_from_axes_or_figures(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    monkeypatch.setenv("SAVEROUTER_REPORTS", str(tmp_path))
    figure = Figure()
    axes = figure.subplots(1, 2)
    for thing, name in ((figure, "figure"), (axes, "array"), (axes[0], "axes")):
        assert save_figure(thing, name) is thing
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == ["array.png", "array.svg", "axes.png", "axes.svg", "figure.png", "figure.svg"]


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEROUTER_REPORTS", str(tmp_path))

    class Broken(pd.DataFrame):
        def to_csv(self, path, **options):
            path.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_table(Broken({"a": [1]}), "t")
    assert list((tmp_path / "tables").iterdir()) == []


def test_names_stay_in_the_folder():
    with pytest.raises(SaveRouterError, match="cannot name a table"):
        save_table(pd.DataFrame(), "../t")


def test_watermark_names_versions():
    shown = watermark()
    assert {"python", "numpy", "torch", "saverouter"} <= set(shown.index)
    assert shown.loc["numpy", "version"].startswith("2.")


def test_profiles():
    assert [profile(name).name for name in PROFILES] == list(PROFILES)
    assert profile("paper").max_queries is None
    with pytest.raises(SaveRouterError, match="choose one of smoke, standard, paper"):
        profile("tiny")
