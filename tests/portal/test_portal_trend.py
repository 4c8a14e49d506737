"""Whether a program became faster, since when, and what was different then."""

from __future__ import annotations

import random

import pytest

from teho.model.listed_run import ListedRun
from teho.show.portal.trend import Change, changes_of, lasting_change


def run(number: int, time_s: float, **changed: object) -> ListedRun:
    values = {
        "runs": "/runs", "id": f"20261101-{number:06d}-train-aaaa", "outcome": "ok",
        "began_s": 1_800_000_000.0 + 3600 * number, "elapsed_s": time_s, "name": "",
        "command": "python train.py", "tags": {}, "user": "maija", "host": "g1", "cluster": "lumi",
        "partition": "gpu", "account": "project_1", "gpu": "NVIDIA A100-SXM4-80GB", "gpus": 1,
        "nodes": 1, "tasks": 1, "job_id": "", **changed,
    }  # fmt: skip
    return ListedRun(**values)  # type: ignore[arg-type]


def changes(times_s: list[float], scope: str = "") -> list[Change]:
    runs = [run(number, time_s) for number, time_s in enumerate(times_s)]
    return changes_of(runs, scope=scope)


@pytest.mark.parametrize(
    ("times_s", "place"),
    [
        ([100, 101, 60, 61], 2),
        ([100, 101, 99, 50, 51], 3),
        ([50, 51, 49, 100, 103, 98, 101], 3),
        # The larger of two changes; later ones do not hide it.
        ([100, 101, 100, 50, 51, 50, 40, 41, 40], 3),
        ([100, 101, 100, 90, 91, 90, 30, 31], 6),
        # A slow decrease has no place.
        ([100, 97, 94, 91, 88, 85, 82, 79, 76, 73, 70], None),
        ([100, 101, 100, 99, 100], None),
        # One exception is not a lasting change, at any place.
        ([100, 101, 30, 100, 101], None),
        ([100, 101, 100, 101, 30], None),
        ([30, 100, 101, 100, 101], None),
        # The time varies more than it changes.
        ([100, 60, 100, 60, 70, 95, 61], None),
        ([100, 101, 97, 98], None),
        ([100, 50], None),
        ([100], None),
        ([], None),
    ],
)
def test_where_the_time_changed(times_s: list[float], place: int | None) -> None:
    assert lasting_change(times_s) == place


def test_times_that_only_vary_have_no_change() -> None:
    chance = random.Random(1)
    for _ in range(200):
        times_s = [100 * chance.uniform(0.99, 1.01) for _ in range(30)]
        assert lasting_change(times_s) is None


def test_what_was_different_is_named() -> None:
    before = [run(number, 120.0 + number, tags={"batch": "32"}) for number in range(3)]
    after = [
        run(10 + number, 60.0 + number, gpus=2, tags={"batch": "64", "amp": "on"})
        for number in range(3)
    ]
    (change,) = changes_of([*before, *after])
    assert change.tone == "good"
    assert change.words.replace("\N{NO-BREAK SPACE}", " ").startswith("50 % less time since 2027-")
    assert change.words.replace("\N{NO-BREAK SPACE}", " ").endswith(
        ": 1 min 1 s instead of 2 min 1 s"
    )
    assert change.differences == (
        "GPUs: 1 × A100-SXM4-80GB → 2 × A100-SXM4-80GB",
        "tag amp: none → on",
        "tag batch: 32 → 64",
    )
    assert change.compared == f"compare?run={before[-1].id}&run={after[0].id}"


def test_a_newest_run_that_differs_has_a_sentence_of_its_own() -> None:
    lasting, newest = changes([100, 101, 50, 51, 50, 80])
    assert "less time since" in lasting.words
    assert newest.words == "60 % more time than the run before"
    assert newest.tone == "warning"
    (only,) = changes([100, 101, 50, 51, 50, 51])
    assert "less time since" in only.words
    assert [one.words for one in changes([100, 102])] == ["same time as the run before"]
    assert [one.words for one in changes([100, 30])] == ["70 % less time than the run before"]


def test_shared_runs_are_compared_with_their_owner_and_unknown_times_say_nothing() -> None:
    (_, newest) = changes([100, 101, 50, 51, 50, 80], scope="group")
    assert newest.compared == (
        "compare?run=maija%3A20261101-000004-train-aaaa&run=maija%3A20261101-000005-train-aaaa"
    )
    assert changes([100]) == []
    assert changes([]) == []
    assert changes([0.0, 100.0]) == []


def test_a_change_of_the_code_is_named() -> None:
    old = {"revision": "1a2b3c4d5e6f", "program": "train.py 0000aaaa"}
    before = [run(number, 120.0, **old) for number in range(3)]
    for new, expected in (
        ({"revision": "6f5e4d3c2b1a", "program": "train.py 1111bbbb"},
         ("commit: 1a2b3c4d5e6f → 6f5e4d3c2b1a", "train.py was changed")),
        ({**old, "program": "train.py 1111bbbb"}, ("train.py was changed",)),
        (old, ()),
        # What is not known does not differ.
        ({}, ()),
    ):  # fmt: skip
        after = [run(10 + number, 60.0, **new) for number in range(3)]
        (change,) = changes_of([*before, *after])
        assert change.differences == expected
