"""Qualities, costs, scales, tokens and dates as people write them."""

import numpy as np
import pandas as pd
import pytest

import saverouter as sr


def log(quality=(1, 0, 0.5), cost=(1, 2, 3), **more) -> pd.DataFrame:
    names = [f"q{n}" for n in range(len(quality))]
    columns = {"query_id": names, "prompt": names, "model": "m", "quality": list(quality)}
    return pd.DataFrame({**columns, **({"cost": list(cost)} if cost else {}), **more})


@pytest.mark.parametrize("written, meant", [
    (["True", "false", "TRUE"], [1, 0, 1]),
    (["yes", "No", " YES "], [1, 0, 1]),
    ([True, False, True], [1, 0, 1]),
    (["85%", "8.5 %", "0%"], [0.85, 0.085, 0]),
    (["0,85", "1", "0,125"], [0.85, 1, 0.125]),
    (["1e-1", ".5", "1."], [0.1, 0.5, 1]),
    ([1, "0.25", False], [1, 0.25, 0]),
])  # fmt: skip
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_qualities_as_people_write_them(written, meant, layout):
    frame = log(written)
    if layout == "wide":
        frame = frame.drop(columns="model").rename(columns={"quality": "quality:m", "cost": "cost:m"})
    np.testing.assert_array_equal(sr.from_frame(frame).quality[:, 0], meant)


@pytest.mark.parametrize("written, meant", [
    (["$0.002", "$ 1", "2"], [0.002, 1, 2]),
    (["0.002 €", "1€", "€2"], [0.002, 1, 2]),
    (["USD 0.002", "1 usd", "US$2"], [0.002, 1, 2]),
    (["1,234.5", "12", "1,000,000"], [1234.5, 12, 1e6]),
    (["1,234", "0.5", "7"], [1234, 0.5, 7]),
    (["1.234,5", "0,5", "1.000"], [1234.5, 0.5, 1000]),
    (["1 234,5", "0,5", "2"], [1234.5, 0.5, 2]),
    (["€0,002", "1e-3", "2,5E-05"], [0.002, 1e-3, 2.5e-5]),
    (["0.1", "0.30000000000000004", "6.685705615283313e-05"], [0.1, 0.30000000000000004, 6.685705615283313e-05]),
])  # fmt: skip
def test_costs_as_people_write_them(written, meant):
    np.testing.assert_array_equal(sr.from_frame(log(cost=written)).cost[:, 0], meant)


@pytest.mark.parametrize("column, written, message", [
    ("cost", ["1", "1,234", "2"], "row 2 .*: cost of query 'q1' is '1,234'; expected 1234 or 1.234, whichever is meant"),
    ("cost", ["0,5", "0.5", "2"], "row 1 .*: cost of query 'q0' is '0,5'; expected commas and points used one way, .* '0.5'"),
    ("cost", ["$1", "€1", "2"], "the table has costs in EUR and USD; convert them into one currency"),
    ("cost", ["1", "5%", "2"], "row 2 .*: cost of query 'q1' is '5%'; expected a number, or nothing"),
    ("cost", ["1", "yes", "2"], "row 2 .*: cost of query 'q1' is 'yes'"),
    ("cost", ["1", "1_0", "2"], "row 2 .*: cost of query 'q1' is '1_0'"),
    ("cost", ["1", "$", "cheap"], "row 2 .*: cost of query 'q1' is '.'"),
    ("quality", ["1", "good", "0"], "row 2 .*: quality of query 'q1' is 'good'; expected a number, true or false, yes or no"),
    ("quality", ["1", "%", "0"], "row 2 .*: quality of query 'q1' is '%'"),
    ("quality", ["1", "850%", "0"], "row 2 .*: quality of model 'm' for query 'q1' is 8.5"),
    ("prompt", ["a", ["b", "c"], "d"], "the table, column 'prompt': a list is no text; join its parts"),
    ("cost", [1, {"usd": 2}, 3], "the table, column 'cost': a dict is no text"),
])  # fmt: skip
def test_what_could_mean_two_things_is_refused(column, written, message):
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.from_frame(log().assign(**{column: written}))


@pytest.mark.parametrize("quality, scale", [
    ([1, 5, 3], (1, 5)), (["2", "4", "5"], (1, 5)), ([0, 4, 5], (0, 5)), ([0, 10, 7], (0, 10)), ([12, 100, 99.5], (0, 100)),
])  # fmt: skip
def test_a_scale_is_asked_for_and_then_heeded(tmp_path, quality, scale):
    path = tmp_path / "log.csv"
    log(quality).to_csv(path, index=False)
    remedy = f'sr.load("log.csv", scale=({scale[0]}, {scale[1]}))'
    with pytest.raises(sr.SaveRouterError, match="log.csv, line .* expected 0..1") as refused:
        sr.load(path)
    assert str(refused.value).endswith(remedy)
    work = eval(remedy.replace("log.csv", str(path)))
    expected = (np.array(quality, dtype=float) - scale[0]) / (scale[1] - scale[0])
    np.testing.assert_array_equal(work.quality[:, 0], expected)
    assert f"qualities are rescaled from {scale[0]}..{scale[1]} to 0..1" in work.provenance


def test_one_slip_is_no_scale():
    """One value above 1 among many is named; the others stay fractions."""
    quality = [0.5] * 20 + [7.5]
    with pytest.raises(
        sr.SaveRouterError, match="row 21 .*: quality of model 'm' for query 'q20' is 7.5; expected 0..1 or missing"
    ):
        sr.from_frame(log(quality, [1] * 21))


def test_what_is_off_the_scale_is_refused():
    with pytest.raises(
        sr.SaveRouterError, match="row 2 .*: quality of model 'm' for query 'q1' is 6; expected 1..5, as scale says"
    ):
        sr.from_frame(log([1, 6, 3]), scale=(1, 5))
    with pytest.raises(sr.SaveRouterError, match="row 2 .* is '85%'; expected a number on the scale"):
        sr.from_frame(log(["1", "85%", "3"]), scale=(0, 100))
    for scale in (5, (1, 1), (0, np.inf), ("a", 2), (1, 2, 3)):
        with pytest.raises(sr.SaveRouterError, match="scale is .*; expected the worst and the best quality"):
            sr.from_frame(log(), scale=scale)
    np.testing.assert_array_equal(sr.from_frame(log([1, 6, 3.5]), scale=(6, 1)).quality[:, 0], [1, 0, 0.5])


TOKENS = {"input_tokens": ["1,000", "20", None], "output_tokens": [10, 30, 5]}
PRICES = {"m": (1e-6, 1e-5), "another": (1, 1)}


@pytest.mark.parametrize("names", [("input_tokens", "output_tokens"), ("Prompt Tokens", "completion-tokens")])
def test_costs_come_from_tokens_and_prices(names):
    tokens = dict(zip(names, TOKENS.values(), strict=True))
    frame = log((1, 0, 1), ()).assign(**tokens)
    frame = pd.concat([frame, frame.iloc[:1].assign(query_id="q2", prompt="q2", model="another")])
    work = sr.from_frame(frame, prices=PRICES)
    np.testing.assert_allclose(work.cost, [[1.1e-3, np.nan], [3.2e-4, np.nan], [np.nan, 1010]], rtol=1e-12)
    assert not work.available[2, 0] and "costs are computed from tokens and prices" in work.provenance
    assert "1 pairs without tokens or without a quality count as unavailable" in work.provenance
    wide = pd.DataFrame({"prompt": ["p"], "quality:m": 1, f"{names[0]}:m": 5, f"{names[1]}: m": 2})
    np.testing.assert_allclose(sr.from_frame(wide, prices=PRICES).cost, 2.5e-5)


@pytest.mark.parametrize("written, meant", [
    (["1,234", "20", "5"], [1234, 20, 5]), (["1.234,0", "20", "1.000"], [1234, 20, 1000]), (["1.234.567", "2.000", "5"],
    [1234567, 2000, 5]), (["12.5", "20.0", "1000.0"], [12.5, 20, 1000]), ([12.125, 20, 5], [12.125, 20, 5]),
])  # fmt: skip
def test_tokens_as_people_write_them(written, meant):
    work = sr.from_frame(log(cost=(), input_tokens=written, output_tokens=0), prices={"m": (1, 1)})
    np.testing.assert_array_equal(work.cost[:, 0], meant)


def test_a_point_within_tokens_may_part_thousands():
    """1.234 tokens would be a thousandth of what they are in half of Europe."""
    with pytest.raises(
        sr.SaveRouterError, match="row 2 .*: input_tokens of query 'q1' is '1.234'; expected 1234 or 1.234"
    ):
        sr.from_frame(log(cost=(), input_tokens=["950", "1.234", "20"], output_tokens=1), prices={"m": (1, 1)})


def test_prices_and_tokens_are_checked():
    frame = log(cost=()).assign(input_tokens=1, output_tokens=[1, 2, -3])
    for options, message in (
        ({}, r"the table lacks column 'cost', but has tokens; give .*: sr.from_frame\(table, prices={"),
        ({"prices": {"gpt": (1, 2)}}, "prices has no price for 'm'; it has gpt"),
        ({"prices": {"m": 3}}, "the price of 'm' is 3; expected .input, output. per token"),
        ({"prices": {"m": (-1, 2)}}, r"the price of 'm' is \(-1, 2\)"),
        ({"prices": 3}, "prices is 3; expected"),
        ({"prices": PRICES}, "row 3 .*: output_tokens of model 'm' for query 'q2' is -3; expected a number >= 0"),
    ):
        with pytest.raises(sr.SaveRouterError, match=message):
            sr.from_frame(frame, **options)
    with pytest.raises(sr.SaveRouterError, match="has costs, and prices were given too; leave prices out, or drop"):
        sr.from_frame(frame.assign(cost=1), prices=PRICES)
    with pytest.raises(sr.SaveRouterError, match="lacks columns 'input_tokens', 'output_tokens'"):
        sr.from_frame(log(cost=()), prices=PRICES)


def test_rows_without_a_number_are_unavailable_pairs():
    frame = pd.concat([log(), log(["", "nan", None], ["N/A", "", None]).assign(model="other")])
    work = sr.from_frame(frame)
    assert work.available.tolist() == [[True, False]] * 3


def test_columns_in_time_are_kept():
    more = {
        "created_at": ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+02:00", "2026/02/01"],
        "day": pd.to_datetime(["2026-01-31", None, "2026-02-01"]), "turn": ["3", "N/A", "1"], "latency": [0.5, 0.25, 1],
        "american": ["01/02/2026", "02/02/2026", "03/02/2026"], "flag": [True, False, True], "user": ["7", "x", "8"],
        "nested": [[1], [2], [3]], "nothing": None, "odd": [np.inf, 1, 2],
    }  # fmt: skip
    kept = sr.from_frame(log(**more)).moments
    assert list(kept) == ["created_at", "day", "turn", "latency"]
    np.testing.assert_array_equal(kept["created_at"] - kept["created_at"][1], [3600, 0, 13 * 3600])
    np.testing.assert_array_equal(kept["day"], [1769817600, np.nan, 1769904000])
    np.testing.assert_array_equal(kept["turn"], [3, np.nan, 1])
    both = pd.concat([log(), log().assign(model="other")]).assign(when=[5, 6, 7, 4, 8, None])
    np.testing.assert_array_equal(sr.from_frame(both).moments["when"], [4, 6, 7])  # the earliest of a query's rows
