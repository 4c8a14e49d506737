"""Rules about memory, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain import scenarios
from explain.scenario_parts import (
    FORBIDDEN,
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    scenario,
)
from teho.explain.rules.memory import memory_near_limit, memory_overasked, out_of_memory
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Severity
from teho.model.missing import Missing, Reason
from teho.units import GIB

ABSENT = Missing(Reason.ABSENT, "no limit known")
WITH_GPUS = Allocation(scheduler="grid_engine", cores_asked=10, with_gpus=("cores", "memory"))


class TestMemoryOverasked:
    def test_the_number_is_the_peak_and_a_margin(self):
        finding = found(memory_overasked, scenarios.memory_overasked())
        assert finding.sentence == (
            "On r01c01 the job used 12.0 GiB of the 64.0 GiB of memory that it requested."
        )
        assert finding.severity is Severity.WARNING
        share = figures(finding)["share of the requested memory that the job used (r01c01)"]
        assert share == 18.75
        assert "`--mem=15G`, which is the measured peak plus 20 %" in finding.action
        assert "page cache, which keeps file data in memory (here up to 20.0 GiB)" in finding.action

    @pytest.mark.parametrize(("percent", "count"), [(69.99, 1), (70.0, 0), (70.01, 0)])
    def test_threshold_of_the_share(self, percent, count):
        part = NodePart(memory_peak=percent * GIB, memory_limit=100.0 * GIB)
        assert len(judged(memory_overasked, scenario(part))) == count

    @pytest.mark.parametrize(("unused_gib", "count"), [(3.99, 0), (4.0, 1), (4.01, 1)])
    def test_threshold_of_what_is_unused(self, unused_gib, count):
        part = NodePart(memory_peak=(8 - unused_gib) * GIB, memory_limit=8.0 * GIB)
        assert len(judged(memory_overasked, scenario(part))) == count

    @pytest.mark.parametrize(("source", "count"), [("cgroup", 1), ("scheduler", 1), ("node", 0)])
    def test_only_what_was_asked_for_counts(self, source, count):
        part = NodePart(memory_peak=1.0 * GIB, memory_limit=64.0 * GIB, memory_source=source)
        assert len(judged(memory_overasked, scenario(part))) == count

    def test_the_kernels_peak_of_a_process_counts_too(self):
        part = NodePart(memory_peak=12.0 * GIB, memory_limit=64.0 * GIB)
        made = scenario(part, peak_process_bytes=30 * GIB)
        assert "`--mem=36G`" in found(memory_overasked, made).action

    def test_while_the_program_runs_only_samples_count(self):
        run, summary = scenarios.memory_overasked()
        running = msgspec.structs.replace(run, end=None)
        assert "`--mem=15G`" in found(memory_overasked, (running, summary)).action

    def test_grid_engine_counts_per_slot(self):
        part = NodePart(
            cores=8, memory_peak=12.0 * GIB, memory_limit=64.0 * GIB, scheduler="grid_engine"
        )
        assert (
            "`-l h_vmem=1.8G` (for each of 8 slots"
            in found(memory_overasked, scenario(part)).action
        )

    def test_in_a_container_there_is_no_script(self):
        part = NodePart(memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, scheduler=None)
        action = found(memory_overasked, scenario(part)).action
        assert action == "Lower the memory limit of the container or cgroup to 12.0 GiB."

    def test_with_gpus_it_is_a_remark(self):
        part = NodePart(memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, gpus=[gpu()])
        finding = found(memory_overasked, scenario(part))
        assert finding.severity is Severity.REMARK
        assert "each GPU, do not change the request." in finding.action

    @pytest.mark.parametrize(
        ("cache", "told"), [(UNSUPPORTED, False), (0.99 * GIB, False), (1.0 * GIB, True)]
    )
    def test_little_cache_is_not_worth_a_word(self, cache, told):
        part = NodePart(
            memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, signals={"job_cache_bytes": cache}
        )
        assert ("page cache" in found(memory_overasked, scenario(part)).action) is told

    def test_two_nodes(self):
        parts = [
            NodePart(name, memory_peak=peak * GIB, memory_limit=64.0 * GIB)
            for name, peak in (("r01c01", 10.0), ("r01c02", 20.0))
        ]
        finding = found(memory_overasked, scenario(*parts))
        assert finding.sentence == (
            "On r01c01 and r01c02 the job used 10.0 GiB to 20.0 GiB of the 64.0 GiB of memory "
            "that it requested on each node."
        )
        assert "`--mem=24G`" in finding.action

    def test_memory_that_came_with_the_gpus_is_not_judged(self):
        part = NodePart(memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, allocation=WITH_GPUS)
        assert judged(memory_overasked, scenario(part)) == []

    def test_no_limit_outside_a_job_is_no_question(self):
        part = NodePart(memory_limit=ABSENT, scheduler=None)
        assert judged(memory_overasked, scenario(part)) == []

    def test_no_limit_in_a_job_is_a_missing_signal(self):
        verdict = judged(memory_overasked, scenario(NodePart(memory_limit=ABSENT)))
        assert verdict.lacked == "memory limit of r01g01: no limit known"


class TestMemoryNearLimit:
    def test_asks_for_more(self):
        finding = found(memory_near_limit, scenarios.memory_near_limit())
        assert finding.sentence == "Memory use reached 95 % of the memory limit on r01c01."
        assert finding.severity is Severity.WARNING
        assert finding.action.startswith("Request `--mem=80G`, ")

    @pytest.mark.parametrize(("percent", "count"), [(89.99, 0), (90.0, 1), (90.01, 1)])
    def test_threshold(self, percent, count):
        part = NodePart(memory_peak=percent * GIB, memory_limit=100.0 * GIB)
        assert len(judged(memory_near_limit, scenario(part))) == count

    def test_a_whole_nodes_memory_needs_another_node(self):
        part = NodePart(memory_peak=370.0 * GIB, memory_limit=376.0 * GIB, memory_source="node")
        assert "on a node with enough memory" in found(memory_near_limit, scenario(part)).action

    def test_more_memory_comes_with_another_gpu(self):
        part = NodePart(memory_peak=47.0 * GIB, memory_limit=48.0 * GIB, allocation=WITH_GPUS)
        action = found(memory_near_limit, scenario(part)).action
        assert action.startswith(
            "Request one more GPU (on this cluster, each GPU adds memory of the node to the job), "
        )

    def test_without_a_scheduler(self):
        part = NodePart(memory_peak=31.0 * GIB, memory_limit=32.0 * GIB, scheduler=None)
        action = found(memory_near_limit, scenario(part)).action
        assert action.startswith("Give the program more memory,")

    def test_abstains_without_the_use(self):
        verdict = judged(memory_near_limit, scenario(NodePart(memory_peak=FORBIDDEN)))
        assert verdict.lacked.startswith("memory used, highest of r01g01: the driver")


class TestOutOfMemory:
    def test_counts_the_kills(self):
        finding = found(out_of_memory, scenarios.out_of_memory())
        assert finding.severity is Severity.CRITICAL
        assert finding.sentence == (
            "The operating system killed 2 processes on r01c01 because memory ran out."
        )
        assert "`--mem=96G`" in finding.action

    @pytest.mark.parametrize(("kills", "count"), [(0.0, 0), (1.0, 1), (2.0, 1)])
    def test_threshold(self, kills, count):
        assert len(judged(out_of_memory, scenario(NodePart(oom_kills=kills)))) == count

    def test_one_process(self):
        made = scenario(NodePart(oom_kills=1.0, memory_limit=ABSENT))
        finding = found(out_of_memory, made)
        assert "killed 1 process on r01g01" in finding.sentence
        assert finding.action.startswith("Give the program more memory")

    def test_a_counter_that_was_never_read_is_missing(self):
        run, summary = scenarios.no_gpu_clean()
        del summary.nodes[0].totals["oom_kills"]
        assert isinstance(judged(out_of_memory, (run, summary)), Abstention)
