"""A team's own export is read as it is, or refused with file, line and remedy."""

import gzip
import json
import logging
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import saverouter as sr
from saverouter.workloads.tables import limits, opening

ROWS = [
    ("q1", "Say «hello» to José", "gpt", "1", "0.002"),
    ("q1", "Say «hello» to José", "tiny", "0", "0.0001"),
    ("q2", 'Two lines,\nand a "quote"', "gpt", "0.5", "0.003"),
    ("q2", 'Two lines,\nand a "quote"', "tiny", "0.25", "0.0002"),
]
HEADERS = ["query_id", "prompt", "model", "quality", "cost"]


def table(rows=ROWS, headers=HEADERS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=headers, dtype=object)


def with_column(name, values) -> pd.DataFrame:
    return table().assign(**{name: values})


def same(one, other) -> bool:
    return one.fingerprint == other.fingerprint and one.models == other.models


def csv(frame, path, encoding="utf-8", **options):
    """A CSV file of this frame; with the encoding of a name that ends in .gz packed."""
    content = frame.to_csv(index=False, **options).encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.csv.gz", "packed.csv"])
def test_separator_and_encoding_are_recognised(tmp_path, separator, encoding, name):
    path = csv(table(), tmp_path / name, encoding, sep=separator, lineterminator="\r\n")
    if name == "packed.csv":
        path.write_bytes(gzip.compress(path.read_bytes()))  # the name of a file need not say that it is packed
    assert same(sr.load(path), sr.from_frame(table()))


def test_a_line_that_names_the_separator_is_no_header(tmp_path):
    (tmp_path / "log.csv").write_bytes(b"sep=;\r\n" + csv(table(), tmp_path / "plain.csv", sep=";").read_bytes())
    assert same(sr.load(tmp_path / "log.csv"), sr.from_frame(table()))


def test_a_guess_at_the_encoding_is_said(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "saverouter"):
        work = sr.load(csv(table(), tmp_path / "log.csv", "cp1252"))
    assert "not in UTF-8 and was decoded as Windows-1252" in caplog.messages[0]
    assert work.provenance[0] == "read from log.csv, decoded as Windows-1252"


# without \r, which pandas writes without the quotes it needs
cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=12).filter(str.strip)
logs = st.lists(
    st.tuples(cells, st.floats(0, 1), st.floats(0, 1e9), st.booleans()), min_size=1, max_size=6,
    unique_by=lambda row: row[0].strip(),
)  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    logs, st.sampled_from(",;\t|"), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.sampled_from(["\n", "\r\n"])
)
def test_any_table_comes_back_from_a_file(tmp_path, log, separator, encoding, end):
    rows = [(f"{place:03}", prompt, model, q, c) for place, (prompt, q, c, both) in enumerate(log)
            for model in ("a", "b")[: 1 + both]]  # fmt: skip
    frame = pd.DataFrame(rows, columns=HEADERS).astype({"prompt": object})
    expected = sr.from_frame(frame)
    path = csv(frame, tmp_path / "log.csv", encoding, sep=separator, lineterminator=end)
    assert same(sr.load(path), expected)
    assert expected.query_ids[0] == "000" and expected.prompts.tolist() == [row[0] for row in log]
    rows = frame.to_dict("records")
    for name, content in (("log.jsonl", "\n".join(map(json.dumps, rows))), ("log.json", json.dumps(rows, indent=1))):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert same(sr.load(tmp_path / name), expected)


@pytest.mark.parametrize("content, message", [
    (b"query_id:prompt:model\nq:p:m\n", r"log.csv \(decoded as UTF-8\): no separator .* first line, 'query_id:prompt:model'; "
                                        "expected a header with comma, semicolon, tab or |"),
    ("query_id,prompt\nq,\u3042".encode("shift-jis") + b"\x81\x8d", "log.csv: its encoding was not recognised .tried UTF-8, "
     "UTF-16 and Windows-1252, .* save it as UTF-8, a CSV with comma, semicolon, tab or |"),
])  # fmt: skip
def test_what_is_not_recognised_is_named_with_both(tmp_path, content, message):
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.load(tmp_path / "log.csv")


@pytest.mark.parametrize(
    "ending, remedy", [(".xlsx", "save it as CSV"), (".xls", "save it as CSV"), (".txt", "expected .csv")]
)
def test_other_files_get_the_remedy(tmp_path, ending, remedy):
    (tmp_path / f"log{ending}").write_bytes(b"PK\x03\x04")
    with pytest.raises(sr.SaveRouterError, match=remedy):
        sr.load(tmp_path / f"log{ending}")


def test_headers_without_regard_to_case_spaces_and_hyphens(tmp_path):
    frame = table(headers=["Query-ID", " Prompt", "MODEL ", "Quality", "cost"])
    assert same(sr.load(csv(frame, tmp_path / "log.csv")), sr.from_frame(table()))
    wide = pd.DataFrame({"Query ID": ["1"], "PROMPT": ["p"], "Quality: gpt 4 ": [1], " COST:gpt 4": [2]})
    assert sr.from_frame(wide).models == ("gpt 4",)
    with pytest.raises(
        sr.SaveRouterError, match="'model' appears twice .'model' and 'Model'.; rename one, or say which it is"
    ):
        sr.from_frame(table().assign(Model="x"))
    assert same(sr.from_frame(table().assign(Model="x"), columns={"model": "model"}), sr.from_frame(table()))


def test_other_headers_are_named_by_the_user(tmp_path):
    theirs = {"query_id": "request", "prompt": "question", "quality": "score"}
    path = csv(table().rename(columns=theirs), tmp_path / "log.csv", sep=";")
    assert same(sr.load(path, columns=theirs), sr.from_frame(table()))
    with pytest.raises(sr.SaveRouterError, match=r"columns says 'prompt' is called 'questn'; did you mean 'question'"):
        sr.load(path, columns={**theirs, "prompt": "questn"})
    with pytest.raises(sr.SaveRouterError, match=r"columns has 'question'; .*expected one of query_id, prompt"):
        sr.load(path, columns={"question": "prompt"})
    with pytest.raises(sr.SaveRouterError, match=r"columns is \['id'\]; expected our names and the table's headers"):
        sr.load(path, columns=["id"])


def test_a_header_that_means_one_of_ours_is_offered_and_not_taken(tmp_path):
    path = csv(table().rename(columns={"query_id": "id", "prompt": "question"}), tmp_path / "log.csv")
    remedy = r'sr.load\("log.csv", columns={"query_id": "id", "prompt": "question"}\)'
    with pytest.raises(sr.SaveRouterError, match=rf"lacks columns .*those called 'id', 'question'\?.* {remedy}"):
        sr.load(path)
    assert same(sr.load(path, columns={"query_id": "id", "prompt": "question"}), sr.from_frame(table()))
    theirs = {"query_id": "Run ID", "prompt": "Inputs", "quality": "Feedback Score", "cost": "Total Cost"}
    frame = table().rename(columns=theirs).assign(**{"Prompt Tokens": 1, "Completion Tokens": 2})
    with pytest.raises(sr.SaveRouterError, match="those called 'Run ID', 'Inputs', 'Feedback Score', 'Total Cost'"):
        sr.from_frame(frame)  # tokens are there, but a cost is too
    path = csv(table().rename(columns={"model": "llm"}), tmp_path / "log.csv")
    with pytest.raises(sr.SaveRouterError, match=r"lacks column 'model' \(is it the one called 'llm'\?\)"):
        sr.load(path)


def test_further_columns_are_ignored_with_one_notice(tmp_path, caplog):
    frame = table().assign(user="x", created_at="2026-01-31T10:00:00Z", **{f"extra{n}": "-" for n in range(5)})
    path = tmp_path / "log.csv"
    frame.to_csv(path)  # with a column of row numbers that has no header
    with caplog.at_level(logging.INFO, "saverouter"):
        work = sr.load(path)
    sentence = ("8 columns are not used: one without a header, user, created_at, extra0, extra1 and 3 more; "
                "split(by='time', column=...) can use created_at")  # fmt: skip
    assert caplog.messages == [f"log.csv: {sentence}"] and sentence in work.provenance
    np.testing.assert_array_equal(work.quality, sr.from_frame(table()).quality)


@pytest.mark.parametrize("kind", ["csv", "gz", "utf-16", "tsv"])
def test_rows_at_the_end_in_which_nothing_is_written_are_none(tmp_path, kind):
    """Spreadsheets leave them behind."""
    separator, encoding = "\t" if kind == "tsv" else ",", "utf-16" if kind == "utf-16" else "utf-8"
    rows = table().assign(cost=["0.002", "0.0001", "0.003", None], quality=["1", "0", "0.5", None])
    text = rows.to_csv(index=False, sep=separator, lineterminator="\r\n")
    text += f"{separator * 4}\r\n  \r\n\r\n{separator * 4}"
    path = tmp_path / ("log.csv.gz" if kind == "gz" else "log.csv")
    path.write_bytes(gzip.compress(text.encode()) if kind == "gz" else text.encode(encoding))
    assert same(sr.load(path), sr.from_frame(rows))


def test_a_row_of_spaces_is_named(tmp_path):
    path = csv(table(), tmp_path / "log.csv")
    path.write_bytes(path.read_bytes() + b"  \nq3,p,gpt,1,1\n")
    with pytest.raises(sr.SaveRouterError, match="log.csv, line 8 has 1 column and the header 5"):
        sr.load(path)


@pytest.mark.parametrize("column", ["model", "query_id"])
@pytest.mark.parametrize("word", ["nan", "None", "NULL", "<NA>"])
def test_a_word_that_stands_for_nothing_is_no_name(column, word):
    """What a script writes for a missing name would be a further model, silently."""
    rows = table()
    rows.loc[1, column] = word
    with pytest.raises(sr.SaveRouterError, match=f"row 2 .*: {column} is '{word}', which stands for nothing; fill it"):
        sr.from_frame(rows)
    assert sr.from_frame(table().assign(prompt=word, task=word)).prompts[0] == word


@pytest.mark.parametrize("column", ["model", "query_id", "task"])
def test_half_a_character_in_a_name_is_refused(tmp_path, column):
    row = {"query_id": "q", "prompt": "p", "model": "m", "task": "t", "quality": 1, "cost": 1, column: "x\ud83d"}
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    with pytest.raises(
        sr.SaveRouterError, match=f"log.jsonl, line 1: {column} is .*, which was cut within a character"
    ):
        sr.load(tmp_path / "log.jsonl")


@pytest.mark.parametrize("lacks", ["quality", "cost"])
def test_a_model_of_a_wide_table_with_half_of_its_columns_is_refused(lacks):
    """A slip in a header would drop a model, silently."""
    wide = pd.DataFrame({"prompt": ["p"], "quality:a": [1], "cost:a": [1], "quality:b": [0], "cost:b": [1]})
    with pytest.raises(sr.SaveRouterError, match=rf"lacks column '{lacks}:b' \(is it the one called '{lacks[1:]}:b'"):
        sr.from_frame(wide.rename(columns={f"{lacks}:b": f"{lacks[1:]}:b"}))


def test_texts_that_are_kept_as_bytes(tmp_path):
    frame = table()
    for column in ("query_id", "prompt", "model", "cost"):
        frame[column] = frame[column].map(str.encode)
    frame.to_parquet(tmp_path / "log.parquet")
    assert same(sr.load(tmp_path / "log.parquet"), sr.from_frame(table())) and same(
        sr.from_frame(frame), sr.from_frame(table())
    )
    with pytest.raises(sr.SaveRouterError, match="column 'prompt': a bytes is no text"):
        sr.from_frame(table().assign(prompt=b"\xff"))


def test_lists_in_parquet_are_refused_by_name(tmp_path):
    table().assign(prompt=[["a", "b"]] * 4, tools=[{"x": 1}] * 4).to_parquet(tmp_path / "log.parquet")
    with pytest.raises(sr.SaveRouterError, match="log.parquet, column 'prompt': a list is no text; join its parts"):
        sr.load(tmp_path / "log.parquet")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "cp1252"])
def test_an_encoding_is_undone_part_by_part(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(opening, "PART", 7)  # which cuts characters
    frame = table().replace("gpt", "gpt é" if encoding == "cp1252" else "gpt é😀")
    assert same(sr.load(csv(frame, tmp_path / "log.csv", encoding)), sr.from_frame(frame))


def test_names_of_models_are_stripped():
    """A space at the end made a second model of it, silently."""
    rows = [(q, p, model + " " * (q == "q2"), *rest) for q, p, model, *rest in ROWS]
    assert sr.from_frame(table(rows)).models == ("gpt", "tiny")
    wide = pd.DataFrame({"query_id": [1], "prompt": ["p"], "quality:gpt ": [1], "cost: gpt": [2]})
    assert sr.from_frame(wide).models == ("gpt",)


def test_without_ids_equal_prompts_are_one_query():
    work = sr.from_frame(table().drop(columns="query_id"))
    assert work.query_ids.tolist() == ["1", "2"] and "equal prompts are one query" in work.provenance[1]
    twice = pd.concat([table(), table()]).drop(columns="query_id")
    with pytest.raises(
        sr.SaveRouterError, match=r"row 5 .*: prompt 'Say.* and model 'gpt' appear twice; give them a column 'query_"
    ):
        sr.from_frame(twice)
    wide = pd.DataFrame({"prompt": ["p", "p"], "quality:m": [0, 1], "cost:m": [1, 1]})
    assert sr.from_frame(wide).query_ids.tolist() == ["1", "2"]


def test_ids_stay_what_they_are(tmp_path):
    rows = [
        {"query_id": id_, "prompt": f"p{id_}", "model": "m", "quality": 1, "cost": 0.1}
        for id_ in ("007", 7, "1e3", True)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert sr.load(tmp_path / "log.jsonl").query_ids.tolist() == ["007", "7", "1e3", "True"]
    assert sr.load(csv(pd.DataFrame(rows[:3]), tmp_path / "log.csv")).query_ids.tolist() == ["007", "7", "1e3"]


@pytest.mark.parametrize("kind", ["pyarrow", "numpy_nullable", "category", "object"])
def test_frames_of_any_kind_are_read(kind):
    frame = table().astype({"quality": float, "cost": float}).assign(when=pd.to_datetime(["2026-01-31"] * 3 + [None]))
    changed = frame.convert_dtypes(dtype_backend=kind) if "_" in kind or kind == "pyarrow" else frame.astype(kind)
    assert (
        same(sr.from_frame(changed), sr.from_frame(frame)) and sr.from_frame(changed).moments["when"][0] == 1769817600
    )


def test_prompts_of_many_lines_are_no_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_CELLS", 100)
    frame = table().assign(prompt="one\ntwo\n" * 100)
    assert same(sr.load(csv(frame, tmp_path / "log.csv")), sr.from_frame(frame))


def test_a_header_may_go_over_two_lines(tmp_path):
    path = csv(table().rename(columns={"query_id": "query\nid", "cost": "cost\xa0"}), tmp_path / "log.csv")
    assert same(sr.load(path), sr.from_frame(table()))
    path.write_bytes(path.read_bytes() + b"q3,p,gpt,bad,1\n")
    with pytest.raises(sr.SaveRouterError, match="log.csv, line 9: quality of query 'q3' is 'bad'"):
        sr.load(path)


def test_half_a_character_in_json_is_kept(tmp_path):
    """A log that cuts texts at a length may cut a character in two; JSON can say so."""
    (tmp_path / "log.jsonl").write_text(
        '{"query_id": "q", "prompt": "cut \\ud83d", "model": "m", "quality": 1, "cost": 1}'
    )
    assert sr.load(tmp_path / "log.jsonl").prompts.tolist() == ["cut \ud83d"]


def test_an_index_with_a_name_is_a_column(tmp_path):
    frame = table().set_index("query_id")
    frame.to_parquet(tmp_path / "log.parquet")
    assert same(sr.load(tmp_path / "log.parquet"), sr.from_frame(frame)) and same(
        sr.from_frame(frame), sr.from_frame(table())
    )


def test_lines_are_those_of_an_editor(tmp_path):
    """The header is line 1, a prompt may go over several lines, and blank lines count."""
    text = '\nquery_id,prompt,model,quality,cost\nq1,"one\ntwo\r\nthree",gpt,1,1\n\nq1,"one\ntwo\r\nthree",tiny,{},1\n'
    path = tmp_path / "log.csv"
    path.write_bytes(text.format("good").encode())
    with pytest.raises(
        sr.SaveRouterError, match="log.csv, line 7: quality of query 'q1' is 'good'; expected a number, true"
    ):
        sr.load(path)
    path.write_bytes(text.format("1.5").encode())
    with pytest.raises(
        sr.SaveRouterError,
        match="log.csv, line 7: quality of model 'tiny' for query 'q1' is 1.5; expected 0..1; the table",
    ):
        sr.load(path)
    path.write_bytes(text.format("1").encode() + b"q2,an, unquoted prompt,gpt,1,1\n")
    with pytest.raises(
        sr.SaveRouterError, match="log.csv, line 10 has 6 columns and the header 5; put texts that hold ','"
    ):
        sr.load(path)
    path.write_bytes(text.format("1").encode() + b'q2,"never closed,gpt,1,1\nq3,p,gpt,1,1\n')
    with pytest.raises(sr.SaveRouterError, match="log.csv, line 10.* quote"):
        sr.load(path)
    path.write_bytes(text.format("1").encode() + b'q2,p,gpt,1,"1\nq3,p,gpt,1,1\n')
    with pytest.raises(sr.SaveRouterError, match="log.csv, line 10: a quote is opened and never closed"):
        sr.load(path)
    lines = [
        json.dumps({"query_id": n, "prompt": f"p\u2028{n}", "model": "m", "quality": 1 - 2 * (n == 3), "cost": 1})
        for n in range(5)
    ]
    (tmp_path / "log.jsonl").write_text("\n\n".join(lines), encoding="utf-8")
    with pytest.raises(sr.SaveRouterError, match="log.jsonl, line 7: quality of model 'm' for query '3' is -1"):
        sr.load(tmp_path / "log.jsonl")


@pytest.mark.parametrize("option", [{"columns": {"prompt": "p"}}, {"scale": (1, 5)}, {"prices": {"gpt": (1, 1)}}])
@pytest.mark.parametrize(
    "name", ["paretobandit", "recorded/sensebench", "simulated/routerbench", "original/routerbench"]
)
def test_what_is_built_in_takes_no_options_of_a_table(option, name):
    with pytest.raises(sr.SaveRouterError, match=f"{next(iter(option))} is for a table of your own; {name}"):
        sr.load(name, **option)


def test_two_hundred_thousand_rows_take_seconds(tmp_path):
    place = np.arange(200_000)
    rows = {"query_id": place // 10, "prompt": "prompt " + pd.Series(place // 10).astype(str), "model": place % 10}
    frame = pd.DataFrame({**rows, "quality": place % 2, "cost": place / 7, "created_at": "2026-01-31T10:00:00Z"})
    start = time.perf_counter()
    work = sr.load(csv(frame, tmp_path / "log.csv"))
    assert time.perf_counter() - start < 10 and work.quality.shape == (20_000, 10)  # a second, where nobody else works
    np.testing.assert_array_equal(work.cost.ravel(), frame["cost"])
