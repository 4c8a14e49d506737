"""Forests that a loop over their sizes grows again, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

MADE = "forest = RF(n_estimators=size, max_depth=9, random_state=fold)"
FIT = "forest.fit(x[train], y[train])"
SOURCE = """
from sklearn.ensemble import (
    ExtraTreesRegressor, GradientBoostingClassifier, RandomForestClassifier as RF,
)
SIZES = [50, 100, 150, 200]
def main(x, y, folds, sizes, test):
    for fold, train in enumerate(folds.split(x)):
        {loop}
            {made}
            {fit}
            print({used})
"""


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "forest_of_sizes_on_one_core"),
        ({"loop": "for size in (50, 100, 150):"}, "forest_of_sizes_on_one_core"),
        ({"loop": "for size in range(20, 300, 20):"}, "forest_of_sizes_on_one_core"),
        ({"made": "forest = RF(size, n_jobs=-1)"}, "forest_of_sizes"),
        ({"made": "forest = ExtraTreesRegressor(size)"}, "forest_of_sizes_on_one_core"),
        ({"made": "forest = GradientBoostingClassifier(n_estimators=size)"}, "forest_of_sizes"),
        ({"made": "pass", "fit": f"forest = RF(size){FIT.removeprefix('forest')}"},
         "forest_of_sizes_on_one_core"),
        ({"used": "score(forest, x)"}, "forest_of_sizes_on_one_core"),
        # ---- which look like it ----
        ({"loop": "for size in sizes:"}, None),
        ({"loop": "for size in [200, 100, 50]:"}, None),  # `warm_start` needs growing sizes
        ({"loop": "for size in [1, 2, 500]:"}, None),  # little is saved
        ({"loop": "for depth in [50, 100]:"}, None),
        ({"made": "forest = RF(size, max_depth=size)"}, None),
        ({"made": "forest = RF(size, oob_score=True)"}, None),
        ({"made": "forest = RF(3 * size)"}, None),
        ({"made": "forest = GradientBoostingClassifier(size)"}, None),
        ({"made": "train = next(folds); forest = RF(size)"}, None),  # other data
        ({"fit": "forest.fit(x[:size], y[:size])"}, None),
        ({"used": "forests.append(forest)"}, None),
        ({"used": "forest"}, "forest_of_sizes_on_one_core"),
        ({"made": "forest = other(size)"}, None),
    ],
)  # fmt: skip
def test_forests_of_sizes(changes, name):
    parts = {"loop": "for size in SIZES:", "made": MADE, "fit": FIT, "used": "forest.score(x, y)"}
    source = SOURCE.format(**(parts | changes))
    active = changes.get("fit", FIT).removeprefix("forest = ")
    assert list(found(source, active)) == ([name] if name else [])


def test_the_code_for_forests():
    parts = {"loop": "for size in SIZES:", "made": MADE, "fit": FIT, "used": "0"}
    words = found(SOURCE.format(**parts), FIT)["forest_of_sizes_on_one_core"]
    assert words["before"] == "forest = RF(max_depth=9, random_state=fold, warm_start=True)"
    assert words["new"] == "forest.set_params(n_estimators=size)"
    assert (words["loop"], words["line"]) == ("15", "16")
    fit = FIT.removeprefix("forest")
    at_once = SOURCE.format(**parts | {"made": "pass", "fit": f"forest = RF(size){fit}"})
    words = found(at_once, f"RF(size){fit}")["forest_of_sizes_on_one_core"]
    assert words["before"] == "forest = RF(warm_start=True)"
    assert words["new"] == f"forest.set_params(n_estimators=size){fit}"
