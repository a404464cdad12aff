"""SaveRouter's two published settings, and that tables say which was used."""

import pytest

import saverouter as sr
from saverouter.paper.settings import published_settings
from saverouter.studies import experiments


def test_the_two_published_settings():
    router = sr.SaveRouter()
    for name in ("llmrouterbench", "mixinstruct", "mmrbench", "routerbench", "routereval"):
        for settings in ("paper", "release"):
            assert set(published_settings(name, settings)) <= set(router.get_params())
    paper, release = (published_settings("original/mmrbench", settings) for settings in ("paper", "release"))
    assert "shrinkage" not in paper and (release["shrinkage"], release["residual_scale"]) == (120, 0.25)
    assert published_settings("routerbench")["residual_ridge"] == 100
    assert published_settings("routerbench", "release")["residual_ridge"] == 200
    assert published_settings("llmrouterbench")["residual_ridge"] == 200
    with pytest.raises(sr.SaveRouterError, match="did you mean 'release'"):
        published_settings("mmrbench", "realease")


def test_tables_say_which_settings_were_used(own_cache):
    work = sr.load("simulated/mmrbench", size=300)
    notes = {
        settings: experiments.main_runs({"": work}, "smoke", routers=("saverouter",), settings=settings)[""][
            "SaveRouter"
        ].note
        for settings in ("paper", "release")
    }
    assert notes == {"paper": "", "release": "settings of the release"}
