"""Results of workers that the program only reduces, from the source."""

from __future__ import annotations

import re

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

POOL = """
from joblib import Parallel, delayed
def curve(frames):
    return frames.mean(axis=(1, 2))
def main(pool, table):
    rows = []
    for frames in pool.imap(simulate, table):
        rows.append(curve(frames))
    return rows
"""
LOOP = "for frames in pool.imap(simulate, table):"


def found(source, loop):
    calls = find_slow_calls(*stack_of(source, loop))
    return next((one for one in calls if one.name == "results_reduced_late"), None)


def changed(source, *changes):
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize(
    "loop",
    [
        LOOP,
        "for frames in pool.imap_unordered(simulate, table, chunksize=4):",
        "for frames in executor.map(simulate, table):",
        "for frames in Parallel(n_jobs=2)(delayed(simulate)(f) for f in table):",
        "for frames, case in zip(workers(delayed(simulate)(f) for f in table), table):",
        "for n, frames in enumerate(pool.imap(simulate, table)):",
        "for frames in tqdm(pool.imap(simulate, table)):",
    ],
)
def test_names_what_the_worker_could_return(loop):
    one = found(changed(POOL, LOOP, loop), loop)
    assert one.at.text == "curve(frames)"
    assert one.words == {
        "change": "let `simulate` return `curve(x)` instead of its result `x`",
        "reduces": "curve", "call": "curve(frames)", "name": "frames",
    }  # fmt: skip


def test_names_the_line_of_the_worker_if_it_is_in_the_file():
    worker = "def simulate(case):\n    return steps(case, 5)\n"
    one = found(changed(POOL, "def main", worker + "def main"), LOOP)
    assert re.fullmatch(
        r"at train\.py:\d+, write `return curve\(steps\(case, 5\)\)` instead of "
        r"`return steps\(case, 5\)`",
        one.words["change"],
    )
    two = worker.replace("    return", "    if not case:\n        return None\n    return")
    one = found(changed(POOL, "def main", two + "def main"), LOOP)
    assert one.words["change"].startswith("let `simulate` return")


@pytest.mark.parametrize(
    "changes",
    [
        ("rows.append(curve(frames))", "rows.append(frames)"),  # it keeps the whole result
        ("rows.append(curve(frames))", "rows.append(curve(frames)); last = frames"),
        ("rows.append(curve(frames))", "rows.append(curve(frames, 2))"),
        ("rows.append(curve(frames))", "show(frames)"),
        ("rows.append(curve(frames))", "rows.append(list(frames))"),
        ("return rows", "return rows, frames"),
        (LOOP, "for frames in table:"),
        (LOOP, "for frames in load(table):"),
    ],
)
def test_look_alikes(changes):
    source = changed(POOL, *changes)
    loop = next(one.strip() for one in source.split("\n") if one.strip().startswith("for "))
    assert found(source, loop) is None
