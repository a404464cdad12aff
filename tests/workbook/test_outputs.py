"""What notebooks leave behind, and when."""

import csv

import matplotlib
import pandas as pd
import pytest

from saverouter.errors import SaveRouterError
from saverouter.studies.profiles import PROFILES, profile
from saverouter.workbook.measured import keep_table
from saverouter.workbook.outputs import as_named, as_text, save_figure, save_table, watermark

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


FORMULAS = ["=cmd|' /C calc'!A0", "+SUM(1)", "-2+3", "@x", "\t=1", "\r=1", "'=1", '=HYPERLINK("http://x","y")']
HARMLESS = ["-", "-0.4", "+1.5%", "-inf", "-1e-05", "a-b", "it's", "'quoted'", "<b>", "", "1,234", "naïve"]


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_header_or_label_of_a_table_is_a_formula(tmp_path, monkeypatch, name):
    monkeypatch.setenv("SAVEROUTER_REPORTS", str(tmp_path))
    labels = pd.MultiIndex.from_tuples([(name, "a")], names=[name, "model"])
    save_table(pd.DataFrame({name: [name], "cost": [-0.4]}, index=labels), "t")
    with open(tmp_path / "tables" / "t.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    kept = name.replace("\r", "\n")
    assert rows == [[f"'{kept}", "model", f"'{kept}", "cost"], [f"'{kept}", "a", f"'{kept}", "-0.4"]]
    assert as_named(f"'{kept}") == kept


def test_numbers_and_plain_text_of_a_table_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEROUTER_REPORTS", str(tmp_path))
    frame = pd.DataFrame({"text": HARMLESS, "number": [-0.5] * len(HARMLESS)})
    save_table(frame, "t")
    written = (tmp_path / "tables" / "t.csv").read_bytes().decode()
    assert written == frame.to_csv(index=False) == as_text(frame.to_csv(index=False, lineterminator="\r\n"))
    assert [as_named(text) for text in HARMLESS] == HARMLESS


def test_tables_kept_from_a_report_hold_no_formula(tmp_path):
    keep_table(pd.DataFrame({"model": FORMULAS[:1], "gain": [-0.4]}), tmp_path / "t.csv", "make measured")
    assert (tmp_path / "t.csv").read_text() == "# make measured\nmodel,gain\n'=cmd|' /C calc'!A0,-0.4\n"


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


@pytest.mark.parametrize("name", ["../t", "/etc/t", "a/b", "a\\b", "..", "", "t\n", "t.csv", "C:t"])
def test_names_stay_in_the_folder(name):
    for save in (save_table, save_figure):
        with pytest.raises(SaveRouterError, match="cannot name a table"):
            save(pd.DataFrame(), name)


def test_watermark_names_versions():
    shown = watermark()
    assert {"python", "numpy", "torch", "saverouter"} <= set(shown.index)
    assert shown.loc["numpy", "version"].startswith("2.")


def test_profiles():
    assert [profile(name).name for name in PROFILES] == list(PROFILES)
    assert profile("paper").max_queries is None
    with pytest.raises(SaveRouterError, match="choose one of smoke, standard, paper"):
        profile("tiny")
