"""Rules on how long steps take, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    NODE,
    fetching,
    loader,
    of_library,
    own,
    process,
    seen,
    watched,
)
from explain.program_scenarios import long_steps, reads_at_first
from explain.scenario_parts import UNSUPPORTED, NodePart, figures, found, judged, kinds_of, repeated
from teho.explain.rules.input import cold_cache
from teho.explain.rules.job import steps_uneven
from teho.model.finding import Abstention, Severity
from teho.model.watched import Progress, Wait

THIRD_S = 1190.0
BEGAN_S = 105.0


def paced(slow, fast, third_s=THIRD_S):
    """Return what is written of steps that are slow for a third of their time, and then fast."""
    until = [(third_s, 1 + slow * third_s), (3 * third_s, 1 + (slow + 2 * fast) * third_s)]
    return [
        Progress(steps=round(steps), first_s=BEGAN_S, last_s=BEGAN_S + after_s)
        for after_s, steps in until
    ]


def compiling(wall_s):
    return seen((of_library("torch/_inductor/compile_fx.py", "compile_fx"),), wall_s)


def saving(wall_s):
    return seen((of_library("torch/serialization.py", "save"), own("torch.save(x, f)")), wall_s)


class TestColdCache:
    @staticmethod
    def made(
        read=(2e8, 1e6), *stacks, pace=(3.0, 4.0), netfs=None, started_s=95.0, waits=(), steps=None
    ):
        bins = UNSUPPORTED if read is None else repeated((read[0], 20), (read[1], 40))
        rates = {"job_read_bytes": bins}
        if netfs:
            rates["netfs_read_bytes"] = repeated((netfs[0], 20), (netfs[1], 40))
        steps = paced(*pace) if steps is None else steps
        one = process(*stacks, wall_s=3590.0, loaders=waits, progress=steps)
        return watched(one, parts=[NodePart(NODE, cores=8, rates=rates, started_s=started_s)])

    def test_says_how_much_slower_and_when(self):
        finding = found(cold_cache, reads_at_first())
        assert finding.sentence == (
            "The program made 3 steps/s in its first 19 min 50 s and 4 steps/s at the end: at "
            "first the data came from storage (slow), and later from memory (fast)."
        )
        assert finding.severity is Severity.REMARK
        label = "reads from storage in the first third of the training"
        assert figures(finding)[label] == 2e8
        assert finding.regain_percent == (0.0, pytest.approx(100 * THIRD_S / 4 / 3590))

    @pytest.mark.parametrize(("slow", "count"), [(3.0, 1), (3.07, 1), (3.08, 0), (4.0, 0)])
    def test_threshold_of_the_pace(self, slow, count):
        assert len(judged(cold_cache, self.made(pace=(slow, 4.0)))) == count

    @pytest.mark.parametrize(("later", "count"), [(0.0, 1), (6.6e7, 1), (6.7e7, 0), (3e8, 0)])
    def test_threshold_of_what_is_read(self, later, count):
        assert len(judged(cold_cache, self.made((2e8, later)))) == count

    @pytest.mark.parametrize(("read", "count"), [(0.99e6, 0), (1.0e6, 1)])
    def test_little_is_read_at_any_time(self, read, count):
        assert len(judged(cold_cache, self.made((read, 0.0)))) == count

    @pytest.mark.parametrize(("third_s", "count"), [(19.9, 0), (20.1, 1)])
    def test_not_of_a_few_steps(self, third_s, count):
        part = NodePart(NODE, cores=8, rates={"job_read_bytes": repeated((2e8, 20), (0.0, 40))})
        one = process(wall_s=100.0, progress=paced(300, 400, third_s))
        run, summary = watched(one, parts=[part])
        short = msgspec.structs.replace(summary, elapsed_s=90.0, bin_s=1.5)
        assert len(judged(cold_cache, (run, short))) == count

    def test_network_file_systems_count(self):
        assert judged(cold_cache, self.made((0.0, 0.0))) == []
        assert len(judged(cold_cache, self.made((0.0, 0.0), netfs=(2e8, 1e6)))) == 1
        # What NFS brings stands in both figures.
        finding = found(cold_cache, self.made((2e8, 0.0), netfs=(2e8, 0.0)))
        label = "reads from storage in the first third of the training"
        assert figures(finding)[label] == 2e8

    def test_only_what_was_read_while_it_made_steps(self):
        steps = paced(3, 4, 590)
        assert len(judged(cold_cache, self.made(steps=steps))) == 1
        # It starts half an hour late: all reading came before, as that of imports does.
        assert judged(cold_cache, self.made(steps=steps, started_s=95.0 - 1800)) == []

    @pytest.mark.parametrize(("waits_s", "count"), [(148.0, 0), (149.0, 1)])
    def test_waiting_for_data_must_account_for_it_if_it_is_known(self, waits_s, count):
        # The slow third costs 297.5 s.
        made = self.made((2e8, 1e6), fetching(waits_s), waits=[loader()])
        assert len(judged(cold_cache, made)) == count

    @pytest.mark.parametrize(("compiles_s", "count"), [(148.0, 1), (149.0, 0)])
    def test_compiling_may_account_for_it_as_well(self, compiles_s, count):
        assert len(judged(cold_cache, self.made((2e8, 1e6), compiling(compiles_s)))) == count

    def test_steps_that_the_program_reports_replace_the_count(self):
        before = Progress(steps=50_000, first_s=100.5, last_s=104.0)
        assert len(judged(cold_cache, self.made(steps=[before, *paced(3, 4)]))) == 1

    @pytest.mark.parametrize(
        "steps", [(), paced(3, 4)[1:], [Progress(steps=1, first_s=105.0, last_s=105.0)]]
    )
    def test_without_a_pace_at_both_ends_there_is_no_question(self, steps):
        assert judged(cold_cache, self.made(steps=steps)) == []

    @pytest.mark.parametrize(
        ("facts", "lacked"),
        [
            ({"read": None}, f"job read from storage of {NODE}: "),
            ({"started_s": None}, f"monotonic time of {NODE}: "),
            ({"started_s": -1e5}, f"read from storage of {NODE}: "),
        ],
    )
    def test_abstains_if_it_is_not_known(self, facts, lacked):
        verdict = judged(cold_cache, self.made(**facts))
        assert isinstance(verdict, Abstention)
        assert lacked in verdict.lacked
        assert judged(cold_cache, self.made(pace=(4, 4), **facts)) == []


class TestStepsUneven:
    @staticmethod
    def made(long=12, long_s=0.5, usual=988, *stacks, usual_s=0.08, waits=()):
        between = {17: Wait(usual, usual * usual_s), 20: Wait(long, long * long_s)}
        steps = Progress(steps=usual + long + 1, first_s=105.0, last_s=195.0, between=between)
        return watched(process(*stacks, loaders=waits, progress=[steps]))

    def test_says_how_many_and_how_much(self):
        finding = found(steps_uneven, long_steps())
        assert finding.sentence == (
            "A few steps (24 of 999) took 6 times as long as usual. The additional time of these "
            "steps was 11 % of the time of all steps."
        )
        assert finding.severity is Severity.REMARK
        assert figures(finding)["additional time of the long steps"] == pytest.approx(24 * 0.42)
        assert finding.regain_percent == (0.0, pytest.approx(24 * 0.42))

    @pytest.mark.parametrize(("evaluated_s", "is_named"), [(4.9, False), (5.1, True)])
    def test_evaluation_that_explains_them_is_named(self, evaluated_s, is_named):
        stack = seen((own("model(x)", 50), own("validate()", 31, "validate")), evaluated_s)
        finding = found(steps_uneven, self.made(24, 0.5, 976, stack))  # 10 s more than usual
        assert finding.sentence.endswith("Evaluation took 5 % of the time.") is is_named
        assert finding.action.startswith("Evaluate less often") is is_named

    @pytest.mark.parametrize(("long", "count"), [(10, 0), (11, 1)])
    def test_threshold_of_their_number(self, long, count):
        assert len(judged(steps_uneven, self.made(long, 1.0))) == count

    @pytest.mark.parametrize(("long_s", "count"), [(0.319, 0), (0.321, 1)])
    def test_threshold_of_their_length(self, long_s, count):
        assert len(judged(steps_uneven, self.made(60, long_s))) == count

    @pytest.mark.parametrize(("long", "count"), [(200, 1), (201, 0)])
    def test_what_is_usual_is_no_exception(self, long, count):
        assert len(judged(steps_uneven, self.made(long, 0.5, 1000 - long))) == count

    @pytest.mark.parametrize(("long_s", "count"), [(0.43, 0), (0.44, 1)])
    def test_threshold_of_the_cost(self, long_s, count):
        # 12 times 0.35 s are under a twentieth of 988 times 0.08 s and all of theirs.
        assert len(judged(steps_uneven, self.made(12, long_s))) == count

    @pytest.mark.parametrize(("long_s", "count"), [(0.0173, 0), (0.0175, 1)])
    def test_not_of_a_moment(self, long_s, count):
        # 120 long steps of 16.67 ms more than usual are 2 s.
        made = self.made(120, long_s, 880, usual_s=0.0008)
        assert len(judged(steps_uneven, made)) == count

    @pytest.mark.parametrize(("saves_s", "count"), [(5.0, 1), (6.5, 0)])
    def test_saving_explains_them(self, saves_s, count):
        # Of 10 s that they take longer, less than a twentieth of 91 s must be left.
        made = self.made(20, 0.58, 980, saving(saves_s))
        assert len(judged(steps_uneven, made)) == count

    @pytest.mark.parametrize(
        ("facts", "count"),
        [
            ({"waits": {20: (20, 9.0)}}, 0),
            ({"waits": {13: (1000, 9.0)}}, 1),
            ({"first_s": 9.0}, 0),
        ],
    )
    def test_long_waits_for_data_explain_them(self, facts, count):
        made = self.made(20, 0.58, 980, waits=[loader(**facts)])
        assert len(judged(steps_uneven, made)) == count

    @pytest.mark.parametrize(
        "between", [{}, {17: Wait(0, 0.0)}, {0: Wait(90, 0.0), 20: Wait(11, 9)}]
    )
    def test_nothing_to_judge(self, between):
        steps = Progress(steps=1000, first_s=105.0, last_s=195.0, between=between)
        assert judged(steps_uneven, watched(process(progress=[steps]))) == []
        assert judged(steps_uneven, watched(process(progress=[]))) == []


@pytest.mark.parametrize("made", [reads_at_first, long_steps])
def test_a_short_run_is_not_blamed(made):
    run, summary = made()
    short = msgspec.structs.replace(summary, elapsed_s=50.0)
    kinds = kinds_of((run, short))
    assert "job_too_short" in kinds
    assert not {"cold_cache", "steps_uneven"} & set(kinds)
