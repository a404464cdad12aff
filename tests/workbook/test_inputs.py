"""The files that parameters name: found from where they were typed, and shown under names that lead nowhere else."""

import pytest

from saverouter.errors import SaveRouterError
from saverouter.workbook.inputs import found_file, named_file, safe_name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("SAVEROUTER_DATA", raising=False)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "outcomes.csv").touch()
    return tmp_path


def test_a_relative_path_starts_where_it_was_typed(folder, monkeypatch):
    file = folder / "sub" / "outcomes.csv"
    assert (
        named_file("sub/outcomes.csv", folder)
        == named_file("outcomes.csv", folder / "sub")
        == named_file(str(file), folder)
        == file
    )
    monkeypatch.setenv("HOME", str(folder))
    assert named_file("~/sub/outcomes.csv", folder / "sub") == file
    monkeypatch.setenv("SAVEROUTER_DATA", str(folder / "sub"))
    assert named_file("outcomes.csv", folder) == file


def test_a_workload_of_the_project_is_no_file(folder):
    (folder / "paretobandit").touch()
    assert named_file("paretobandit", folder) is None and named_file("recorded/sensebench", folder) is None


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("sub/outcoms.csv", "did you mean 'sub/outcomes.csv'"),
        ("paretobandi", "did you mean 'paretobandit'"),
        ("simulated/routerbanch", "did you mean 'simulated/routerbench'"),
        ("sub", "'sub' is a folder"),
        ("", "no workload or file is called ''"),
        ("a\0b", "no workload or file is called"),
        ("x" * 5_000, "no workload or file is called"),
        ("~nobody-at-all/x.csv", "no workload or file is called"),
        (7, "is named 7"),
    ],
)
def test_what_is_no_file_is_refused_with_what_is_near(folder, asked, message):
    with pytest.raises(SaveRouterError, match=message):
        named_file(asked, folder)
    assert found_file(asked, folder) is None


@pytest.mark.parametrize("text", ["../../x.csv", "<b>.csv", "..", ".", "", "/", "a\nb", "..\\..\\x", "a\0b", ".done", "é" * 300,
                                  "\udcff.csv", "-rf", "x/../..", "\u202egnp.csv"])  # fmt: skip
def test_a_safe_name_stays_in_its_folder(tmp_path, text):
    name = safe_name(text)
    made = tmp_path / name
    made.mkdir()
    assert (
        made.resolve().parent == tmp_path
        and name[0] not in ".-"
        and name.isprintable()
        and not set(name) & set("<>/\\")
    )


def test_safe_names_keep_good_names_and_tell_others_apart():
    assert safe_name("data/outcomes-2.csv") == "outcomes-2.csv"
    assert len({safe_name("a b"), safe_name("a-b"), safe_name("a?b"), safe_name("x" * 99), safe_name("x" * 98)}) == 5
