"""How long a program still needs, and whether its time limit allows that."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE, process, watched
from explain.scenario_parts import NodePart, figures, found, judged
from teho.explain.analysis import Analysis
from teho.explain.rules.job import limit_too_short
from teho.explain.time_left import time_left
from teho.model.finding import Abstention, Severity
from teho.model.missing import Missing
from teho.model.run import RunState
from teho.model.watched import Progress, Total
from teho.show.build.report.document import build_report

WALL_S = 3600.0
BEGAN_S = 95.0
ALL = 36_000
"""Steps of the whole program, which takes ten hours at 1 step per second."""


def progress(
    *, total=ALL, per_unit=1, pace=1.0, late_pace=None, done_before=0, known_by="tqdm", each_s=10.0
):
    """Return what the probe wrote every 10 s: steps at a pace, at another in the last minute."""
    entries, steps = [], 0.0
    for place in range(1, int(WALL_S / each_s) + 1):
        is_late = place * each_s > WALL_S - 70.0
        steps += each_s * (late_pace if late_pace is not None and is_late else pace)
        known = Total(known_by, int(done_before + steps // per_unit), total)
        at_s = BEGAN_S + place * each_s
        entries.append(
            Progress(steps=int(steps), first_s=BEGAN_S, last_s=at_s, total=total and known)
        )
    return entries


def program(**made):
    return process(wall_s=WALL_S, began_s=BEGAN_S, progress=progress(**made))


def run_of(limit_s, **made):
    part = NodePart(NODE, cores=8, cores_used=4.0, time_limit_s=limit_s)
    run, summary = watched(program(**made), parts=[part])
    return msgspec.structs.replace(run, end=None), summary


def test_the_remaining_steps_at_the_pace_of_the_last_minute():
    left = time_left(program())
    assert left.left_s == pytest.approx(ALL - WALL_S, rel=0.01)
    assert left.steady_left_s == pytest.approx(left.left_s, rel=0.01)
    slower = time_left(program(late_pace=0.5))
    assert slower.left_s == pytest.approx(2 * (ALL - WALL_S), rel=0.02)
    assert slower.steady_left_s == pytest.approx(ALL - WALL_S, rel=0.03)
    assert slower.least_s == slower.steady_left_s


def test_a_program_that_continues_from_a_checkpoint_counts_only_its_own_steps():
    left = time_left(program(total=10_000, done_before=5000))
    assert left.left_s == pytest.approx(10_000 - 5000 - WALL_S, rel=0.02)


def test_a_bar_of_epochs_does_not_jump_within_an_epoch():
    """Ten epochs of 1,000 steps: three and a half are done."""
    left = time_left(program(total=10, per_unit=1000))
    assert left.total.done == 3
    assert left.left_s == pytest.approx(10_000 - WALL_S, rel=0.02)


def test_a_library_whose_total_changes_is_judged_from_then_on():
    entries = progress()
    early = [msgspec.structs.replace(one, total=Total("tqdm", one.steps, 9)) for one in entries]
    changed = process(wall_s=WALL_S, began_s=BEGAN_S, progress=[*early[:100], *entries[100:]])
    assert time_left(changed).left_s == pytest.approx(ALL - WALL_S, rel=0.01)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"total": None}, "the total number of steps is not known"),
        ({"late_pace": 0.0}, "no step ended in the last minute"),
        ({"total": 10, "per_unit": 100_000}, "for less than a minute"),
    ],
)
def test_what_is_not_known_says_why(made, why):
    entries = progress(**made)
    if made.get("late_pace") == 0.0:
        still = [one for one in entries if one.last_s <= BEGAN_S + WALL_S - 70.0]
        entries = still
    left = time_left(process(wall_s=WALL_S, began_s=BEGAN_S, progress=entries))
    assert isinstance(left, Missing)
    assert why in left.detail


def test_the_first_minute_is_too_early():
    entries = progress()[:5]
    left = time_left(process(wall_s=50.0, began_s=BEGAN_S, progress=entries))
    assert isinstance(left, Missing)
    assert "less than a minute" in left.detail


class TestLimitTooShort:
    def test_the_missing_hours_are_named(self):
        finding = found(limit_too_short, run_of(7 * 3600.0))
        assert finding.severity is Severity.WARNING
        assert finding.sentence == (
            "At its present pace, the program probably does not finish before the time limit: "
            "about 3 h are missing."
        )
        seen = figures(finding)
        assert seen["time until the limit"] == pytest.approx(6 * 3600.0)
        assert seen["expected time left"] == pytest.approx(9 * 3600.0, rel=0.01)
        assert seen["done so far (tqdm)"] == pytest.approx(10.0, abs=0.1)
        # 1.25 times the ten hours that it needs.
        assert "`--time=12:30:00` for the next job" in finding.action
        assert "checkpoint" in finding.action

    # 9 h are left: at most 0.9 h may be missing.
    @pytest.mark.parametrize(("limit_h", "count"), [(9.05, 1), (9.15, 0), (11.0, 0)])
    def test_threshold_of_the_difference(self, limit_h, count):
        assert len(judged(limit_too_short, run_of(limit_h * 3600.0))) == count

    @pytest.mark.parametrize(("since_s", "count"), [(301.0, 1), (299.0, 0)])
    def test_threshold_of_the_time_with_steps(self, since_s, count):
        first_s = BEGAN_S + WALL_S - since_s
        entries = [
            msgspec.structs.replace(one, first_s=first_s, steps=int(one.last_s - first_s))
            for one in progress()
            if one.last_s > first_s
        ]
        entries = [
            msgspec.structs.replace(one, total=Total("keras", one.steps, ALL)) for one in entries
        ]
        part = NodePart(NODE, cores=8, cores_used=4.0, time_limit_s=7 * 3600.0)
        late = process(wall_s=WALL_S, began_s=BEGAN_S, progress=entries)
        run, summary = watched(late, parts=[part])
        made = msgspec.structs.replace(run, end=None), summary
        assert len(judged(limit_too_short, made)) == count

    @pytest.mark.parametrize("paces", [(2.0, 0.5), (0.5, 2.0)])
    def test_both_paces_have_to_be_too_slow(self, paces):
        """A slow minute may be an evaluation; a slow run may have had a slow start."""
        pace, late_pace = paces
        assert judged(limit_too_short, run_of(7 * 3600.0, pace=pace, late_pace=late_pace)) == []

    def test_without_a_limit_or_after_the_end_there_is_nothing_to_say(self):
        run, summary = run_of(None)
        assert judged(limit_too_short, (run, summary)) == []
        part = NodePart(NODE, cores=8, cores_used=4.0, time_limit_s=7 * 3600.0)
        assert judged(limit_too_short, watched(program(), parts=[part])) == []

    def test_without_a_known_total_the_rule_abstains(self):
        verdict = judged(limit_too_short, run_of(7 * 3600.0, total=None))
        assert isinstance(verdict, Abstention)
        assert "the total number of steps is not known" in verdict.lacked


def facts_of(run, summary, state):
    report = build_report(Analysis(run, state, summary, processes=[]))
    return {fact.key: fact for fact in report.facts}


def test_the_fact_is_only_for_a_run_that_continues():
    run, summary = run_of(7 * 3600.0)
    left = facts_of(run, summary, RunState.RUNNING)["left_s"]
    assert left.value == pytest.approx(9 * 3600.0, rel=0.01)
    assert (left.note, left.aside) == ("10 % done, from tqdm", False)
    assert "left_s" not in facts_of(run, summary, RunState.FINISHED)
    slower = facts_of(*run_of(7 * 3600.0, late_pace=0.5), RunState.RUNNING)["left_s"]
    assert "at the pace of the whole run: 9 h" in slower.note


def test_a_missing_fact_says_why_and_is_not_in_the_text():
    left = facts_of(*run_of(7 * 3600.0, total=None), RunState.RUNNING)["left_s"]
    assert left.aside
    assert "tqdm" in left.value.detail
