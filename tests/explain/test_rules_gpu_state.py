"""Rules about memory, heat and visibility of GPUs, on both sides of their thresholds."""

from __future__ import annotations

import pytest

from explain import scenarios
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
)
from teho.explain.rules.energy import gpu_throttled
from teho.explain.rules.gpu import gpu_invisible
from teho.explain.rules.memory import gpu_memory_full
from teho.model.allocation import Allocation
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.units import GIB


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
    def test_names_the_gpu_and_its_heat(self):
        heat = found(gpu_throttled, scenarios.hot_gpu())
        assert heat.severity is Severity.WARNING
        assert heat.sentence == "GPU 0 on r01g01 was slowed by heat in 31 % of the samples."
        assert figures(heat)["GPU temperature, highest (GPU 0 on r01g01)"] == 91.0
        assert "`--exclude=r01g01`" in heat.action

    @pytest.mark.parametrize(
        ("signal", "value", "count"),
        [
            ("gpu_thermal_throttle_percent", 4.99, 0),
            ("gpu_thermal_throttle_percent", 5.0, 1),
            ("gpu_thermal_throttle_percent", 5.01, 1),
            ("gpu_temperature_c", 89.99, 0),
            ("gpu_temperature_c", 90.0, 1),
            ("gpu_temperature_c", 90.01, 1),
        ],
    )
    def test_thresholds(self, signal, value, count):
        verdict = judged(gpu_throttled, scenario(NodePart(gpus=[gpu(**{signal: value})])))
        assert len(verdict) == count

    def test_only_temperature(self):
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
        assert isinstance(
            figures(finding)["not judged: slowing by heat (GPU 0 on r01g01)"], Missing
        )


class TestInvisible:
    def test_names_the_variable_that_hides_them(self):
        finding = found(gpu_invisible, scenarios.hidden_gpu())
        assert finding.sentence == "The job has 4 GPUs on r01g01, but the program can see only 1."
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
        assert finding.sentence == "The job has 1 GPU on r01g01, but the program can see none."
        assert figures(finding)["CUDA_VISIBLE_DEVICES"] == "set, but empty"
        assert "do not request the GPU" in finding.action

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
            "The job has 4 GPUs on r01g01 and r01g02 each, but the program can see only 1."
        )
        assert text in finding.action

    def test_outside_a_job_nothing_is_allocated(self):
        made = scenario(NodePart(gpus=[gpu()], allocation=Allocation(gpus_held=4)))
        assert judged(gpu_invisible, made) == []

    def test_a_cpu_job_of_which_nothing_is_known(self):
        made = scenario(NodePart(allocation=Allocation(scheduler="slurm")))
        assert judged(gpu_invisible, made) == []
