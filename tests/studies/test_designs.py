"""The studies behind the notebooks: what they compare, what they count, and how they are shown."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.paper import paper_options
from saverouter.paper.published import published
from saverouter.studies import designs, experiments, intervals

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def work():
    return make_workload(n=600, models=6, seed=4)


def test_ablations_change_one_thing_each(cache, work):
    table = designs.ablations(work, seeds=(1, 2, 3))
    assert table["variant"].value_counts().to_dict() == {
        name: 3 if name == "Random-K" else 1 for name in designs.ABLATIONS
    }
    assert list(dict.fromkeys(table["variant"])) == published("ablations")["variant"].tolist()
    short = intervals.summary(table, ["benchmark", "part", "variant"]).set_index("variant")
    draws = table.loc[table["variant"] == "Random-K", "peak_score"]
    assert short.loc["Random-K", "peak_score"] == draws.mean() and short.loc["Random-K", "peak_score_sd"] == draws.std()
    assert short.loc["SaveRouter", "peak_score"] == experiments.saverouter_run(work).result.peak_score
    assert np.isnan(short.loc["SaveRouter", "peak_score_sd"]) and short.loc["Random-K", "runs"] == 3


def test_a_mean_of_what_is_not_reached_is_not_made_up():
    frame = pd.DataFrame({"key": "x", "peak_score": [0.5, 0.6, 0.7], "cost_ratio": [0.2, 0.4, np.inf], "sa_bep": [10, 30, np.inf],
                          "sa_cr": [np.inf] * 3})  # fmt: skip
    (row,) = intervals.summary(frame, ["key"]).to_dict("records")
    assert row["cost_ratio"] == 0.4 and np.isnan(row["cost_ratio_sd"]) and row["sa_cr"] == np.inf
    assert row["peak_score"] == pytest.approx(0.6) and row["reached"] == 2 and row["runs"] == 3


def test_leads_are_taken_on_the_same_splits():
    rows = [(split, name, 0.6 + 0.01 * split if name == "SaveRouter" else 0.59 + 0.01 * split) for split in (1, 2, 3)
            for name in designs.ABLATIONS]  # fmt: skip
    lead = intervals.leads(pd.DataFrame(rows, columns=["split", "variant", "peak_score"]), "peak_score")
    assert np.allclose(lead["mean lead"], 0.01) and np.allclose(lead["from"], lead["to"])
    assert set(lead["splits with a lead"]) == {"3 of 3"} and "SaveRouter" not in lead.index


def test_hyperparameters_follow_the_published_grid(cache, work):
    table = designs.hyperparameters(work)
    keys = ["residual_scale", "shrinkage", "residual_ridge"]
    pd.testing.assert_frame_equal(table[keys], published("hyperparameters")[keys])
    expected = experiments.saverouter_run(
        work, residual_scale=4.0, shrinkage=40.0, residual_ridge=100.0
    ).result.peak_score
    assert table.loc[table["residual_scale"] == 4, "peak_score"].item() == expected
    assert table["supervision_cost"].nunique() == 1


def test_budgets_are_the_published_ones(cache):
    small = sr.load("simulated/mmrbench", size=400)
    curve = designs.k_scaling([small], seeds=(1, 2))
    ours = curve[curve["acquisition"] == "ucb"]
    assert ours["k"].tolist() == list(range(1, 10)) and len(curve) == 27
    assert ours["supervision_cost"].is_monotonic_increasing
    picked = intervals.best_k(ours.assign(cost_ratio=np.inf, sa_cr=np.inf, sa_bep=range(9, 0, -1)))
    assert picked.loc["mmrbench"].tolist()[2:] == ["never", 9, "never"]
    scores = [0.5, 0.9, 0.98, *[0.995] * 5, 1.0]
    assert intervals.best_k(ours.assign(peak_score=scores)).loc["mmrbench"].tolist()[:2] == [4, 9]


def test_arrivals_are_told_by_price(work):
    learn = work.split()[0]
    found = designs.arrivals(work)
    order = [work.models[m] for m in np.argsort(learn.cost.mean(axis=0))]
    assert found == {"cheap": order[0], "median": order[3], "expensive": order[-1]}


def test_expansion_counts_and_charges_the_newcomer_alone(cache, work):
    rivals = experiments.main_runs({"": work}, routers=("knn", "uniroute", "wiserouter"))[""]
    table = designs.expansion(work, rivals).set_index("arrival")
    learn = work.split()[0]
    for arrival, model in designs.arrivals(work).items():
        feedback = learn.feedback()
        options = paper_options(work, newcomer=model, newcomer_share=0.1)
        sr.SaveRouter(**options).fit(learn.queries, feedback)
        paid = feedback.observations.query("model == @model")
        assert table.loc[arrival, "observations"] == len(paid)
        share = paid["cost"].sum() / learn.cost[:, learn.models.index(model)].sum()
        assert table.loc[arrival, "cost_share"] == pytest.approx(share)
    dense = [rivals[name].result.peak_score for name in ("kNN", "UniRoute")]
    assert (table["peak_score_dense"] == max(dense)).all()


def test_training_size_takes_the_best_dense_router_by_metric(cache, work):
    table = designs.training_size(work, "smoke", fractions=(0.2, 0.6))
    rivals = experiments.main_runs({"": work}, "smoke", routers=designs.DENSE, train=0.6)[""].values()
    assert table["dense_peak_score"].iloc[1] == max(run.result.peak_score for run in rivals)
    assert table["dense_cost_ratio"].iloc[1] == min(run.result.cost_ratio for run in rivals)
    assert table["supervision_cost"].is_monotonic_increasing


def test_seeds_shuffle_the_split_and_intervals_cover_the_mean(cache, work):
    table = designs.over_seeds([work], range(42, 45), routers=("saverouter", "inferencedynamics"))
    assert len(table) == 6 and table.groupby("method")["best_single"].nunique().gt(1).all()
    first = table.query("method == 'SaveRouter' and seed == 42")["peak_score"].item()
    assert first == experiments.saverouter_run(work).result.peak_score
    row = intervals.main_row(table).loc["small"]
    assert row["from"] < row["points above"] < row["to"] and row["reached"].endswith("of 3")
    assert intervals.interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-3)
    assert intervals.interval([1.0, np.inf]) == (1.0, np.inf)


def test_caching_changes_the_bill_and_nothing_else(cache, work):
    runs = {"small": experiments.main_runs({"": work}, routers=("barp",))[""]}
    cached, fresh = designs.caching(runs).to_dict("records")
    assert cached["accounting"] == "cached" and cached["supervision_cost"] < fresh["supervision_cost"]
    assert cached["cost_ratio"] == fresh["cost_ratio"] and cached["peak_score"] == fresh["peak_score"]


def test_an_unknown_benchmark_is_told_where_to_look():
    with pytest.raises(sr.SaveRouterError, match="'routereval'.*llmrouterbench.*NOTEBOOK=08"):
        designs.workloads("routereval", "smoke")
    assert list(designs.workloads("mmrbench", "smoke")) == ["mmrbench"]


# How they are shown
