"""Searches that fit the first steps of a pipeline again, and searches that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
SIZES = [1, 3, 10]
def build(size=40):
    steps = [("pca", PCA(size)), ("svc", SVC())]
    return {pipeline}
def main(x, y, grid, sizes):
    table = {table}
    search = {search}
    search.fit(x, y)
"""
PARTS = {
    "pipeline": "Pipeline(steps)",
    "table": '{"svc__C": SIZES, "svc__gamma": [0.1, 1.0]}',
    "search": "GridSearchCV(build(), table, cv=3)",
}
INLINE = "GridSearchCV(make_pipeline(PCA(9), SVC()), {'svc__C': SIZES}).fit(x, y)"


def refitted(**changes):
    source = SOURCE
    for name, text in (PARTS | changes).items():
        source = source.replace(f"{{{name}}}", text)
    call = INLINE if changes.get("search") == INLINE else "search.fit(x, y)"
    return found(source, call, "lib:sklearn/pipeline.py:_fit_transform_one").get(
        "steps_fitted_again"
    )


@pytest.mark.parametrize(
    ("changes", "name", "settings"),
    [
        ({}, "Pipeline", "the 6 settings"),
        ({"pipeline": "make_pipeline(PCA(size), SVC())"}, "make_pipeline", "the 6 settings"),
        ({"table": '[{"svc__C": SIZES}, {"svc__gamma": SIZES}]'}, "Pipeline", "the 6 settings"),
        ({"table": '{"svc__C": sizes}'}, "Pipeline", "the settings"),
        ({"table": '{"svc": [SVC(), SVC(C=9), SVC(C=99)]}'}, "Pipeline", "the 3 settings"),
        ({"search": "RandomizedSearchCV(build(), param_distributions=table)"}, "Pipeline",
         "the settings"),
        ({"search": "HalvingGridSearchCV(estimator=build(), param_grid=table)"}, "Pipeline",
         "the settings"),
        ({"search": INLINE}, "make_pipeline", "the 3 settings"),
    ],
)  # fmt: skip
def test_refitted_steps(changes, name, settings):
    words = refitted(**changes)
    assert (words["name"], words["last"], words["settings"]) == (name, "svc", settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"pipeline": 'Pipeline(steps, memory="cache")'},
        {"table": 'table = {"svc__C": SIZES}; build.memory = 3'},
        # The settings change an earlier step too, or may do it.
        {"table": '{"svc__C": SIZES, "pca__n_components": SIZES}'},
        {"table": '[{"svc__C": SIZES}, {"pca__n_components": SIZES}]'},
        {"table": "grid"},
        {"table": '{"svc__C": SIZES}; table.update(grid)'},
        # One fit for each fold, or nearly.
        {"table": '{"svc__C": [1, 3]}'},
        {"pipeline": 'Pipeline([("svc", SVC())])'},
        {"pipeline": "Pipeline([*steps, (sizes, SVC())])"},
        {"pipeline": "make_pipeline(*sizes)"},
        {"pipeline": "SVC(C=size)"},
        {"search": "GridSearchCV(grid, table)"},
        {"search": "build()"},
    ],
)
def test_other_searches(changes):
    assert refitted(**changes) is None
