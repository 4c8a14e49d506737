"""Rules about what GPUs wait for, on both sides of their thresholds."""

from __future__ import annotations

import pytest

from explain import scenarios
from explain.scenario_parts import (
    BINS,
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
)
from teho.explain.rules.gpu import cpu_busy_gpu_idle, io_wait_gpu_idle
from teho.model.finding import Abstention, Severity


def io_run(busy=5.0, iowait=60.0, runnable=0.5, cores=10):
    signals = {"cpu_iowait_percent": iowait, "job_runnable_threads": runnable}
    return scenario(NodePart(cores=cores, signals=signals, gpus=[gpu(busy)]))


class TestIoWait:
    def test_one_reading_thread_on_many_cores(self):
        finding = found(io_wait_gpu_idle, scenarios.starved_by_io())
        assert finding.sentence == (
            "The GPU on r01g01 had almost no work for 100 % of the time. During this time, the "
            "program waited for storage (disk or file server)."
        )
        assert finding.severity is Severity.WARNING
        assert figures(finding)["I/O wait, mean (r01g01)"] == 9.0
        assert '`cp data.tar "$TMPDIR"`' in finding.action
        assert "DataLoader(num_workers=9," in finding.action

    @pytest.mark.parametrize(("iowait", "count"), [(49.99, 0), (50.0, 0), (50.01, 1)])
    def test_threshold_of_the_wait(self, iowait, count):
        assert len(judged(io_wait_gpu_idle, io_run(iowait=iowait, runnable=UNSUPPORTED))) == count

    @pytest.mark.parametrize(("busy", "count"), [(9.99, 1), (10.0, 0), (10.01, 0)])
    def test_threshold_of_the_gpu(self, busy, count):
        assert len(judged(io_wait_gpu_idle, io_run(busy=busy))) == count

    @pytest.mark.parametrize(("bins", "count"), [(29, 0), (30, 0), (31, 1)])
    def test_threshold_of_the_time(self, bins, count):
        iowait = repeated((80.0, bins), (0.0, BINS - bins))
        assert len(judged(io_wait_gpu_idle, io_run(iowait=iowait))) == count

    @pytest.mark.parametrize(
        ("iowait", "runnable", "count"),
        [
            (4.99, 0.1, 0),  # less than half a core of ten waits
            (5.0, 0.1, 1),
            (9.0, 0.9, 0),  # as many run as wait
            (10.0, 1.0, 0),
            (9.0, 0.89, 1),
        ],
    )
    def test_threshold_of_few_threads(self, iowait, runnable, count):
        assert len(judged(io_wait_gpu_idle, io_run(iowait=iowait, runnable=runnable))) == count

    def test_gaps_are_left_out_of_the_share(self):
        iowait = repeated((80.0, 20), (None, 20), (0.0, 20))
        busy = repeated((0.0, 25), (None, 5), (0.0, 30))
        assert judged(io_wait_gpu_idle, io_run(busy=busy, iowait=iowait)) == []
        iowait = repeated((80.0, 21), (None, 20), (0.0, 19))
        assert len(judged(io_wait_gpu_idle, io_run(busy=busy, iowait=iowait))) == 1

    def test_signals_that_were_never_seen_together(self):
        busy, iowait = repeated((0.0, 30), (None, 30)), repeated((None, 30), (80.0, 30))
        assert judged(io_wait_gpu_idle, io_run(busy=busy, iowait=iowait)) == []

    def test_abstains_without_the_wait(self):
        verdict = judged(io_wait_gpu_idle, io_run(iowait=UNSUPPORTED))
        assert verdict.lacked == "I/O wait of r01g01: not offered under MIG"

    def test_one_busy_gpu_of_two_is_not_idle(self):
        signals = {"cpu_iowait_percent": 80.0}
        made = scenario(NodePart(signals=signals, gpus=[gpu(0.0), gpu(60.0)]))
        assert judged(io_wait_gpu_idle, made) == []

    def test_an_unseen_gpu_may_have_been_busy(self):
        signals = {"cpu_iowait_percent": 80.0}
        unseen = gpu(repeated((0.0, 31), (None, 29)))
        made = scenario(NodePart(signals=signals, gpus=[gpu(0.0), unseen]))
        # Of the bins in which both were seen, all are idle.
        assert figures(found(io_wait_gpu_idle, made))[
            "time in which the GPUs were idle and cores waited for storage (r01g01)"
        ] == 100.0  # fmt: skip
        made = scenario(NodePart(signals=signals, gpus=[gpu(0.0), gpu(UNSUPPORTED)]))
        assert isinstance(judged(io_wait_gpu_idle, made), Abstention)


def cpu_run(busy=5.0, cpu=95.0, used=9.0, cores=10, **part):
    signals = {"cpu_busy_percent": cpu}
    return scenario(
        NodePart(cores=cores, cores_used=used, signals=signals, gpus=[gpu(busy)], **part)
    )


class TestCpuBusy:
    def test_all_cores(self):
        finding = found(cpu_busy_gpu_idle, scenarios.starved_by_all_cores())
        assert finding.sentence == (
            "The GPU on r01g01 had almost no work for 100 % of the time. All cores of the job "
            "were busy during this time."
        )
        assert "`--cpus-per-task=8` (if each node has one task)" in finding.action
        assert "`DataLoader(num_workers=7)`" in finding.action

    def test_one_main_thread(self):
        finding = found(cpu_busy_gpu_idle, scenarios.starved_by_cpu())
        assert finding.sentence == (
            "The GPU on r01g01 had almost no work for 100 % of the time. During this time, the "
            "program worked on only one of 10 cores."
        )
        assert figures(finding)["mean use of the busiest core (r01g01)"] == 100.0
        assert "DataLoader(num_workers=9," in finding.action

    @pytest.mark.parametrize(("cpu", "count"), [(89.99, 0), (90.0, 0), (90.01, 1)])
    def test_threshold_of_the_cpu(self, cpu, count):
        assert len(judged(cpu_busy_gpu_idle, cpu_run(cpu=cpu))) == count

    @pytest.mark.parametrize(("busy", "count"), [(9.99, 1), (10.0, 0), (10.01, 0)])
    def test_threshold_of_the_gpu(self, busy, count):
        assert len(judged(cpu_busy_gpu_idle, cpu_run(busy=busy))) == count

    @pytest.mark.parametrize(("bins", "count"), [(29, 0), (30, 0), (31, 1)])
    def test_threshold_of_the_time(self, bins, count):
        cpu = repeated((98.0, bins), (10.0, BINS - bins))
        assert len(judged(cpu_busy_gpu_idle, cpu_run(cpu=cpu))) == count

    @pytest.mark.parametrize(
        ("used", "count"), [(0.89, 0), (0.9, 1), (0.91, 1), (1.1, 1), (1.11, 0)]
    )
    def test_threshold_of_one_core(self, used, count):
        assert len(judged(cpu_busy_gpu_idle, cpu_run(cpu=11.0, used=used))) == count

    @pytest.mark.parametrize(("bins", "count"), [(30, 0), (31, 1)])
    def test_threshold_of_the_time_on_one_core(self, bins, count):
        used = repeated((1.0, bins), (5.0, BINS - bins))
        assert len(judged(cpu_busy_gpu_idle, cpu_run(cpu=11.0, used=used))) == count

    def test_on_a_single_core_only_the_first_way_counts(self):
        assert judged(cpu_busy_gpu_idle, cpu_run(cpu=80.0, used=1.0, cores=1)) == []

    def test_both_ways_on_two_nodes(self):
        parts = [
            NodePart(name, cores=10, cores_used=used, signals={"cpu_busy_percent": cpu},
                     gpus=[gpu(5.0)])
            for name, used, cpu in (("r01g01", 9.8, 98.0), ("r01g02", 1.0, 11.0))
        ]  # fmt: skip
        verdict = judged(cpu_busy_gpu_idle, scenario(*parts))
        assert [finding.sentence[:18] for finding in verdict] == [
            "The GPU on r01g01 ",
            "The GPU on r01g02 ",
        ]

    def test_without_a_scheduler_no_option_is_made_up(self):
        action = found(cpu_busy_gpu_idle, cpu_run(scheduler=None)).action
        assert "`DataLoader(num_workers=9)`" in action.partition(". ")[0]

    def test_abstains_without_the_cpu(self):
        assert isinstance(judged(cpu_busy_gpu_idle, cpu_run(cpu=UNSUPPORTED)), Abstention)
        verdict = judged(cpu_busy_gpu_idle, cpu_run(cpu=20.0, used=UNSUPPORTED))
        assert verdict.lacked == "job CPU time of r01g01: not offered under MIG"

    def test_a_series_of_another_length_is_no_signal(self):
        run, summary = cpu_run()
        summary.nodes[0].series["cpu_busy_percent"] = [95.0]
        assert isinstance(judged(cpu_busy_gpu_idle, (run, summary)), Abstention)
