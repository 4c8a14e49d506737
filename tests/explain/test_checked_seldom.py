"""Pauses between two checks for a result, as findings."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import figures, found, judged
from explain.scenarios import SCENARIOS
from teho.explain.program import program_of
from teho.explain.rules.cpu import checked_seldom, known_activity
from teho.model.finding import Certainty


def made(**of_child):
    """Return the scenario with changes of the child process; `children` replaces all of them."""
    run, summary = SCENARIOS["looks_seldom_for_a_result"]()
    (main,) = summary.program.mains
    children = of_child.pop("children", None)
    if children is None:
        children = (msgspec.structs.replace(main.children[0], **of_child),)
    mains = (msgspec.structs.replace(main, children=children),)
    program = msgspec.structs.replace(summary.program, mains=mains)
    return run, msgspec.structs.replace(summary, program=program)


def stacks_of_child():
    _, summary = SCENARIOS["looks_seldom_for_a_result"]()
    return summary.program.mains[0].children[0].stacks


def test_names_the_pause_and_the_check():
    finding = found(checked_seldom, made())
    assert finding.sentence == (
        "For 80 % of the run time, the program slept at train.py:63 and no child process had work: "
        "it sleeps for 1 s between two checks."
    )
    assert figures(finding)["check"] == "train.py:62  os.path.exists(path)"
    assert finding.action.startswith(
        "Check more often: write `time.sleep(0.01)` instead of `time.sleep(1.0)` at train.py:63."
    )
    assert finding.certainty is Certainty.POSSIBLE
    assert judged(known_activity, made()) == []


def test_if_the_child_process_has_ended_it_is_likely():
    sleeps, works, *rest = stacks_of_child()
    child = (msgspec.structs.replace(sleeps, wall_s=1.0), works, *rest)
    assert found(checked_seldom, made(stacks=child)).certainty is Certainty.LIKELY


@pytest.mark.parametrize(("works_s", "count"), [(80.0, 1), (95.0, 0), (1.0, 0)])
def test_the_work_of_the_child_process_decides(works_s, count):
    sleeps, works, *_ = stacks_of_child()
    child = (
        msgspec.structs.replace(sleeps, wall_s=97.0 - works_s),
        msgspec.structs.replace(works, wall_s=works_s),
    )
    assert len(judged(checked_seldom, made(stacks=child))) == count


def test_a_child_process_that_sleeps_for_something_else_works():
    # The pause of a measurement is not in the source as a pause between two checks for tasks.
    assert judged(checked_seldom, made(costly_options=())) == []


def test_without_child_processes_nothing_is_known():
    assert judged(checked_seldom, made(children=())) == []


def test_the_parent_counts_if_both_sleep():
    _, summary = made()
    (main,) = summary.program.mains
    parent, child = main.process, main.children[0]
    assert child.ran_s > parent.ran_s
    assert program_of([parent, child]).mains[0].process.pid == parent.pid
    sleeps, works, *_ = child.stacks
    busy = msgspec.structs.replace(
        child,
        stacks=(
            msgspec.structs.replace(works, wall_s=60.0),
            msgspec.structs.replace(sleeps, wall_s=38.0),
        ),
    )
    assert program_of([parent, busy]).mains[0].process.pid == child.pid
