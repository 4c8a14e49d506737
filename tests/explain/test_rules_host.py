"""Rules about cores, threads, memory and time, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenarios import (
    BINS,
    FORBIDDEN,
    UNSUPPORTED,
    NodePart,
    gpu,
    laptop,
    memory_near_limit,
    memory_overasked,
    missing_signals,
    no_gpu_clean,
    nothing_recorded,
    oversubscribed,
    repeated,
    scenario,
    serial_on_40_cores,
    short_job,
    untouched_gpu,
    well_used_8_gpus,
)
from explain.scenarios import out_of_memory as out_of_memory_run
from teho.explain.policy import load_policy
from teho.explain.rules import (
    Rule,
    cores_unused,
    job_too_short,
    out_of_memory,
    serial_program,
    too_many_threads,
)
from teho.explain.rules import (
    memory_near_limit as near_limit_rule,
)
from teho.explain.rules import (
    memory_overasked as overasked_rule,
)
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Finding, Severity
from teho.model.missing import Missing, Reason
from teho.units import GIB

HOST_RULES = (
    cores_unused,
    near_limit_rule,
    out_of_memory,
    overasked_rule,
    serial_program,
    too_many_threads,
)
ABSENT = Missing(Reason.ABSENT, "no limit known")


def judged(rule: Rule, made) -> list[Finding] | Abstention:
    return rule.judge(*made, load_policy().of(rule.KIND))


def found(rule: Rule, made) -> Finding:
    verdict = judged(rule, made)
    assert isinstance(verdict, list)
    assert len(verdict) == 1, verdict
    return verdict[0]


def figures(finding: Finding) -> dict[str, object]:
    return {item.label: item.value for item in finding.evidence}


@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.KIND)
@pytest.mark.parametrize("made", [well_used_8_gpus, no_gpu_clean, laptop, nothing_recorded])
def test_is_silent_on_a_clean_run(rule, made):
    assert judged(rule, made()) == []


@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.KIND)
def test_abstains_where_a_signal_is_missing(rule):
    verdict = judged(rule, missing_signals())
    assert isinstance(verdict, Abstention)
    assert verdict.kind == rule.KIND
    assert "r01g01" in verdict.lacked


class TestSerialProgram:
    def test_forty_cores(self):
        finding = found(serial_program, serial_on_40_cores())
        assert finding.sentence == "The program used one core of 40 on r01c01."
        assert finding.severity is Severity.CRITICAL
        assert figures(finding) == {
            "cores used, mean, r01c01": pytest.approx(0.97),
            "cores of the job, r01c01": 40.0,
        }
        assert "`--cpus-per-task=1`" in finding.action
        assert "`multiprocessing.Pool(40)`" in finding.action

    @pytest.mark.parametrize(
        ("used", "count"),
        [(0.849, 0), (0.85, 1), (0.851, 1), (1.009, 1), (1.01, 1), (1.011, 0)],
    )
    def test_thresholds(self, used, count):
        assert len(judged(serial_program, scenario(NodePart(cores_used=used)))) == count

    @pytest.mark.parametrize(
        ("cores", "severity"),
        [(2, Severity.WARNING), (3, Severity.WARNING), (4, Severity.CRITICAL)],
    )
    def test_severity_grows_with_what_is_wasted(self, cores, severity):
        made = scenario(NodePart(cores=cores, cores_used=1.0))
        assert found(serial_program, made).severity is severity

    def test_one_core_of_one_is_all_there_is(self):
        assert judged(serial_program, scenario(NodePart(cores=1, cores_used=0.99))) == []

    def test_on_ones_own_machine_it_is_a_remark(self):
        finding = found(serial_program, scenario(NodePart(cores_used=1.0, scheduler=None)))
        assert finding.severity is Severity.REMARK
        assert finding.action == "To make it faster, spread the work: `multiprocessing.Pool(40)`."

    def test_threads_that_were_turned_off_are_named(self):
        made = scenario(NodePart(cores_used=1.0), environment={"OMP_NUM_THREADS": "1"})
        finding = found(serial_program, made)
        assert figures(finding)["OMP_NUM_THREADS"] == "1"
        assert "`export OMP_NUM_THREADS=40`" in finding.action

    @pytest.mark.parametrize("threads", ["4", "many"])
    def test_threads_that_were_not_turned_off_are_left_alone(self, threads):
        made = scenario(NodePart(cores_used=1.0), environment={"OMP_NUM_THREADS": threads})
        assert "OMP_NUM_THREADS" not in found(serial_program, made).action

    @pytest.mark.parametrize(("peak", "count"), [(0.99, 1), (1.0, 0), (1.01, 0)])
    def test_a_thread_that_drives_a_gpu_is_no_fault(self, peak, count):
        part = NodePart(cores_used=1.0, gpus=[{**untouched_gpu(), "gpu_busy_percent": peak}])
        assert len(judged(serial_program, scenario(part))) == count

    def test_abstains_where_the_gpu_was_not_seen(self):
        made = scenario(NodePart(cores_used=1.0, gpus=[gpu(UNSUPPORTED)]))
        assert isinstance(judged(serial_program, made), Abstention)

    def test_cores_asked_count_where_the_program_is_bound_to_fewer(self):
        given = Allocation(scheduler="slurm", cores_asked=20)
        made = scenario(NodePart(cores=1, cores_used=1.0, allocation=given))
        sentence = "The program used one core of 20 on r01g01."
        assert found(serial_program, made).sentence == sentence


class TestCoresUnused:
    @pytest.mark.parametrize(
        ("used", "severity"),
        [
            (9.99, Severity.CRITICAL),
            (10.0, Severity.WARNING),
            (19.99, Severity.WARNING),
            (20.0, Severity.REMARK),
            (29.99, Severity.REMARK),
            (30.0, None),
            (30.01, None),
        ],
    )
    def test_thresholds(self, used, severity):
        verdict = judged(cores_unused, scenario(NodePart(cores_used=used)))
        assert [finding.severity for finding in verdict] == ([severity] if severity else [])

    def test_asks_for_the_busiest_time(self):
        used = repeated((4.0, 50), (12.02, 10))
        finding = found(cores_unused, scenario(NodePart("r01c01", cores_used=used)))
        assert finding.sentence == "The program kept 5.34 of 40 cores busy on r01c01."
        assert finding.action == (
            "12 cores are enough for its busiest time: `--cpus-per-task=12` (with one task a node)."
        )

    def test_cores_that_are_used_at_times_are_kept(self):
        used = repeated((2.0, 55), (39.99, 5))
        finding = found(cores_unused, scenario(NodePart(cores_used=used)))
        assert finding.severity is Severity.REMARK
        assert "used all 40 cores at its busiest" in finding.action

    @pytest.mark.parametrize(
        ("environment", "option"),
        [
            ({"SLURM_NTASKS": "4"}, "`--cpus-per-task=3`."),
            ({"SLURM_NTASKS": "8", "SLURM_JOB_NUM_NODES": "2"}, "`--cpus-per-task=3`."),
            ({"SLURM_CPUS_PER_TASK": "10"}, "`--cpus-per-task=3`."),
            ({"SLURM_NTASKS": "40"}, "`--ntasks-per-node=12`."),
            ({"SLURM_NTASKS": "many"}, "`--cpus-per-task=12` (with one task a node)."),
            ({"SLURM_NTASKS": "0"}, "`--cpus-per-task=12` (with one task a node)."),
        ],
    )
    def test_the_option_fits_the_number_of_tasks(self, environment, option):
        made = scenario(NodePart(cores_used=12.0), environment=environment)
        assert found(cores_unused, made).action.endswith(option)

    def test_grid_engine(self):
        made = scenario(NodePart(cores_used=0.5, scheduler="grid_engine"))
        assert (
            "1 core is enough for its busiest time: `-pe smp 1`" in found(cores_unused, made).action
        )

    def test_outside_a_job_nobody_asked(self):
        assert judged(cores_unused, scenario(NodePart(cores_used=1.0, scheduler=None))) == []

    @pytest.mark.parametrize(
        ("cores", "busy", "count"),
        [
            (24, 90.0, 0),
            (25, 90.0, 1),
            (25, 50.0, 1),
            (25, 49.99, 0),  # the cores may be needed to feed it
            (25, 0.5, 1),  # never used: judged as a CPU job
        ],
    )
    def test_cores_beside_gpus(self, cores, busy, count):
        part = NodePart(cores=cores, cores_used=2.0, gpus=[gpu(busy)] * 2)
        verdict = judged(cores_unused, scenario(part))
        assert len(verdict) == count
        if count and busy >= 50:
            assert verdict[0].severity is Severity.REMARK

    def test_abstains_where_the_gpu_was_not_seen(self):
        made = scenario(NodePart(cores_used=2.0, gpus=[gpu(UNSUPPORTED)]))
        assert isinstance(judged(cores_unused, made), Abstention)

    def test_without_a_series_the_mean_has_to_do(self):
        run, summary = scenario(NodePart(cores_used=7.5))
        summary.nodes[0].series.clear()
        assert "`--cpus-per-task=8`" in found(cores_unused, (run, summary)).action

    def test_gaps_in_the_series(self):
        made = scenario(NodePart(cores_used=repeated((3.0, 30), (None, 20), (6.0, 10))))
        assert "`--cpus-per-task=6`" in found(cores_unused, made).action

    def test_nodes_are_named_together(self):
        names = [f"r01c{number:02d}" for number in range(1, 7)]
        made = scenario(*(NodePart(name, cores_used=12.0) for name in names))
        assert found(cores_unused, made).sentence == (
            "The program kept 12 of 40 cores busy on r01c01, r01c02, r01c03, r01c04 and 2 more."
        )


class TestTooManyThreads:
    def test_says_how_many_each_process_may_have(self):
        finding = found(too_many_threads, oversubscribed())
        assert finding.sentence == (
            "On r01c01, 64 threads of the program wanted to run on 8 cores."
        )
        assert figures(finding)["runnable threads a core, r01c01"] == 8.0
        assert "`export OMP_NUM_THREADS=1`" in finding.action

    @pytest.mark.parametrize(("threads", "count"), [(49.99, 0), (50.0, 0), (50.01, 1)])
    def test_threshold(self, threads, count):
        made = scenario(NodePart(signals={"job_runnable_threads": threads}))
        assert len(judged(too_many_threads, made)) == count

    @pytest.mark.parametrize(
        ("processes", "each"), [(1.0, 40), (3.0, 13), (100.0, 1), (UNSUPPORTED, 40)]
    )
    def test_the_share_of_each_process(self, processes, each):
        signals = {"job_runnable_threads": 400.0, "job_processes": processes}
        finding = found(too_many_threads, scenario(NodePart(signals=signals)))
        assert f"`export OMP_NUM_THREADS={each}`" in finding.action

    @pytest.mark.parametrize(("scheduler", "bind"), [("slurm", True), ("grid_engine", False)])
    def test_a_wrong_binding_is_looked_at_first(self, scheduler, bind):
        given = Allocation(scheduler=scheduler, cores_asked=40)
        signals = {"job_runnable_threads": 30.0}
        part = NodePart(cores=1, signals=signals, allocation=given)
        action = found(too_many_threads, scenario(part)).action
        assert "has 40 cores there and the program may use 1" in action
        assert "`taskset -cp $$`" in action
        assert ("`srun --cpu-bind=none`" in action) is bind

    def test_a_node_without_known_cores_is_left_out(self):
        assert judged(too_many_threads, scenario(NodePart(cores=0))) == []


class TestMemoryOverasked:
    def test_the_number_is_the_peak_and_a_margin(self):
        finding = found(overasked_rule, memory_overasked())
        assert finding.sentence == (
            "On r01c01 the job used 12.0 GiB of the 64.0 GiB of memory asked for."
        )
        assert finding.severity is Severity.WARNING
        assert figures(finding)["memory used of asked, r01c01"] == 18.75
        assert "`--mem=15G`: the measured peak and 20 %" in finding.action
        assert "Page cache, here up to 20.0 GiB" in finding.action

    @pytest.mark.parametrize(("percent", "count"), [(69.99, 1), (70.0, 0), (70.01, 0)])
    def test_threshold_of_the_share(self, percent, count):
        part = NodePart(memory_peak=percent * GIB, memory_limit=100.0 * GIB)
        assert len(judged(overasked_rule, scenario(part))) == count

    @pytest.mark.parametrize(("unused_gib", "count"), [(3.99, 0), (4.0, 1), (4.01, 1)])
    def test_threshold_of_what_is_unused(self, unused_gib, count):
        part = NodePart(memory_peak=(8 - unused_gib) * GIB, memory_limit=8.0 * GIB)
        assert len(judged(overasked_rule, scenario(part))) == count

    @pytest.mark.parametrize(("source", "count"), [("cgroup", 1), ("scheduler", 1), ("node", 0)])
    def test_only_what_was_asked_for_counts(self, source, count):
        part = NodePart(memory_peak=1.0 * GIB, memory_limit=64.0 * GIB, memory_source=source)
        assert len(judged(overasked_rule, scenario(part))) == count

    def test_the_kernels_peak_of_a_process_counts_too(self):
        part = NodePart(memory_peak=12.0 * GIB, memory_limit=64.0 * GIB)
        made = scenario(part, peak_process_bytes=30 * GIB)
        assert "`--mem=36G`" in found(overasked_rule, made).action

    def test_while_the_program_runs_only_samples_count(self):
        run, summary = memory_overasked()
        running = msgspec.structs.replace(run, end=None)
        assert "`--mem=15G`" in found(overasked_rule, (running, summary)).action

    def test_grid_engine_counts_per_slot(self):
        part = NodePart(
            cores=8, memory_peak=12.0 * GIB, memory_limit=64.0 * GIB, scheduler="grid_engine"
        )
        assert (
            "`-l h_vmem=1.8G` (for each of 8 slots" in found(overasked_rule, scenario(part)).action
        )

    def test_in_a_container_there_is_no_script(self):
        part = NodePart(memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, scheduler=None)
        action = found(overasked_rule, scenario(part)).action
        assert action == "Lower the limit of the container or cgroup to 12.0 GiB."

    def test_beside_gpus_it_is_a_remark(self):
        part = NodePart(memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, gpus=[gpu()])
        finding = found(overasked_rule, scenario(part))
        assert finding.severity is Severity.REMARK
        assert "Where the site gives memory with each GPU, leave it." in finding.action

    @pytest.mark.parametrize("cache", [UNSUPPORTED, 0.5 * GIB])
    def test_little_cache_is_not_worth_a_word(self, cache):
        part = NodePart(
            memory_peak=10.0 * GIB, memory_limit=64.0 * GIB, signals={"job_cache_bytes": cache}
        )
        assert "Page cache" not in found(overasked_rule, scenario(part)).action

    def test_two_nodes(self):
        parts = [
            NodePart(name, memory_peak=peak * GIB, memory_limit=64.0 * GIB)
            for name, peak in (("r01c01", 10.0), ("r01c02", 20.0))
        ]
        finding = found(overasked_rule, scenario(*parts))
        assert finding.sentence == (
            "On r01c01 and r01c02 the job used 10.0 GiB to 20.0 GiB of the 64.0 GiB of memory "
            "asked for on each node."
        )
        assert "`--mem=24G`" in finding.action

    def test_no_limit_outside_a_job_is_no_question(self):
        part = NodePart(memory_limit=ABSENT, scheduler=None)
        assert judged(overasked_rule, scenario(part)) == []

    def test_no_limit_in_a_job_is_a_missing_signal(self):
        verdict = judged(overasked_rule, scenario(NodePart(memory_limit=ABSENT)))
        assert verdict.lacked == "memory limit of r01g01: no limit known"


class TestMemoryNearLimit:
    def test_asks_for_more(self):
        finding = found(near_limit_rule, memory_near_limit())
        assert finding.sentence == "Memory reached 95 % of its limit on r01c01."
        assert finding.severity is Severity.WARNING
        assert finding.action.startswith("Ask for `--mem=80G`;")

    @pytest.mark.parametrize(("percent", "count"), [(89.99, 0), (90.0, 1), (90.01, 1)])
    def test_threshold(self, percent, count):
        part = NodePart(memory_peak=percent * GIB, memory_limit=100.0 * GIB)
        assert len(judged(near_limit_rule, scenario(part))) == count

    def test_a_whole_nodes_memory_needs_another_node(self):
        part = NodePart(memory_peak=370.0 * GIB, memory_limit=376.0 * GIB, memory_source="node")
        assert "on a node that has it" in found(near_limit_rule, scenario(part)).action

    def test_without_a_scheduler(self):
        part = NodePart(memory_peak=31.0 * GIB, memory_limit=32.0 * GIB, scheduler=None)
        assert found(near_limit_rule, scenario(part)).action.startswith("Give it more memory,")

    def test_abstains_without_the_use(self):
        verdict = judged(near_limit_rule, scenario(NodePart(memory_peak=FORBIDDEN)))
        assert verdict.lacked.startswith("memory used, highest of r01g01: the driver")


class TestOutOfMemory:
    def test_counts_the_kills(self):
        finding = found(out_of_memory, out_of_memory_run())
        assert finding.severity is Severity.CRITICAL
        assert finding.sentence == (
            "The kernel killed 2 processes on r01c01 because memory ran out."
        )
        assert "`--mem=96G`" in finding.action

    @pytest.mark.parametrize(("kills", "count"), [(0.0, 0), (1.0, 1), (2.0, 1)])
    def test_threshold(self, kills, count):
        assert len(judged(out_of_memory, scenario(NodePart(oom_kills=kills)))) == count

    def test_one_process(self):
        made = scenario(NodePart(oom_kills=1.0, memory_limit=ABSENT))
        finding = found(out_of_memory, made)
        assert "killed 1 process on r01g01" in finding.sentence
        assert finding.action.startswith("Give it more memory")

    def test_a_counter_that_was_never_looked_for_is_missing(self):
        run, summary = no_gpu_clean()
        del summary.nodes[0].totals["oom_kills"]
        assert isinstance(judged(out_of_memory, (run, summary)), Abstention)


class TestJobTooShort:
    def test_twenty_seconds(self):
        finding = found(job_too_short, short_job())
        assert finding.severity is Severity.REMARK
        assert finding.sentence == (
            "The program ran for 20.0 s, too little to judge how well it used what it had."
        )
        assert figures(finding) == {"wall time": 20.0, "samples": 20.0}
        assert "instead of an `sbatch` for each" in finding.action

    @pytest.mark.parametrize(("elapsed_s", "count"), [(59.99, 1), (60.0, 0), (60.01, 0)])
    def test_threshold_of_time(self, elapsed_s, count):
        assert len(judged(job_too_short, scenario(NodePart(), elapsed_s=elapsed_s))) == count

    @pytest.mark.parametrize(("period_s", "count"), [(401.0, 1), (360.0, 0), (300.0, 0)])
    def test_threshold_of_samples(self, period_s, count):
        assert len(judged(job_too_short, scenario(NodePart(), period_s=period_s))) == count

    def test_too_few_samples_ask_for_more(self):
        finding = found(job_too_short, scenario(NodePart(), period_s=600.0))
        assert finding.sentence.startswith("Only 6 samples were taken in 1 h,")
        assert "`teho run --every 1s -- CMD`" in finding.action

    def test_nothing_recorded(self):
        assert figures(found(job_too_short, nothing_recorded()))["samples"] == 0.0

    @pytest.mark.parametrize(
        ("scheduler", "text"), [("grid_engine", "instead of a `qsub`"), (None, "into one job.")]
    )
    def test_other_schedulers(self, scheduler, text):
        made = scenario(NodePart(scheduler=scheduler), elapsed_s=5.0)
        assert text in found(job_too_short, made).action


def test_bins_of_the_scenarios_are_full():
    _, summary = well_used_8_gpus()
    assert {len(series) for of in summary.gpus for series in of.series.values()} == {BINS}
