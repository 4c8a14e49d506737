"""Rules about GPUs, on both sides of their thresholds."""

from __future__ import annotations

import pytest

from explain.scenarios import (
    BINS,
    UNSUPPORTED,
    NodePart,
    gpu,
    hidden_gpu,
    hot_gpu,
    lost_gpu,
    low_use,
    missing_signals,
    never_used_16_gpus,
    never_used_gpu,
    no_gpu_clean,
    nothing_recorded,
    one_idle_gpu,
    repeated,
    scenario,
    starved_by_all_cores,
    starved_by_cpu,
    starved_by_io,
    untouched_gpu,
    used_at_first,
    well_used_8_gpus,
)
from teho.explain.policy import load_policy
from teho.explain.rules import (
    Rule,
    cpu_busy_gpu_idle,
    gpu_invisible,
    gpu_low_use,
    gpu_memory_full,
    gpu_never_used,
    gpu_one_idle,
    gpu_throttled,
    gpu_used_only_at_first,
    io_wait_gpu_idle,
)
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Finding, Severity
from teho.model.missing import Missing
from teho.units import GIB

GPU_RULES = (
    cpu_busy_gpu_idle,
    gpu_invisible,
    gpu_low_use,
    gpu_memory_full,
    gpu_never_used,
    gpu_one_idle,
    gpu_throttled,
    gpu_used_only_at_first,
    io_wait_gpu_idle,
)


def judged(rule: Rule, made) -> list[Finding] | Abstention:
    return rule.judge(*made, load_policy().of(rule.KIND))


def found(rule: Rule, made) -> Finding:
    verdict = judged(rule, made)
    assert isinstance(verdict, list)
    assert len(verdict) == 1, verdict
    return verdict[0]


def figures(finding: Finding) -> dict[str, object]:
    return {item.label: item.value for item in finding.evidence}


@pytest.mark.parametrize("rule", GPU_RULES, ids=lambda rule: rule.KIND)
@pytest.mark.parametrize("made", [well_used_8_gpus, no_gpu_clean, nothing_recorded])
def test_is_silent_on_a_clean_run(rule, made):
    assert judged(rule, made()) == []


@pytest.mark.parametrize(
    "rule", [rule for rule in GPU_RULES if rule is not gpu_one_idle], ids=lambda rule: rule.KIND
)
def test_abstains_where_a_signal_is_missing(rule):
    verdict = judged(rule, missing_signals())
    assert isinstance(verdict, Abstention)
    assert verdict.kind == rule.KIND
    assert "r01g01" in verdict.lacked


def test_an_abstention_groups_what_was_missing_and_says_why():
    made = scenario(NodePart(gpus=[gpu(UNSUPPORTED) for _ in range(6)]))
    verdict = judged(gpu_low_use, made)
    assert verdict.lacked == (
        "GPU busy of GPU 0 on r01g01, GPU 1 on r01g01, GPU 2 on r01g01, GPU 3 on r01g01 "
        "and 2 more: not offered under MIG"
    )


class TestNeverUsed:
    def test_names_the_gpu_and_what_to_ask_for(self):
        finding = found(gpu_never_used, never_used_gpu())
        assert finding.sentence == "GPU 1 on r01g01 was never used."
        assert finding.severity is Severity.CRITICAL
        assert figures(finding) == {"GPU busy, highest, GPU 1 on r01g01": 0.0}
        assert "`--gpus-per-node=1`" in finding.action
        assert "`--gres=gpu:TYPE:1`" in finding.action

    @pytest.mark.parametrize(("peak", "count"), [(0.99, 1), (1.0, 0), (1.01, 0)])
    def test_threshold(self, peak, count):
        made = scenario(NodePart(gpus=[{**untouched_gpu(), "gpu_busy_percent": peak}]))
        assert len(judged(gpu_never_used, made)) == count

    @pytest.mark.parametrize("signal", ["gpu_job_processes", "gpu_job_memory_bytes"])
    def test_a_gpu_with_a_process_of_the_job_is_left_to_other_rules(self, signal):
        made = scenario(NodePart(gpus=[{**untouched_gpu(), signal: 1.0}]))
        assert judged(gpu_never_used, made) == []

    @pytest.mark.parametrize("signal", ["gpu_job_processes", "gpu_job_memory_bytes"])
    def test_unknown_processes_do_not_excuse(self, signal):
        made = scenario(NodePart(gpus=[{**untouched_gpu(), signal: UNSUPPORTED}]))
        assert len(judged(gpu_never_used, made)) == 1

    @pytest.mark.parametrize(("elapsed_s", "abstains"), [(9.0, True), (10.0, False)])
    def test_a_handful_of_samples_proves_nothing(self, elapsed_s, abstains):
        verdict = judged(gpu_never_used, scenario(NodePart(gpus=[untouched_gpu()]),
                                                  elapsed_s=elapsed_s))  # fmt: skip
        assert isinstance(verdict, Abstention) is abstains
        if abstains:
            assert verdict.lacked == "GPU busy of GPU 0 on r01g01: only 9 samples"

    def test_many_gpus_become_one_finding(self):
        finding = found(gpu_never_used, never_used_16_gpus())
        assert finding.sentence == (
            "GPU 0 on r01g01, GPU 1 on r01g01, GPU 2 on r01g01, GPU 3 on r01g01 and 12 more "
            "were never used."
        )
        assert [item.label for item in finding.evidence] == [
            "GPU busy, highest, lowest of 16",
            "GPU busy, highest, highest of 16",
        ]
        assert "do not ask for one" in finding.action

    def test_unused_nodes_are_not_asked_for(self):
        parts = [NodePart("r01g01", gpus=[gpu(), gpu()])]
        parts += [NodePart(name, gpus=[untouched_gpu()] * 2) for name in ("r01g02", "r01g03")]
        action = found(gpu_never_used, scenario(*parts)).action
        assert "`--gpus-per-node=2`" in action
        assert "`--nodes=1`" in action

    def test_several_on_one_node_read_well(self):
        made = scenario(NodePart(gpus=[gpu(), untouched_gpu(), untouched_gpu()]))
        assert found(gpu_never_used, made).sentence == "GPUs 1 and 2 on r01g01 were never used."

    def test_grid_engine(self):
        part = NodePart(gpus=[gpu(), untouched_gpu()], scheduler="grid_engine")
        action = found(gpu_never_used, scenario(part)).action
        assert "`-l coproc_v100=1`" in action
        assert "--g" not in action

    @pytest.mark.parametrize(
        ("vendor", "setting"),
        [
            ("nvidia", "`CUDA_VISIBLE_DEVICES=GPU-r01g01-0,GPU-r01g01-2`"),
            ("amd", "`ROCR_VISIBLE_DEVICES=0,2`"),
        ],
    )
    def test_without_a_scheduler(self, vendor, setting):
        gpus = [gpu(), untouched_gpu(), gpu()]
        part = NodePart(gpus=gpus, scheduler=None, vendor=vendor)
        assert setting in found(gpu_never_used, scenario(part)).action

    def test_without_a_scheduler_and_no_gpu_used(self):
        part = NodePart(gpus=[untouched_gpu()], scheduler=None)
        assert "nothing need be changed" in found(gpu_never_used, scenario(part)).action


class TestUsedOnlyAtFirst:
    def test_says_until_when(self):
        finding = found(gpu_used_only_at_first, used_at_first())
        assert finding.sentence == (
            "GPU 0 on r01g01 was used for the first 36 min and then idle for the last 40 % "
            "of the run."
        )
        assert finding.severity is Severity.WARNING
        assert figures(finding) == {
            "GPU idle at the end, GPU 0 on r01g01": pytest.approx(40.0),
            "GPU busy before, GPU 0 on r01g01": 94.0,
            "last used after, GPU 0 on r01g01": 2160.0,
        }
        assert "`sbatch --dependency=afterok:$SLURM_JOB_ID rest.sh`" in finding.action

    @pytest.mark.parametrize(
        ("idle_bins", "severities"),
        [
            (19, []),
            (20, [Severity.WARNING]),
            (29, [Severity.WARNING]),
            (30, [Severity.CRITICAL]),
            (55, [Severity.CRITICAL]),
        ],
    )
    def test_threshold_of_the_share(self, idle_bins, severities):
        busy = repeated((94.0, BINS - idle_bins), (0.0, idle_bins))
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        assert [finding.severity for finding in verdict] == severities

    @pytest.mark.parametrize(("rest", "count"), [(9.99, 1), (10.0, 0), (10.01, 0)])
    def test_threshold_of_idle(self, rest, count):
        made = scenario(NodePart(gpus=[gpu(repeated((94.0, 36), (rest, 24)))]))
        assert len(judged(gpu_used_only_at_first, made)) == count

    def test_a_last_evaluation_does_not_hide_it(self):
        made = scenario(NodePart(gpus=[gpu(repeated((94.0, 30), (0.0, 29), (80.0, 1)))]))
        assert "the first 30 min" in found(gpu_used_only_at_first, made).sentence

    @pytest.mark.parametrize(
        "busy",
        [
            repeated((0.0, 30), (94.0, 30)),  # a long start
            repeated((0.0, 60)),  # never used
            repeated((5.0, 30), (0.0, 30)),  # never used to speak of
            [94.0, 0.0] * 30,  # in turns
            [None] * 60,
        ],
    )
    def test_other_patterns_are_not_it(self, busy):
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        assert verdict == [] or isinstance(verdict, Abstention)

    def test_an_unrecorded_end_is_not_idle(self):
        made = scenario(NodePart(gpus=[gpu(repeated((94.0, 35), (0.0, 5), (None, 20)))]))
        assert judged(gpu_used_only_at_first, made) == []

    def test_gaps_within_are_neither_idle_nor_busy(self):
        busy = repeated((94.0, 20), (None, 5), (94.0, 5), (0.0, 10), (None, 5), (0.0, 15))
        finding = found(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        assert figures(finding)["GPU idle at the end, GPU 0 on r01g01"] == pytest.approx(
            100 * 25 / 60
        )

    def test_two_severities_become_two_findings(self):
        gpus = [gpu(repeated((94.0, at), (0.0, BINS - at))) for at in (38, 36, 20)]
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=gpus)))
        assert [(finding.severity, finding.sentence[:28]) for finding in verdict] == [
            (Severity.CRITICAL, "GPU 2 on r01g01 was used for"),
            (Severity.WARNING, "GPUs 0 and 1 on r01g01 were "),
        ]
        assert "for the first 36 min to 38 min" in verdict[1].sentence

    @pytest.mark.parametrize(
        ("scheduler", "text"),
        [("grid_engine", "`qsub -hold_jid $JOB_ID rest.sh`"), (None, "a program of its own")],
    )
    def test_other_schedulers(self, scheduler, text):
        part = NodePart(gpus=[gpu(repeated((94.0, 36), (0.0, 24)))], scheduler=scheduler)
        assert text in found(gpu_used_only_at_first, scenario(part)).action


class TestLowUse:
    @pytest.mark.parametrize(
        ("mean", "severity"),
        [
            (14.99, Severity.CRITICAL),
            (15.0, Severity.CRITICAL),
            (15.01, Severity.WARNING),
            (25.0, Severity.WARNING),
            (25.01, Severity.REMARK),
            (49.99, Severity.REMARK),
            (50.0, None),
            (50.01, None),
        ],
    )
    def test_thresholds(self, mean, severity):
        verdict = judged(gpu_low_use, scenario(NodePart(gpus=[gpu(mean)])))
        assert [finding.severity for finding in verdict] == ([severity] if severity else [])

    def test_cites_the_source_of_its_band(self):
        finding = found(gpu_low_use, low_use())
        assert finding.sentence == "GPUs 0, 1, 2 and 3 on r01g01 were busy 20 % of the time."
        assert [(limit.value, limit.source.split(",")[0].split(":")[0]) for limit in
                finding.thresholds] == [(25.0, "Jobstats"), (50.0, "CSC")]  # fmt: skip

    def test_the_number_of_workers_comes_from_the_cores(self):
        finding = found(gpu_low_use, low_use())
        assert "DataLoader(num_workers=9," in finding.action  # 40 cores ÷ 4 GPUs - 1

    def test_one_core_still_gets_one_worker(self):
        made = scenario(NodePart(cores=1, gpus=[gpu(20.0)]))
        finding = found(gpu_low_use, made)
        assert "num_workers=1," in finding.action
        assert "fewer GPUs" not in finding.action

    def test_what_was_not_seen_is_among_the_evidence(self):
        made = scenario(NodePart(gpus=[gpu(20.0), gpu(UNSUPPORTED)]))
        assert (
            figures(found(gpu_low_use, made))["not judged: GPU busy, GPU 1 on r01g01"]
            == UNSUPPORTED
        )

    @pytest.mark.parametrize(("seen_bins", "judges"), [(29, False), (30, True)])
    def test_less_than_half_of_the_run_is_not_judged(self, seen_bins, judges):
        busy = repeated((20.0, seen_bins), (None, BINS - seen_bins))
        verdict = judged(gpu_low_use, scenario(NodePart(gpus=[gpu(busy)])))
        assert isinstance(verdict, list) is judges

    def test_a_lost_gpu_says_how_much_of_it_was_seen(self):
        verdict = judged(gpu_low_use, lost_gpu())
        assert verdict.lacked == "GPU busy of GPU 1 on r01g01: recorded for 20 min of 1 h"


class TestOneIdle:
    def test_one_of_several(self):
        finding = found(gpu_one_idle, one_idle_gpu())
        assert finding.sentence == "GPU 1 on r01g01 was idle while 3 other GPUs worked."
        assert finding.severity is Severity.CRITICAL
        held = "memory that the program held there, GPU 1 on r01g01"
        assert figures(finding)[held] == 16.5 * GIB
        assert "`torchrun --nproc-per-node=4`" in finding.action
        assert "`--gpus-per-node=3`" in finding.action

    @pytest.mark.parametrize(("rest", "count"), [(9.99, 1), (10.0, 0), (10.01, 0)])
    def test_threshold_of_idle(self, rest, count):
        assert len(judged(gpu_one_idle, scenario(NodePart(gpus=[gpu(), gpu(rest)])))) == count

    @pytest.mark.parametrize(("work", "count"), [(24.99, 0), (25.0, 1), (25.01, 1)])
    def test_threshold_of_the_others(self, work, count):
        made = scenario(NodePart(gpus=[gpu(work), gpu(0.0)]))
        assert len(judged(gpu_one_idle, made)) == count

    def test_a_busy_gpu_on_another_node_is_not_a_neighbour(self):
        made = scenario(NodePart("r01g01", gpus=[gpu()]), NodePart("r01g02", gpus=[gpu(0.0)]))
        assert judged(gpu_one_idle, made) == []

    def test_two_idle_beside_one(self):
        made = scenario(NodePart(gpus=[gpu(), gpu(0.0), gpu(0.0)]))
        expected = "GPUs 1 and 2 on r01g01 were idle while another GPU worked."
        assert found(gpu_one_idle, made).sentence == expected

    def test_abstains_where_a_neighbour_was_not_seen(self):
        made = scenario(NodePart(gpus=[gpu(), gpu(UNSUPPORTED)]))
        assert isinstance(judged(gpu_one_idle, made), Abstention)


class TestMemoryFull:
    @pytest.mark.parametrize(("percent", "count"), [(94.99, 0), (95.0, 1), (95.01, 1)])
    def test_threshold(self, percent, count):
        used = 32 * GIB * percent / 100
        made = scenario(NodePart(gpus=[gpu(gpu_memory_used_bytes=used)]))
        assert len(judged(gpu_memory_full, made)) == count

    def test_judges_the_highest_moment(self):
        used = repeated((4.0 * GIB, 59), (31.5 * GIB, 1))
        finding = found(gpu_memory_full, scenario(NodePart(gpus=[gpu(gpu_memory_used_bytes=used)])))
        assert finding.sentence == "The memory of GPU 0 on r01g01 was 98 % full."
        assert finding.severity is Severity.REMARK

    def test_abstains_without_the_total(self):
        verdict = judged(gpu_memory_full, scenario(NodePart(gpus=[gpu()], gpu_memory_bytes=None)))
        assert verdict.lacked == "GPU memory, total of GPU 0 on r01g01: not offered"


class TestThrottled:
    def test_heat_and_power_are_two_findings(self):
        heat, power = judged(gpu_throttled, hot_gpu())
        assert heat.severity is Severity.WARNING
        assert heat.sentence == "GPU 0 on r01g01 was slowed by heat in 31 % of the samples."
        assert figures(heat)["GPU temperature, highest, GPU 0 on r01g01"] == 91.0
        assert "`--exclude=r01g01`" in heat.action
        assert power.severity is Severity.REMARK
        assert power.sentence == "GPU 1 on r01g01 ran at its power limit in 80 % of the samples."

    @pytest.mark.parametrize(
        ("signal", "value", "count"),
        [
            ("gpu_thermal_throttle_percent", 4.99, 0),
            ("gpu_thermal_throttle_percent", 5.0, 1),
            ("gpu_thermal_throttle_percent", 5.01, 1),
            ("gpu_temperature_c", 89.99, 0),
            ("gpu_temperature_c", 90.0, 1),
            ("gpu_temperature_c", 90.01, 1),
            ("gpu_power_throttle_percent", 49.99, 0),
            ("gpu_power_throttle_percent", 50.0, 1),
            ("gpu_power_throttle_percent", 50.01, 1),
        ],
    )
    def test_thresholds(self, signal, value, count):
        verdict = judged(gpu_throttled, scenario(NodePart(gpus=[gpu(**{signal: value})])))
        assert len(verdict) == count

    def test_temperature_alone(self):
        made = scenario(NodePart(gpus=[gpu(gpu_temperature_c=93.0)] * 2, scheduler="grid_engine"))
        finding = found(gpu_throttled, made)
        assert finding.sentence == "GPUs 0 and 1 on r01g01 reached 93 °C."
        assert "--exclude" not in finding.action

    def test_on_ones_own_machine_there_is_no_support(self):
        made = scenario(NodePart(gpus=[gpu(gpu_temperature_c=93.0)], scheduler=None))
        assert "`nvidia-smi -q -d TEMPERATURE`" in found(gpu_throttled, made).action

    def test_a_signal_that_is_there_is_judged_without_the_others(self):
        hot = gpu(gpu_thermal_throttle_percent=UNSUPPORTED, gpu_temperature_c=95.0)
        finding = found(gpu_throttled, scenario(NodePart(gpus=[hot])))
        assert isinstance(figures(finding)["not judged: slowed by heat, GPU 0 on r01g01"], Missing)


class TestInvisible:
    def test_names_the_variable_that_hides_them(self):
        finding = found(gpu_invisible, hidden_gpu())
        assert finding.sentence == "The job holds 4 GPUs on r01g01, and the program can see 1."
        assert finding.severity is Severity.CRITICAL
        assert figures(finding)["CUDA_VISIBLE_DEVICES"] == "0"
        assert "`unset CUDA_VISIBLE_DEVICES`" in finding.action
        assert "`--gpus-per-node=1`" in finding.action

    @pytest.mark.parametrize(("held", "count"), [(0, 0), (1, 0), (2, 0), (3, 1)])
    def test_threshold(self, held, count):
        given = Allocation(scheduler="slurm", gpus_held=held)
        made = scenario(NodePart(gpus=[gpu(), gpu()], allocation=given))
        assert len(judged(gpu_invisible, made)) == count

    def test_no_gpu_seen_at_all(self):
        given = Allocation(scheduler="grid_engine", gpus_held=1)
        made = scenario(NodePart(allocation=given), environment={"CUDA_VISIBLE_DEVICES": ""})
        finding = found(gpu_invisible, made)
        assert finding.sentence == "The job holds 1 GPU on r01g01, and the program can see none."
        assert figures(finding)["CUDA_VISIBLE_DEVICES"] == "set, and empty"
        assert "leave the GPU out of the request" in finding.action

    @pytest.mark.parametrize(
        ("scheduler", "text"),
        [("slurm", "`srun --gpu-bind=none`"), ("grid_engine", "`env | grep VISIBLE_DEVICES`")],
    )
    def test_nodes_alike_are_one_finding(self, scheduler, text):
        given = Allocation(scheduler=scheduler, gpus_held=4)
        names = ("r01g01", "r01g02")
        made = scenario(*(NodePart(name, gpus=[gpu()], allocation=given) for name in names))
        finding = found(gpu_invisible, made)
        assert finding.sentence == (
            "The job holds 4 GPUs on r01g01 and r01g02 each, and the program can see 1."
        )
        assert text in finding.action

    def test_outside_a_job_nothing_is_held(self):
        made = scenario(NodePart(gpus=[gpu()], allocation=Allocation(gpus_held=4)))
        assert judged(gpu_invisible, made) == []

    def test_a_cpu_job_of_which_nothing_is_known(self):
        made = scenario(NodePart(allocation=Allocation(scheduler="slurm")))
        assert judged(gpu_invisible, made) == []


def io_run(busy=5.0, iowait=60.0, runnable=0.5, cores=10):
    signals = {"cpu_iowait_percent": iowait, "job_runnable_threads": runnable}
    return scenario(NodePart(cores=cores, signals=signals, gpus=[gpu(busy)]))


class TestIoWait:
    def test_one_reading_thread_on_many_cores(self):
        finding = found(io_wait_gpu_idle, starved_by_io())
        assert finding.sentence == (
            "The GPU on r01g01 idled while the program waited for storage, 100 % of the time."
        )
        assert finding.severity is Severity.WARNING
        assert figures(finding)["I/O wait, mean, r01g01"] == 9.0
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
            "time with idle GPUs and I/O wait, r01g01"
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
        finding = found(cpu_busy_gpu_idle, starved_by_all_cores())
        assert finding.sentence == (
            "The GPU on r01g01 idled while all the job's cores were busy, 100 % of the time."
        )
        assert "`--cpus-per-task=8` (with one task a node)" in finding.action
        assert "`DataLoader(num_workers=7)`" in finding.action

    def test_one_main_thread(self):
        finding = found(cpu_busy_gpu_idle, starved_by_cpu())
        assert finding.sentence == (
            "The GPU on r01g01 idled while the program worked on one core of 10, 100 % of the time."
        )
        assert figures(finding)["busiest core, mean, r01g01"] == 100.0
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
        assert action.startswith("Try `DataLoader(num_workers=9)`")

    def test_abstains_without_the_cpu(self):
        assert isinstance(judged(cpu_busy_gpu_idle, cpu_run(cpu=UNSUPPORTED)), Abstention)
        verdict = judged(cpu_busy_gpu_idle, cpu_run(cpu=20.0, used=UNSUPPORTED))
        assert verdict.lacked == "job CPU time of r01g01: not offered under MIG"

    def test_a_series_of_another_length_is_no_signal(self):
        run, summary = cpu_run()
        summary.nodes[0].series["cpu_busy_percent"] = [95.0]
        assert isinstance(judged(cpu_busy_gpu_idle, (run, summary)), Abstention)
