"""A saved router: the same routes in another process, nothing of the training data, and nothing damaged is taken."""

import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import make_workload
from safetensors.numpy import load, save

import saverouter as sr
from saverouter.routers.shared import saving

ROUTERS = {
    "labels": ("saverouter", {}),
    "latent": ("saverouter", {"grouping": "latent"}),
    "global": ("saverouter", {"grouping": "global"}),
    "no residual": ("saverouter", {"residual_scale": 0.0}),
    "knn": ("knn", {"k": 20}),
    "late knn": ("knn", {"k": 20, "orbit": "late", "fraction": 0.5}),
}


def fitted(kind="labels", **workload):
    name, options = ROUTERS[kind]
    train, test = make_workload(**{"n": 500, "missing": 0.1, **workload}).split()
    return sr.make_router(name, **options).fit(train.queries, train.feedback()), train, test


@pytest.mark.parametrize("kind", ROUTERS)
def test_a_router_comes_back_to_the_last_bit(kind, tmp_path):
    router, _, test = fitted(kind)
    again = sr.load_router(router.save(tmp_path / "router"))
    for one, other in zip(router.estimates(test), again.estimates(test), strict=True):
        np.testing.assert_array_equal(one, other)
    assert type(again) is type(router) and again.get_params() == router.get_params() and again.models_ == router.models_
    assert [path.suffix for path in sorted((tmp_path / "router").iterdir())] == [".safetensors", ".json"]
    third = sr.load_router(again.save(tmp_path / "third"))  # a loaded one can be saved, and fitted again
    np.testing.assert_array_equal(third.predict_quality(test), router.predict_quality(test))
    train = make_workload(n=60)
    assert again.fit(train.queries, train.feedback()).provenance_ is None


ELSEWHERE = """
import sys
import numpy as np
import saverouter as sr
given = np.load(sys.argv[1])
router = sr.load_router(sys.argv[2])
queries = sr.Queries(given["prompts"].astype(object), vectors=given["vectors"] if "vectors" in given else None)
quality, cost = router.estimates(queries)
assert (quality == given["quality"]).all() and (cost == given["cost"]).all()
assert (router.route(queries, cost_weight=0.2) == given["routes"]).all()
assert (router.route(queries, policy=router.policy_) == given["served"]).all()
"""


@pytest.mark.parametrize("kind", ["labels", "latent", "knn"])
@pytest.mark.parametrize("with_vectors", [True, False])
def test_another_process_routes_alike(kind, with_vectors, tmp_path):
    router, _, test = fitted(kind, n=150, with_vectors=with_vectors)
    queries = sr.Queries(test.prompts, vectors=test.vectors)
    result = sr.evaluate(router, test, supervision_cost=0.0)
    router.save(tmp_path / "router", policy=result.policy)
    (quality, cost), given = router.estimates(queries), {} if test.vectors is None else {"vectors": test.vectors}
    routes, served = router.route(queries, cost_weight=0.2), router.route(queries, policy=result.policy)
    given |= {"quality": quality, "cost": cost, "routes": routes.astype(str), "served": served.astype(str)}
    np.savez(tmp_path / "given.npz", prompts=queries.prompts.astype(str), **given)
    command = [sys.executable, "-c", ELSEWHERE, tmp_path / "given.npz", tmp_path / "router"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["labels", "latent", "knn"])
def test_no_prompt_no_name_and_no_outcome_is_saved(kind, tmp_path):
    work = make_workload(n=400)
    prompts = [f"{prompt} secret{row}" for row, prompt in enumerate(work.prompts)]
    train = sr.Workload(
        query_ids=[f"identity{row}" for row in range(400)], prompts=prompts, tasks=work.tasks, models=work.models,
        quality=work.quality, cost=work.cost, vectors=work.vectors,
    )  # fmt: skip
    name, options = ROUTERS[kind]
    router = sr.make_router(name, **options).fit(train.queries, train.feedback())
    router.save(tmp_path / "router")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "router").iterdir())
    assert b"secret" not in kept.replace(b" secret", b"") and b"secret7" not in kept and b"identity" not in kept
    saved = load(next((tmp_path / "router").glob("*.safetensors")).read_bytes())
    rows = [name for name, array in saved.items() if array.shape[:1] == (400,)]
    main = json.loads((tmp_path / "router" / "router.json").read_text())
    if kind == "knn":
        assert sorted(rows) == ["cost_", "quality_", "vectors_"] and "row by row, the outcomes" in main["holds"]
    else:
        assert not rows and main["holds"] == "what it learnt: no prompt and no outcome"
        assert b"river" in kept  # what two prompts have in common, as the docstring says
    assert b"secret7" not in pickle.dumps(router)


def test_policy_certificate_costs_and_provenance_come_along(tmp_path):
    router, _, test = fitted(missing=0.0, n=1000)
    fresh = test
    certificate = sr.certify(router, fresh.queries, fresh.feedback(), reference="model-4", margin=3.0)
    again = sr.load_router(router.save(tmp_path / "router", certificate=certificate))
    assert again.policy_ == again.certificate_.policy == certificate.policy and again.certificate_ == certificate
    told = again.provenance_
    assert told["saverouter"] == sr.__version__ and told["training queries"] == 200 and told["encoder"] is None
    main = json.loads((tmp_path / "router" / "router.json").read_text())
    assert main["costs"] == dict(zip(router.models_, router.model_cost_.tolist(), strict=True))
    assert (again.route(test, policy=again.policy_) == router.route(test, policy=certificate.policy)).all()
    third = sr.load_router(again.save(tmp_path / "again"))
    assert third.certificate_ == certificate and third.provenance_["training queries"] == 200
    other, *_ = fitted(models=4)
    with pytest.raises(sr.SaveRouterError, match="was made for the pool"):
        other.save(tmp_path / "other", policy=certificate.policy)
    assert not (tmp_path / "other").exists()


def test_an_array_of_any_order_is_saved_right(tmp_path):
    router, _, test = fitted()
    expected = router.predict_quality(test)
    router.weights_, router.group_quality_ = np.asfortranarray(router.weights_), router.group_quality_.T.copy().T
    again = sr.load_router(router.save(tmp_path / "router"))
    np.testing.assert_array_equal(again.predict_quality(test), expected)


def test_a_save_that_fails_leaves_the_saved_router(tmp_path, monkeypatch):
    router, _, test = fitted()
    router.save(tmp_path / "router")
    before = router.predict_quality(test)
    real = saving.atomic_path
    for name in ("arrays-", saving.MAIN):

        def failing(path, name=name):
            if path.name.startswith(name):
                raise KeyboardInterrupt
            return real(path)

        monkeypatch.setattr(saving, "atomic_path", failing)
        with pytest.raises(KeyboardInterrupt):
            fitted("latent")[0].save(tmp_path / "router")
        np.testing.assert_array_equal(sr.load_router(tmp_path / "router").predict_quality(test), before)
    monkeypatch.undo()
    fitted("latent")[0].save(tmp_path / "router")
    assert sr.load_router(tmp_path / "router").grouping == "latent"
    assert len(list((tmp_path / "router").iterdir())) == 2  # what the interrupted ones left is gone


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    router, *_ = fitted()
    return router.save(tmp_path_factory.mktemp("saved") / "router")


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "router")


def arrays_of(folder):
    return next(folder.glob("arrays-*.safetensors"))


@pytest.mark.parametrize("part", ["router.json", "arrays"])
@pytest.mark.parametrize("damage", ["cut", "empty", "bit", "missing", "text", "pickle"])
def test_a_damaged_file_is_refused(copy, part, damage):
    path = copy / part if part == "router.json" else arrays_of(copy)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes({
            "cut": whole[:-9], "empty": b"", "bit": bytes(content), "text": b"\xff\xfe not ours", "pickle": pickle.dumps([1])
        }[damage])  # fmt: skip
    with pytest.raises(
        sr.SaveRouterError, match=r"router/(router\.json|arrays-\w+\.safetensors|:)|no saved router in router/"
    ):
        sr.load_router(copy)


def rewritten(folder, change=None, arrays=None):
    """Changed by somebody who knows how the digests are made."""
    main = json.loads((folder / "router.json").read_text())
    found = load(arrays_of(folder).read_bytes())
    arrays_of(folder).unlink()
    if arrays:
        arrays(found)
    content = save({name: np.ascontiguousarray(array) for name, array in found.items()})
    main["arrays"] = saving.hashlib.sha256(content).hexdigest()
    (folder / saving._arrays(main["arrays"])).write_bytes(content)
    if change:
        change(main)
    rest = {name: value for name, value in main.items() if name not in ("format", "version", "sha256")}
    main["sha256"] = saving._digest(rest)
    (folder / "router.json").write_text(json.dumps(main))
    return folder


CHANGES = {
    "newer": (lambda main: main.update(version=2), "written by a newer saverouter .format 2; this one reads 1"),
    "no version": (lambda main: main.update(version="1"), "is damaged, or was changed"),
    "foreign": (lambda main: main.update(format="model"), "is no saved router"),
    "router": (lambda main: main.update(router="os.system"), "no router in saverouter.ROUTERS is a 'os.system'"),
    "option": (lambda main: main["options"].update(kk=3), "has no option 'kk'"),
    "value": (lambda main: main["options"].update(k=-3), "k is -3"),
    "models": (lambda main: main["models"].pop(), "has a 'bought_' of 4 x 5 numbers; expected 4 x 4"),
    "twice": (lambda main: main["models"].__setitem__(0, "model-1"), "the same model twice"),
    "path": (lambda main: main.update(arrays="../../etc/passwd"), "names no file of arrays"),
    "kind": (lambda main: main.update(values=[]), "has no 'values' of the kind expected"),
    "no arrays": (lambda main: main.pop("arrays"), "has no 'arrays' of the kind expected"),
    "groups": (lambda main: main["values"].update(groups=1e9), "has a"),
    "groups as text": (lambda main: main["values"].update(groups="4"), "groups of the saved router in router is '4'"),
    "kind of groups": (lambda main: main["values"].update(groups_kind="magic"), "groups_kind .* is 'magic'"),
    "policy": (lambda main: main.update(policy={"kind": "exec"}), "kind of a policy is 'exec'"),
    "certificate": (lambda main: main.update(certificate={"bound": 1}), "a certificate has"),
    "vectors": (lambda main: main.update(own_vectors=7), "has a 'group_weights' of 4 x 4 numbers; expected 4 x 7"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_main_file_with_hostile_values_is_refused(copy, change):
    with pytest.raises(sr.SaveRouterError, match=CHANGES[change][1]):
        sr.load_router(rewritten(copy, CHANGES[change][0]))


ARRAYS = {
    "gone": (lambda arrays: arrays.pop("weights_"), "lacks 'weights_'"),
    "NaN": (lambda arrays: arrays["group_quality_"].fill(np.nan), "'group_quality_' with a number that is not finite"),
    "narrow": (lambda arrays: arrays.update(weights_=arrays["weights_"][:-1]), "'weights_' of .* expected"),
    "whole": (lambda arrays: arrays.update(weights_=arrays["weights_"].astype(int)), "'weights_' that is no array"),
    "flat": (lambda arrays: arrays.update(group_cost_=arrays["group_cost_"][0]), "'group_cost_' that is no array"),
    "words": (lambda arrays: arrays.update(words=np.frombuffer(b"[1, 2]", np.uint8)), "'words' that is no list of texts"),
    "no words": (lambda arrays: arrays.update(words=np.frombuffer(b"{", np.uint8)), "'words' that is no list of texts"),
    "idf": (lambda arrays: arrays.update(words_idf=arrays["words_idf"][1:]), "'words_idf' of"),
    "same word": (
        lambda arrays: arrays.update(words=np.frombuffer(
            json.dumps(["a"] * len(arrays["words_idf"])).encode(), np.uint8)), "repeats a term"
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", ARRAYS)
def test_arrays_with_hostile_values_are_refused(copy, change):
    saved = arrays_of(copy).read_bytes()
    assert load(saved)
    with pytest.raises(sr.SaveRouterError, match=ARRAYS[change][1]):
        sr.load_router(rewritten(copy, arrays=lambda found: ARRAYS[change][0](_writable(found))))


def _writable(arrays):
    arrays.update({name: array.copy() for name, array in arrays.items()})
    return arrays


def test_where_there_is_no_saved_router_it_says_so(tmp_path):
    (tmp_path / "file").write_text("{}")
    for place in ("nowhere", "file", "."):
        with pytest.raises(sr.SaveRouterError, match="no saved router in .*name the folder that router.save"):
            sr.load_router(tmp_path / place)


def test_what_cannot_be_saved_says_so(tmp_path):
    router, train, _ = fitted()
    with pytest.raises(sr.SaveRouterError, match="has not been fitted"):
        sr.SaveRouter().save(tmp_path / "router")
    with pytest.raises(sr.SaveRouterError, match="MLP cannot be saved: SaveRouter and KNN can"):
        sr.make_router("mlp", epochs=1).fit(train.queries, train.feedback()).save(tmp_path / "router")
    with pytest.raises(sr.SaveRouterError, match="file is a file; name a folder"):
        (tmp_path / "file").touch()
        router.save(tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(sr.SaveRouterError, match="full/ holds other files, e.g. thesis.tex"):
        router.save(tmp_path / "full")

    router.shrinkage = [1]
    with pytest.raises(sr.SaveRouterError, match="option 'shrinkage' of SaveRouter is"):
        router.save(tmp_path / "router")
    assert not (tmp_path / "router").exists()


def test_a_class_of_ones_own_is_found_where_it_is_registered(tmp_path, monkeypatch):
    class Mine(sr.SaveRouter):
        pass

    train, test = make_workload().split()
    router = Mine().fit(train.queries, train.feedback())
    router.save(tmp_path / "router")
    with pytest.raises(sr.SaveRouterError, match=r"no router in saverouter.ROUTERS is a 'Mine'.*register it before"):
        sr.load_router(tmp_path / "router")
    monkeypatch.setattr(sr.ROUTERS, "data", {**sr.ROUTERS.data, "mine": Mine})
    again = sr.load_router(tmp_path / "router")
    assert type(again) is Mine
    np.testing.assert_array_equal(again.predict_quality(test), router.predict_quality(test))
