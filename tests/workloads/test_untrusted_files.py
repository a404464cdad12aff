"""Files from elsewhere are read, never obeyed: each attack is shown to run nothing and to write nothing outside."""

import io
import os
import pickle
import tarfile
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
from packages import zipped
from publishers import long_table, old_pickle

import saverouter as sr
from saverouter.workloads.archives import extract, members
from saverouter.workloads.originals.pickles import read_pickle


class Calls:
    """Pickles as a call of anything."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def hidden_in_a_frame(attack) -> pd.DataFrame:
    return pd.DataFrame(
        {"sample_id": pd.Series(["a", attack], dtype=object)}, columns=pd.Index(["sample_id"], dtype=object)
    )


ATTACKS = {
    "a command": lambda mark: Calls(os.system, f"touch {mark}"),
    "eval": lambda mark: Calls(eval, f"open({str(mark)!r}, 'w')"),
    "a file": lambda mark: Calls(open, str(mark), "w"),
    "an attribute": lambda mark: Calls(getattr, "text", "format"),
    "an import": lambda mark: Calls(__import__, "antigravity"),
    "numpy's own loader": lambda mark: Calls(np.load, str(mark)),
    "pandas' own loader": lambda mark: Calls(pd.read_pickle, str(mark)),
    "a writer of pandas": lambda mark: Calls(pd.DataFrame.to_csv, pd.DataFrame(), str(mark)),
    "deep in a table": lambda mark: {"easy": {3: {"all": [1, Calls(os.system, f"touch {mark}")]}}},
    "in a cell": lambda mark: hidden_in_a_frame(Calls(os.system, f"touch {mark}")),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_hostile_pickle_runs_nothing(tmp_path, attack, protocol):
    mark, path = tmp_path / "was here", tmp_path / "bad.pkl"
    path.write_bytes(pickle.dumps(ATTACKS[attack](mark), protocol=protocol))
    with pytest.raises(
        sr.SaveRouterError, match="bad.pkl is not used: it asks for .* only containers of pandas and numpy"
    ):
        read_pickle(path)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.pkl"]


def test_the_attacks_are_real(tmp_path):
    """The standard reader does run them, so the test above can fail."""
    pickle.loads(pickle.dumps(ATTACKS["a command"](tmp_path / "mark")))
    assert (tmp_path / "mark").exists()


def test_a_pickle_cannot_change_a_class(tmp_path):
    """BUILD on a class would set attributes of it: of a throw-away subclass at the most."""
    state = b"N}\x8c\x04nameX\x04\x00\x00\x00evil" + b"s\x86"  # (None, {"name": "evil"})
    for name in (b"pandas.core.frame\nDataFrame", b"pandas.core.indexes.base\nIndex", b"collections\nOrderedDict"):
        (tmp_path / "bad.pkl").write_bytes(b"\x80\x04c" + name + b"\n" + state + b"b.")
        try:
            read_pickle(tmp_path / "bad.pkl")
        except sr.SaveRouterError:
            continue
    assert getattr(pd.DataFrame, "name", None) != "evil" != pd.Index.__dict__.get("name")
    assert not hasattr(OrderedDict, "name")


def test_an_array_brings_its_memory_along(tmp_path):
    path = tmp_path / "huge.pkl"
    path.write_bytes(pickle.dumps(Calls(np._core.multiarray._reconstruct, np.ndarray, (1 << 50,), b"b")))
    with pytest.raises(sr.SaveRouterError, match="begins an array of an unusual kind"):
        read_pickle(path)


@pytest.mark.parametrize("content", [b"", b"not a pickle", pickle.dumps([1, 2])[:-4], b"\x80\x04\x8c\x01xQ."])
def test_a_broken_pickle_is_named(tmp_path, content):
    (tmp_path / "half.pkl").write_bytes(content)
    with pytest.raises(sr.SaveRouterError, match="half.pkl"):
        read_pickle(tmp_path / "half.pkl")


def test_an_honest_frame_comes_back(tmp_path):
    table = long_table().astype({"performance": object})
    old_pickle(table, tmp_path / "good.pkl")
    found = read_pickle(tmp_path / "good.pkl")
    assert type(found) is pd.DataFrame and found.shape == table.shape
    assert found.astype(str).equals(table.astype(str).astype(found.astype(str).dtypes.to_dict()))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_honest_containers_come_back(tmp_path, protocol):
    thing = {"a": [1, 2.5, None, True, "x", b"y", (1,), {2}], "n": np.arange(6.0).reshape(2, 3), "s": np.float32(0.5),
             "o": np.array(["x", None], dtype=object), "d": OrderedDict(k=1)}  # fmt: skip
    (tmp_path / "good.pkl").write_bytes(pickle.dumps(thing, protocol=protocol))
    found = read_pickle(tmp_path / "good.pkl")
    np.testing.assert_array_equal(found["n"], thing["n"])
    assert found["a"] == thing["a"] and found["s"] == 0.5 and list(found["o"]) == ["x", None] and found["d"] == {"k": 1}


def tar(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for name, kind in members:
            info = tarfile.TarInfo(name)
            content = b"" if isinstance(kind, tuple) else kind
            if isinstance(kind, tuple):
                info.type, info.linkname = kind
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


HOSTILE = {
    "parent": lambda p: tar(p, ("ok.json", b"1"), ("../evil.json", b"2")),
    "inner parent": lambda p: tar(p, ("a/../../evil.json", b"2")),
    "absolute": lambda p: tar(p, (str(p.parent / "evil.json"), b"2")),
    "symbolic link": lambda p: tar(p, ("link", (tarfile.SYMTYPE, "/etc")), ("link/evil.json", b"2")),
    "hard link": lambda p: tar(p, ("x.json", (tarfile.LNKTYPE, "/etc/passwd"))),
    "device": lambda p: tar(p, ("x.json", (tarfile.CHRTYPE, ""))),
    "fifo": lambda p: tar(p, ("x.json", (tarfile.FIFOTYPE, ""))),
    "zip parent": lambda p: zipped(p, ("../evil.json", "2")),
    "zip absolute": lambda p: zipped(p, ("/tmp/evil.json", "2")),
    "zip of Windows": lambda p: zipped(p, ("..\\evil.json", "2")),
    "zip drive": lambda p: zipped(p, ("C:/evil.json", "2")),
    "zip link": lambda p: zipped(p, link="evil.json"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_writes_nothing(tmp_path, kind):
    box = tmp_path / "box"
    box.mkdir()
    archive = HOSTILE[kind](box / "bad.archive")
    with pytest.raises(sr.SaveRouterError, match="bad.archive holds .* it is not used"):
        extract(archive, box / "inside" / "target", ("*.json",))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "box",
        "box/bad.archive",
        "box/inside",
    ]


@pytest.mark.parametrize("pack", [tar, zipped])
def test_limits_hold_for_what_is_read(tmp_path, pack):
    many = pack(tmp_path / "many", *((f"{n}.json", b"1") for n in range(5)))
    with pytest.raises(sr.SaveRouterError, match="more than 4 files"):
        extract(many, tmp_path / "out", most_files=4)
    bomb = pack(tmp_path / "bomb", ("big.json", b"0" * 5_000_000))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(sr.SaveRouterError, match="unpacks to more than was agreed"):
        extract(bomb, tmp_path / "out", most_bytes=1_000_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bomb", "many"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_not_read(tmp_path, kind):
    with pytest.raises(sr.SaveRouterError, match="bad.archive holds .* it is not used"):
        list(members(HOSTILE[kind](tmp_path / "bad.archive"), r".*\.json"))


@pytest.mark.parametrize("pack", [tar, zipped])
def test_members_are_read_within_limits(tmp_path, pack):
    bomb = pack(tmp_path / "bomb", ("a/big.json", b"0" * 5_000_000), ("b/small.json", b"1"), ("c/small.json", b"2"))
    assert dict(members(bomb, r"[bc]/.*\.json")) == {"b/small.json": b"1", "c/small.json": b"2"}
    with pytest.raises(sr.SaveRouterError, match="unpacks to more than was agreed"):
        list(members(bomb, r".*\.json", most_bytes=1_000_000))
    with pytest.raises(sr.SaveRouterError, match="more than 2 files"):
        list(members(bomb, r"b/.*", most_files=2))
    with pytest.raises(sr.SaveRouterError, match="holds none of the files that are read"):
        list(members(bomb, r"d/.*"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("pack", [tar, zipped])
def test_a_name_that_occurs_twice_is_not_read(tmp_path, pack):
    twice = pack(tmp_path / "twice", ("a.json", b"1"), ("a.json", b"2"))
    with pytest.raises(sr.SaveRouterError, match="holds 'a.json' twice; it is not used"):
        list(members(twice, r"a\.json"))


@pytest.mark.parametrize("pack", [tar, zipped])
def test_an_honest_archive_is_unpacked_as_far_as_wanted(tmp_path, pack):
    archive = pack(tmp_path / "good", ("a/b/x.json", b"1"), ("a/readme.md", b"2"), ("a/run.sh", b"3"))
    folder = extract(archive, tmp_path / "out", ("*.json",))
    assert [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()] == ["a/b/x.json"]
    assert (folder / "a/b/x.json").read_bytes() == b"1"


def test_a_cut_archive_leaves_nothing(tmp_path):
    whole = tar(tmp_path / "cut", *((f"{n}.json", os.urandom(2000)) for n in range(50)))
    whole.write_bytes(whole.read_bytes()[:40_000])
    with pytest.raises(sr.SaveRouterError, match="cut cannot be unpacked .* fetch it again"):
        extract(whole, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["cut"]
