"""Memory that grows in a straight line, and all the curves that do not."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from explain.scenario_parts import (
    BINS,
    FORBIDDEN,
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    kinds_of,
    repeated,
    scenario,
)
from teho.explain.rules.memory import memory_grows
from teho.explain.trend import TrendPoint, thinned, trend_of
from teho.model.finding import Abstention, Severity
from teho.model.missing import Missing, Reason
from teho.units import GIB

LIMIT = 100.0


def line(first, last):
    return [GIB * (first + (last - first) * place / (BINS - 1)) for place in range(BINS)]


def made(curve, *, limit=LIMIT, elapsed_s=3600.0, ended=True, name="r01c01", **part):
    limit = limit * GIB if isinstance(limit, float) else limit
    signals = {"job_memory_bytes": curve}
    nodes = [NodePart(name, cores_used=38.5, signals=signals, memory_limit=limit, **part)]
    run, summary = scenario(*nodes, elapsed_s=elapsed_s)
    return msgspec.structs.replace(run, end=run.end if ended else None), summary


class TestLine:
    def test_says_how_fast_and_how_long(self):
        finding = found(
            memory_grows, made(line(0.5, 18.0), limit=23.5, elapsed_s=71.0, scheduler=None)
        )
        assert finding.sentence == (
            "Memory use on r01c01 grew by 15.0 GiB per minute: if the run had continued at this "
            "rate, it would have reached the memory limit 21.4 s later."
        )
        assert finding.severity is Severity.CRITICAL
        assert figures(finding)["memory limit (r01c01)"] == 23.5 * GIB
        assert "`loss.item()`" in finding.action
        assert "`tracemalloc.start()`" in finding.action

    def test_several_nodes_are_one_finding(self):
        parts = [
            NodePart(name, signals={"job_memory_bytes": line(1, last)}, memory_limit=LIMIT * GIB)
            for name, last in (("a", 60), ("b", 80))
        ]
        sentence = found(memory_grows, scenario(*parts)).sentence
        assert sentence.startswith(
            "Memory use on each of a and b grew by 1.00 GiB to 1.34 GiB per "
        )

    @pytest.mark.parametrize(("gained", "count"), [(6.5, 0), (6.9, 1)])
    def test_threshold_of_the_growth(self, gained, count):
        # 44 of 59 steps are judged: 5 GiB of 100 are 6.7 in the whole run.
        assert len(judged(memory_grows, made(line(20, 20 + gained)))) == count

    @pytest.mark.parametrize(("elapsed_s", "count"), [(59.9, 0), (60.0, 1)])
    def test_threshold_of_the_time(self, elapsed_s, count):
        assert len(judged(memory_grows, made(line(1, 50), elapsed_s=elapsed_s))) == count

    @pytest.mark.parametrize(
        ("last", "severity"),
        [(50.0, "critical"), (49.0, "warning"), (21.0, "warning"), (19.0, "remark")],
    )
    def test_severity_by_the_time_that_is_left(self, last, severity):
        # One run longer or four: the curve ends at a half, or at a fifth, of its limit.
        one = found(memory_grows, made(line(0, last), time_limit_s=None, elapsed_s=36_000.0))
        assert one.severity.value == severity

    @pytest.mark.parametrize(
        ("time_limit_s", "severity"), [(17_000.0, "remark"), (19_500.0, "warning")]
    )
    def test_severity_by_the_time_limit(self, time_limit_s, severity):
        one = found(memory_grows, made(line(0, 19.0), time_limit_s=time_limit_s))
        assert one.severity.value == severity

    @pytest.mark.parametrize(
        ("elapsed_s", "severity"), [(16_600.0, "warning"), (16_700.0, "remark")]
    )
    def test_severity_by_a_day_if_there_is_no_time_limit(self, elapsed_s, severity):
        # Full after 5.18 runs: 24 h are 16,670 s each.
        one = made(line(0, 19.0), time_limit_s=None, elapsed_s=elapsed_s)
        assert found(memory_grows, one).severity.value == severity
        run, summary = one
        one = msgspec.structs.replace(run, end=None), summary
        assert found(memory_grows, one).severity.value == severity

    def test_a_run_that_continues_is_in_danger(self):
        one = found(memory_grows, made(line(0, 19.0), time_limit_s=19_500.0, ended=False))
        assert one.severity is Severity.CRITICAL

    def test_a_line_with_noise_and_gaps(self):
        noise = random.Random(7)
        curve = [value + noise.uniform(-0.3, 0.3) * GIB for value in line(2, 60)]
        assert judged(memory_grows, made(curve))
        curve[::3] = [None] * 20
        assert judged(memory_grows, made(curve))

    def test_memory_that_is_given_back_at_the_end(self):
        assert judged(memory_grows, made([*line(2, 60)[:57], 0.0, 0.0, 0.0]))

    @pytest.mark.parametrize(("seen", "count"), [(19, 0), (20, 1)])
    def test_threshold_of_the_points(self, seen, count):
        curve = line(1, 60)
        of = 45  # places that are judged
        kept = {12 + n for n in range(of) if n * seen // of != (n - 1) * seen // of}
        assert len(kept) == seen
        curve = [v if place in kept or place < 12 else None for place, v in enumerate(curve)]
        assert len(judged(memory_grows, made(curve))) == count


class TestOtherCurves:
    @pytest.mark.parametrize(
        "curve",
        [
            50.0 * GIB,
            line(60, 20),
            [GIB * 60 * (1 - math.exp(-place / 15)) for place in range(BINS)],
            [*line(1, 60)[:30], *[60.0 * GIB] * 30],
            [*line(1, 60)[:45], *[60.0 * GIB] * 15],
            repeated((5.0 * GIB, 30), (60.0 * GIB, 30)),
            repeated((5.0 * GIB, 50), (60.0 * GIB, 10)),
            [GIB * (10 + 40 * (place % 10) / 10) for place in range(BINS)],
            [GIB * (10 + 40 * (place % 25) / 25) for place in range(BINS)],
            [GIB * (10 + 0.3 * place + 12 * (place % 10)) for place in range(BINS)],
            [GIB * random.Random(place).uniform(10, 60) for place in range(BINS)],
            repeated((5.0 * GIB, 20), (20.0 * GIB, 20), (60.0 * GIB, 20)),
        ],
        ids=[
            "constant", "falling", "saturating", "plateau of a half", "plateau of a quarter",
            "jump", "late jump", "saw-tooth", "long saw-tooth", "rising saw-tooth", "noise",
            "stairs",
        ],
    )  # fmt: skip
    def test_no_finding(self, curve):
        assert judged(memory_grows, made(curve)) == []

    def test_threshold_of_a_part(self):
        """The last quarter rises at a part of the whole's rate."""
        for rate, count in ((0.3, 0), (0.6, 1)):
            values, value = [], 1.0
            for place in range(BINS):
                values.append(value * GIB)
                value += 1.0 if place < 46 else rate
            assert len(judged(memory_grows, made(values))) == count

    def test_threshold_of_rising_pairs(self):
        for swing, count in ((2.0, 1), (6.0, 0)):
            values = [value + swing * GIB * (place % 2) for place, value in enumerate(line(1, 40))]
            assert len(judged(memory_grows, made(values))) == count


class TestGpus:
    @staticmethod
    def on_gpus(*signals, **part):
        return scenario(NodePart(gpus=[gpu(**one) for one in signals], **part))

    def test_each_gpu_is_judged(self):
        rising = {"gpu_job_memory_bytes": line(2, 30)}
        finding = found(memory_grows, self.on_gpus({}, rising))
        assert finding.sentence.startswith("Memory use on GPU 1 on r01g01 grew by 486 MiB per ")
        assert "`torch.cuda.memory_allocated()`" in finding.action
        assert figures(finding)["memory limit (GPU 1 on r01g01)"] == 32 * GIB

    @pytest.mark.parametrize(("own", "count"), [(5.0 * GIB, 0), (UNSUPPORTED, 1)])
    def test_memory_of_others_counts_if_the_job_s_is_not_known(self, own, count):
        signals = {"gpu_memory_used_bytes": line(2, 30), "gpu_job_memory_bytes": own}
        assert len(judged(memory_grows, self.on_gpus(signals))) == count

    def test_abstains_if_the_size_is_not_known(self):
        rising = {"gpu_job_memory_bytes": line(2, 30)}
        verdict = judged(memory_grows, self.on_gpus(rising, gpu_memory_bytes=None))
        assert isinstance(verdict, Abstention)
        assert "GPU memory, total" in verdict.lacked

    def test_abstains_if_it_is_not_recorded(self):
        missing = {"gpu_job_memory_bytes": FORBIDDEN, "gpu_memory_used_bytes": FORBIDDEN}
        assert isinstance(judged(memory_grows, self.on_gpus(missing)), Abstention)


class TestMissing:
    def test_abstains_without_the_signal(self):
        assert isinstance(judged(memory_grows, made(FORBIDDEN)), Abstention)

    def test_abstains_without_a_limit(self):
        absent = Missing(Reason.ABSENT, "no limit known")
        assert isinstance(judged(memory_grows, made(line(1, 60), limit=absent)), Abstention)
        assert judged(memory_grows, made(10.0 * GIB, limit=absent)) == []


def test_it_replaces_the_advice_on_how_much_to_request():
    for last in (97.0, 40.0):
        one = made(line(1, last), memory_peak=last * GIB)
        assert kinds_of(one) == ["memory_grows"]


class TestTrend:
    def test_a_line(self):
        points = [TrendPoint(float(at), 3.0 * at) for at in range(1000)]
        few = thinned(points)
        assert len(few) <= 60
        assert trend_of(few) == pytest.approx((3.0, 100.0))

    def test_a_single_odd_value_does_not_move_it(self):
        points = [TrendPoint(float(at), 3.0 * at + (1e6 if at == 9 else 0)) for at in range(40)]
        assert trend_of(points).per_s == pytest.approx(3.0)

    def test_too_few(self):
        assert trend_of([TrendPoint(0.0, 1.0)]) is None
        assert thinned([]) == []
