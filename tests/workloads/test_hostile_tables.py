"""A file that is huge, packed, nested or no table at all ends in a sentence, and takes no more memory than agreed."""

import gzip
import json
import resource
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import saverouter as sr
from saverouter.workloads.tables import limits, opening

GOOD = b"query_id,prompt,model,quality,cost\nq,p,m,1,1\n"
ROW = {"query_id": "q", "prompt": "p", "model": "m", "quality": 1, "cost": 1}


def refused(path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(sr.SaveRouterError, match=f"^{path.name}.*{message}"):
        sr.load(path)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.jsonl", "log.json"])
def test_a_file_larger_than_agreed_is_not_read(tmp_path, monkeypatch, name):
    """Packed or not: what counts is what it holds."""
    content = GOOD if ".csv" in name else json.dumps([ROW] if name.endswith(".json") else ROW).encode()
    pack = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(pack(content))
    assert len(sr.load(tmp_path / name)) == 1
    monkeypatch.setattr(limits, "MOST_BYTES", 10_000)
    refused(
        tmp_path / name, pack(content + b" " * 10_000), "holds more than 1e-05 GB, unpacked; load some of its queries"
    )


@pytest.mark.parametrize("name", ["big.csv", "bomb.jsonl.gz"])
def test_what_is_too_large_is_not_in_memory_first(tmp_path, monkeypatch, name):
    """A gigabyte on disk is refused unread; a bomb that unpacks to a gigabyte, as soon as the limit is reached."""
    if name == "big.csv":
        with open(tmp_path / name, "wb") as file:
            file.truncate(limits.MOST_BYTES + 1)
    else:
        monkeypatch.setattr(limits, "MOST_BYTES", 10**6)
        (tmp_path / name).write_bytes(gzip.compress(b"[" * 10**7, compresslevel=1) * 100)
    tracemalloc.start()
    try:
        with pytest.raises(sr.SaveRouterError, match=f"{name} holds more than .* GB, unpacked"):
            sr.load(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name, content, message", [
    ("deep.jsonl", b'{"query_id":' + b"[" * 100_000, "line 1: it is nested too deep; expected one"),
    ("deep.json", b'[{"query_id":' + b'{"a":' * 100_000, "row 1 .*: it is nested too deep"),
    ("deep.json", b"[" * 100_000, "row 1 .*: it is nested too deep"),
    ("cut.jsonl", json.dumps(ROW).encode() + b'\n{"query_id": "q2', "line 2: it is no JSON"),
    ("two.jsonl", json.dumps(ROW).encode() * 2, "line 1: it is no JSON .it goes on with '{"),
    ("cut.json", b'[{"query_id": "q2"}', "row 1 .*: no comma after it; expected one"),
    ("cut.json", b'[{"query_id": "q2"},', "row 2 .*: it is no JSON"),
    ("more.json", b'[{"query_id": "q2"}] []', "goes on after the end of its list"),
    ("list.json", b"[1, 2]", "row 1 .* is 1; expected one .* per line, or a list of them"),
    ("list.jsonl", b'{"a": 1}\n7', "line 2 is 7; expected one"),
    ("pretty.json", b'{\n "data": []}', "line 1: it is no JSON"),
    ("wrapped.json", b'{"data": [1]}', "neither a long table"),
    ("digits.jsonl", b'{"query_id": ' + b"9" * 5000 + b"}", "line 1: it is no JSON"),
    ("none.json", b"[]", "has no rows"),
    ("empty.csv", b"", "is empty; at least a header and one row"),
    ("blank.csv", b"\n \n", "is empty"),
    ("mark.csv", b"\xef\xbb\xbf", "is empty"),
    ("empty.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
    ("header.csv", GOOD.splitlines()[0], "has no rows; at least one query is needed"),
    ("nul.csv", GOOD + b"q\0,p,m,1,1\n", "line 3: NUL characters; it is damaged or no text"),
    ("junk.csv", bytes(range(1, 256)) * 3, ""),
    ("picture.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe", "NUL characters"),
    ("book.csv", b"PK\x03\x04 and so on", "is a spreadsheet, an archive or a Parquet file under another name"),
    ("cut.csv.gz", gzip.compress(GOOD, mtime=0)[:-12], "cannot be read: "),
    ("wrong.csv.gz", b"\x1f\x8b and then nothing", "cannot be read: "),
    ("odd.csv", "query_id\n".encode("utf-16") + b"\n", "its encoding was not recognised"),
    ("broken.parquet", b"PAR1 no PAR1", "cannot be read: "),
])  # fmt: skip
def test_what_is_no_table_ends_in_a_sentence(tmp_path, name, content, message):
    refused(tmp_path / name, content, message)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "log.csv").mkdir()
    with pytest.raises(sr.SaveRouterError, match="log.csv' is a folder; name one file in it"):
        sr.load(tmp_path / "log.csv")


def test_small_files_do_not_become_large_tables(tmp_path, monkeypatch):
    """A wide header, a new key in every row, a model in every row: rows times columns."""
    monkeypatch.setattr(limits, "MOST_CELLS", 1_000)
    wide = GOOD.splitlines()[0] + b"".join(b",c%d" % n for n in range(100))
    refused(
        tmp_path / "wide.csv", wide + (b"\n" + b"," * 104) * 20 + b"1", "21 rows and 105 columns, more than 1,000 cells"
    )
    refused(tmp_path / "short.csv", wide + b"\nq" * 10**5, "line 2 has 1 column and the header 105")
    refused(tmp_path / "keys.jsonl", b"\n".join(b'{"k%d": 1}' % n for n in range(50)), "50 rows and 21 columns")
    rows = b"".join(b"q%d,p%d,m%d,1,1\n" % (n, n, n) for n in range(50))
    refused(tmp_path / "models.csv", GOOD.splitlines()[0] + b"\n" + rows, "50 rows and 50 columns")
    pq.write_table(pa.table({"prompt": pa.array(["p"] * 5_000).dictionary_encode()}), tmp_path / "rows.parquet")
    refused(tmp_path / "rows.parquet", (tmp_path / "rows.parquet").read_bytes(), "more than 1,000 cells")


def test_one_row_of_json_has_a_limit(tmp_path, monkeypatch):
    """Brackets take twenty times as much memory as they take space, so no more than a row is read at once."""
    monkeypatch.setattr(limits, "MOST_BYTES_OF_A_ROW", 2_000)
    long = json.dumps({**ROW, "trace": [[]] * 2_000}).encode()
    refused(tmp_path / "log.jsonl", long, "line 1 is longer than .* MB; shorten it")
    refused(tmp_path / "log.json", b"[" + long + b"]", r"row 1 \(the first is 1\) is longer than .* MB")
    rows = [{**ROW, "query_id": str(n), "prompt": "é😀 " * (n % 300)} for n in range(1, 300)]
    content = json.dumps(rows, indent=3, ensure_ascii=False)  # the window moves along many times, and cuts characters
    (tmp_path / "log.json").write_text(content, encoding="utf-8")
    assert sr.load(tmp_path / "log.json").prompts.tolist() == [row["prompt"] for row in rows]


def test_what_json_nests_is_not_kept(tmp_path, monkeypatch):
    """Traces of a log: 4 MB of brackets would be 64 MB of lists."""
    monkeypatch.setattr(limits, "MOST_BYTES", 10**7)
    lines = [json.dumps({**ROW, "query_id": str(n), "trace": [[]] * 10_000}) for n in range(100)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    tracemalloc.start()
    try:
        assert len(sr.load(tmp_path / "log.jsonl")) == 100
        assert tracemalloc.get_traced_memory()[1] < 3 * 10**7
    finally:
        tracemalloc.stop()


def test_one_wide_character_does_not_widen_a_file(tmp_path):
    """As one text, a file with an emoji takes four times its size in memory."""
    content = GOOD + ("q2,\U0001f600" + "x" * 10**8 + ",m,1,1\n").encode()
    tracemalloc.start()
    try:
        assert opening._as_utf8(content, "log.csv") == (content, "")
        assert tracemalloc.get_traced_memory()[1] < 1.5 * len(content)
    finally:
        tracemalloc.stop()


def test_a_header_has_a_limit(tmp_path, monkeypatch):
    refused(tmp_path / "wide.csv", b"," * 10**6, "1,000,001 columns, more than 50,000; leave some out")
    wide = json.dumps(ROW | {f"key {n}": 1 for n in range(60_000)})
    refused(tmp_path / "wide.jsonl", wide.encode(), "columns, more than 50,000; leave some out")
    monkeypatch.setattr(limits, "MOST_BYTES_OF_A_ROW", 2_000)
    refused(
        tmp_path / "long.csv", GOOD.splitlines()[0] + b"," + b"x" * 10_000, "line 1 is longer than .* MB; shorten it"
    )
    refused(
        tmp_path / "quote.csv",
        GOOD + b'q,"' + b"a b\n" * 1_000,
        "line 3 is longer than .* a quote that is never closed",
    )


@pytest.mark.parametrize("kind", ["text", "bytes", "list"])
def test_a_text_that_is_repeated_in_parquet_is_kept_once(tmp_path, kind):
    """200 MB of one prompt, a few KB in the file; a list of such texts is not read."""
    columns = {name: [value] * 2_000 for name, value in ROW.items()} | {"query_id": [str(n) for n in range(2_000)]}
    value = {"text": "p" * 10**5, "bytes": b"p" * 10**5, "list": ["p" * 10**5]}[kind]
    columns["trace" if kind == "list" else "prompt"] = pa.chunked_array([pa.array([value] * 20)] * 100)
    pq.write_table(pa.table(columns), tmp_path / "log.parquet", row_group_size=2_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work = sr.load(tmp_path / "log.parquet")
    assert work.prompts[0][0] == "p"
    assert len({id(prompt) for prompt in work.prompts}) == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # KB
