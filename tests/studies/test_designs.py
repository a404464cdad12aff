"""The studies behind the notebooks: what they compare, what they count, and how they are shown."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter import claims, experiments, plots, show, studies
from saverouter.acquisition import within_groups
from saverouter.published import published

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAVEROUTER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def work():
    return make_workload(n=600, models=6, seed=4)


# A newcomer


def test_within_groups_takes_a_share_of_each_group_rounded_up():
    groups = np.repeat([0, 1, 2], [25, 7, 100])
    available = np.ones(132, bool)
    available[25:32] = [True, False, False, False, False, False, False]
    rows = within_groups(groups, available, 0.1, seed=0)
    assert np.bincount(groups[rows]).tolist() == [3, 1, 10] and available[rows].all()
    assert (np.diff(rows) > 0).all()
    assert within_groups(groups, available, 1.0, seed=0).tolist() == np.flatnonzero(available).tolist()
    assert (within_groups(groups, available, 0.1, seed=1) != rows).any()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_newcomer_is_bought_on_its_share_and_the_old_pool_as_before(missing):
    train, _ = make_workload(n=1000, missing=missing, seed=2).split(0.5)
    bought = {}
    for share in (0.1, 1.0):
        feedback = train.feedback()
        router = sr.SaveRouter(k=2, newcomer="model-1", newcomer_share=share).fit(train.queries, feedback)
        bought[share] = feedback.observations
        expected = within_groups(router.groups_, train.available[:, 1], share, 42)
        assert sorted(bought[share].query("model == 'model-1'")["row"]) == expected.tolist()
        assert feedback.spent == pytest.approx(bought[share]["cost"].sum())
    old, older = (bought[share].query("model != 'model-1'") for share in (0.1, 1.0))
    pd.testing.assert_frame_equal(old, older)
    others = np.delete(train.available, 1, axis=1).sum(axis=1)
    assert len(old) == np.minimum(others, 2).sum()


def test_without_a_newcomer_nothing_changes(work):
    train, test = work.split()
    plain, named = (sr.SaveRouter(newcomer_share=share).fit(train.queries, train.feedback()) for share in (0.1, 0.7))
    np.testing.assert_array_equal(plain.predict_quality(test.queries), named.predict_quality(test.queries))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"newcomer": "model-9"}, "newcomer 'model-9' is not in the pool; it has model-0"),
        ({"newcomer": "model-1", "newcomer_share": 0}, "newcomer_share is 0; expected more than 0"),
        ({"newcomer": "model-1", "newcomer_share": 1.5}, "newcomer_share is 1.5"),
    ],
)
def test_an_impossible_newcomer_is_refused_before_anything_is_bought(work, options, message):
    feedback = work.feedback()
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.SaveRouter(**options).fit(work.queries, feedback)
    assert feedback.spent == 0


# The studies


def test_ablations_change_one_thing_each(cache, work):
    table = studies.ablations(work, seeds=(1, 2, 3))
    assert table["variant"].value_counts().to_dict() == {
        name: 3 if name == "Random-K" else 1 for name in studies.ABLATIONS
    }
    assert list(dict.fromkeys(table["variant"])) == published("ablations")["variant"].tolist()
    short = studies.summary(table, ["benchmark", "part", "variant"]).set_index("variant")
    draws = table.loc[table["variant"] == "Random-K", "peak_score"]
    assert short.loc["Random-K", "peak_score"] == draws.mean() and short.loc["Random-K", "peak_score_sd"] == draws.std()
    assert short.loc["SaveRouter", "peak_score"] == experiments.saverouter_run(work).result.peak_score
    assert np.isnan(short.loc["SaveRouter", "peak_score_sd"]) and short.loc["Random-K", "runs"] == 3


def test_a_mean_of_what_is_not_reached_is_not_made_up():
    frame = pd.DataFrame({"key": "x", "peak_score": [0.5, 0.6, 0.7], "cost_ratio": [0.2, 0.4, np.inf], "sa_bep": [10, 30, np.inf],
                          "sa_cr": [np.inf] * 3})  # fmt: skip
    (row,) = studies.summary(frame, ["key"]).to_dict("records")
    assert row["cost_ratio"] == 0.4 and np.isnan(row["cost_ratio_sd"]) and row["sa_cr"] == np.inf
    assert row["peak_score"] == pytest.approx(0.6) and row["reached"] == 2 and row["runs"] == 3


def test_leads_are_taken_on_the_same_splits():
    rows = [(split, name, 0.6 + 0.01 * split if name == "SaveRouter" else 0.59 + 0.01 * split) for split in (1, 2, 3)
            for name in studies.ABLATIONS]  # fmt: skip
    lead = studies.leads(pd.DataFrame(rows, columns=["split", "variant", "peak_score"]), "peak_score")
    assert np.allclose(lead["mean lead"], 0.01) and np.allclose(lead["from"], lead["to"])
    assert set(lead["splits with a lead"]) == {"3 of 3"} and "SaveRouter" not in lead.index


def test_hyperparameters_follow_the_published_grid(cache, work):
    table = studies.hyperparameters(work)
    keys = ["residual_scale", "shrinkage", "residual_ridge"]
    pd.testing.assert_frame_equal(table[keys], published("hyperparameters")[keys])
    expected = experiments.saverouter_run(
        work, residual_scale=4.0, shrinkage=40.0, residual_ridge=100.0
    ).result.peak_score
    assert table.loc[table["residual_scale"] == 4, "peak_score"].item() == expected
    assert table["supervision_cost"].nunique() == 1


def test_budgets_are_the_published_ones(cache):
    small = sr.load("simulated/mmrbench", size=400)
    curve = studies.k_scaling([small], seeds=(1, 2))
    ours = curve[curve["policy"] == "ucb"]
    assert ours["k"].tolist() == list(range(1, 10)) and len(curve) == 27
    assert ours["supervision_cost"].is_monotonic_increasing
    picked = studies.best_k(ours.assign(cost_ratio=np.inf, sa_cr=np.inf, sa_bep=range(9, 0, -1)))
    assert picked.loc["mmrbench"].tolist()[1:] == [0, 9, 0]


def test_arrivals_are_told_by_price(work):
    learn = work.split()[0]
    found = studies.arrivals(work)
    order = [work.models[m] for m in np.argsort(learn.cost.mean(axis=0))]
    assert found == {"cheap": order[0], "median": order[3], "expensive": order[-1]}


def test_expansion_counts_and_charges_the_newcomer_alone(cache, work):
    rivals = experiments.main_runs({"": work}, routers=("knn", "uniroute", "wiserouter"))[""]
    table = studies.expansion(work, rivals).set_index("arrival")
    learn = work.split()[0]
    for arrival, model in studies.arrivals(work).items():
        feedback = learn.feedback()
        options = experiments.paper_options(work, newcomer=model, newcomer_share=0.1)
        sr.SaveRouter(**options).fit(learn.queries, feedback)
        paid = feedback.observations.query("model == @model")
        assert table.loc[arrival, "observations"] == len(paid)
        share = paid["cost"].sum() / learn.cost[:, learn.models.index(model)].sum()
        assert table.loc[arrival, "cost_share"] == pytest.approx(share)
    dense = [rivals[name].result.peak_score for name in ("kNN", "UniRoute")]
    assert (table["peak_score_dense"] == max(dense)).all()


def test_training_size_takes_the_best_dense_router_by_metric(cache, work):
    table = studies.training_size(work, "smoke", fractions=(0.2, 0.6))
    rivals = experiments.main_runs({"": work}, "smoke", routers=studies.DENSE, train=0.6)[""].values()
    assert table["dense_peak_score"].iloc[1] == max(run.result.peak_score for run in rivals)
    assert table["dense_cost_ratio"].iloc[1] == min(run.result.cost_ratio for run in rivals)
    assert table["supervision_cost"].is_monotonic_increasing


def test_seeds_shuffle_the_split_and_intervals_cover_the_mean(cache, work):
    table = studies.over_seeds([work], range(42, 45), routers=("saverouter", "inferencedynamics"))
    assert len(table) == 6 and table.groupby("method")["best_single"].nunique().gt(1).all()
    first = table.query("method == 'SaveRouter' and seed == 42")["peak_score"].item()
    assert first == experiments.saverouter_run(work).result.peak_score
    row = studies.main_row(table).loc["small"]
    assert row["from"] < row["points above"] < row["to"] and row["reached"].endswith("of 3")
    assert studies.interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-3)
    assert studies.interval([1.0, np.inf]) == (1.0, np.inf)


def test_caching_changes_the_bill_and_nothing_else(cache, work):
    runs = {"small": experiments.main_runs({"": work}, routers=("barp",))[""]}
    cached, fresh = studies.caching(runs).to_dict("records")
    assert cached["accounting"] == "cached" and cached["supervision_cost"] < fresh["supervision_cost"]
    assert cached["cost_ratio"] == fresh["cost_ratio"] and cached["peak_score"] == fresh["peak_score"]


def test_an_unknown_benchmark_is_told_where_to_look():
    with pytest.raises(sr.SaveRouterError, match="'routereval'.*llmrouterbench.*NOTEBOOK=08"):
        studies.workloads("routereval", "smoke")
    assert list(studies.workloads("mmrbench", "smoke")) == ["mmrbench"]


# How they are shown


def test_beside_matches_rows_by_their_keys():
    paper = published("k_scaling")
    here = paper[paper["k"] != 1].iloc[::-1].assign(peak_score=0.5).drop(columns="sa_cr")
    table = show.beside(here, paper, ["benchmark", "k"])
    assert table.loc[("routerbench", 8), ("P_s", "measured")] == 0.5
    assert table.loc[("routerbench", 8), ("P_s", "published")] == 0.809269
    assert ("SA-CR@1M", "measured") not in table and len(table) == 26
    other = show.beside(here.query("benchmark == 'mmrbench'").assign(benchmark="mine"), paper, ["benchmark", "k"])
    assert other["P_s", "published"].isna().all()
    html = show.pretty(
        show.beside(here.query("benchmark == 'mmrbench'"), paper.query("benchmark == 'mmrbench'"), ["k"])
    ).data
    assert "0.7541" in html and "18.2K" in html


def test_targets_are_printed_as_in_the_paper():
    paper = published("quality_targets").query("benchmark == 'mixinstruct'")
    entries = show.by_target(paper)
    assert entries.loc["SaveRouter", "0.9 Q_b"] == "0.5000 / 157.8K / 0.5789"
    assert entries.loc["TRouter", "1 Q_b"] == "1.0000 / inf / inf" and list(entries.index[:2]) == ["EmbedLLM", "kNN"]
    first = show.leaders(paper, "sa_bep")
    assert first["mixinstruct", 0.9] == "WISERouter" and first["mixinstruct", 1.0] == "SaveRouter"
    assert set(show.leaders(paper.assign(sa_bep=np.inf), "sa_bep")) == {"nobody"}


def test_statements_that_fail_stand_out():
    table = claims.judge("hyperparameters", published("hyperparameters").assign(peak_score=0.5))
    html = show.judged(table).data
    assert "does not hold" in html and html.count("font-weight: bold") >= 1
    holds = claims.judge("hyperparameters", published("hyperparameters"))
    assert "font-weight: bold" not in show.judged(holds).data


def test_panels_come_with_one_legend():
    import matplotlib.pyplot as plt

    for names, shown in ((["a"], 1), (["a", "b", "c"], 3), (list("abcd"), 4)):
        figure, axes = plots.panels(names)
        assert list(axes) == names and sum(ax.axison for ax in figure.axes) == shown
        for ax in axes.values():
            ax.plot([1, 2], label="line")
        plots.legend_below(figure)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["line"]
    plt.close("all")


def test_figures_draw_every_row(cache, work):
    import matplotlib.pyplot as plt

    table = studies.summary(studies.ablations(work, seeds=(1, 2)), ["benchmark", "part", "variant"])
    table.loc[0, "sa_bep"] = np.inf
    ax = plots.variants(table, published("ablations"), "sa_bep", plt.subplots()[1])
    assert [text.get_text() for text in ax.texts] == ["not reached"] and len(ax.get_yticklabels()) == 7
    curve = published("k_scaling").query("benchmark == 'routerbench'").assign(policy="ucb", best_single=0.8)
    curve = curve.assign(**{f"{metric}_sd": np.nan for metric in studies.METRICS})
    budget = plots.budget(curve, "sa_bep", plt.subplots()[1])
    drawn = budget.lines[0].get_ydata()
    assert np.isnan(drawn[0]) and drawn[1] == 25_041
    targets = plots.targets(published("quality_targets").query("benchmark == 'mmrbench'"), plt.subplots()[1])
    assert len(targets.lines) == 11
    arrivals = plots.arrivals(published("expansion").query("benchmark == 'mmrbench'"), plt.subplots()[1])
    assert arrivals.lines[2].get_ydata().tolist() == [0.7536] * 3
    seeds = pd.DataFrame({"benchmark": "b", "method": "m", "sa_bep": [10, 20, np.inf]})
    assert [text.get_text() for text in plots.seeds(seeds, "sa_bep", plt.subplots()[1]).texts] == ["1\nnever"]
    plt.close("all")
