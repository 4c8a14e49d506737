"""Rules on how a busy GPU was used: both sides of their thresholds, and what they lack."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import (
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
    untouched_gpu,
)
from teho.explain.rule import kind_of
from teho.explain.rules.energy import gpu_power_capped
from teho.explain.rules.gpu import (
    gpu_held_idle,
    gpu_launch_bound,
    gpu_low_occupancy,
    gpu_memory_bound,
    gpu_never_used,
    gpu_pcie_bound,
    gpu_slow_fp64,
    gpu_sm_low,
    gpu_tensor_cores_idle,
)
from teho.model.finding import Abstention, Lack, Severity
from teho.model.missing import Missing, Reason
from teho.units import GIB

H100 = "NVIDIA H100 80GB HBM3"
L40S = "NVIDIA L40S"
UNKNOWN = "NVIDIA GeForce RTX 9090"
NO_GPM = Missing(Reason.UNSUPPORTED, "GPM needs a Hopper GPU or newer")


def one(model=H100, busy=100.0, **signals):
    return scenario(NodePart(gpus=[gpu(busy, **signals)], model=model, gpu_memory_bytes=80 * GIB))


class TestMultiprocessors:
    @pytest.mark.parametrize(
        ("active", "severity"),
        [
            (80.01, None),
            (80.0, None),
            (79.99, Severity.REMARK),
            (50.0, Severity.REMARK),
            (49.99, Severity.WARNING),
        ],
    )
    def test_thresholds(self, active, severity):
        verdict = judged(gpu_sm_low, one(gpu_sm_active_percent=active))
        assert [finding.severity for finding in verdict] == ([severity] if severity else [])

    def test_busy_is_not_how_much_of_the_gpu_was_used(self):
        """The naive way: 99 % busy, so all is well."""
        finding = found(gpu_sm_low, one(busy=99.0, gpu_sm_active_percent=30.0))
        assert finding.sentence == (
            "GPU 0 on r01g01 used only 30 % of its multiprocessors (computing units) while busy."
        )
        assert figures(finding)["GPU busy, mean (GPU 0 on r01g01)"] == 99.0

    def test_pauses_do_not_count(self):
        """The naive way takes the mean of the whole run, 54 %, and calls it low."""
        busy, active = repeated((0.0, 24), (95.0, 36)), repeated((0.0, 24), (90.0, 36))
        assert judged(gpu_sm_low, one(busy=busy, gpu_sm_active_percent=active)) == []

    @pytest.mark.parametrize(("working", "count"), [(15, 0), (16, 1)])
    def test_a_gpu_that_hardly_worked_is_left_to_other_rules(self, working, count):
        busy = repeated((0.0, 50 - working), (95.0, working), (0.0, 10))
        made = one(busy=busy, gpu_sm_active_percent=20.0)
        assert len(judged(gpu_sm_low, made)) == count

    @pytest.mark.parametrize(("pause", "count"), [(20, 0), (19, 1)])
    def test_a_gpu_with_long_pauses_is_left_to_other_rules(self, pause, count):
        busy = repeated((0.0, 40 - pause), (95.0, 10), (0.0, pause), (95.0, 10))
        made = one(busy=busy, gpu_sm_active_percent=20.0)
        assert len(judged(gpu_sm_low, made)) == count

    @pytest.mark.parametrize(("active", "count"), [(55.0, 0), (40.0, 1)])
    def test_short_pauses_within_a_bin_are_no_idle_multiprocessors(self, active, count):
        """The naive way takes the mean of the bins, 55 %, of a GPU that pauses each second."""
        made = one(busy=60.0, gpu_sm_active_percent=active)
        assert len(judged(gpu_sm_low, made)) == count

    def test_of_an_idle_gpu_nothing_is_missed(self):
        made = one(busy=0.0, gpu_sm_active_percent=NO_GPM)
        assert judged(gpu_sm_low, made) == []

    def test_a_mig_instance_is_judged_without_a_busy_share(self):
        model = f"{H100} MIG 1g.10gb"
        made = one(model, busy=UNSUPPORTED, gpu_sm_active_percent=12.0)
        finding = found(gpu_sm_low, made)
        assert finding.sentence == (
            "GPU 0 on r01g01 used only 12 % of its multiprocessors (computing units)."
        )

    def test_compute_units_of_amd_are_judged_alike(self):
        made = scenario(NodePart(gpus=[gpu(gpu_sm_active_percent=33.0)], vendor="amd"))
        assert found(gpu_sm_low, made).severity is Severity.WARNING

    def test_says_what_it_lacked(self):
        verdict = judged(gpu_sm_low, one(gpu_sm_active_percent=NO_GPM))
        assert verdict == Abstention(
            kind="gpu_sm_low",
            lacked="SM activity of GPU 0 on r01g01: GPM needs a Hopper GPU or newer",
            lacks=(Lack("SM activity", "GPU 0 on r01g01", "GPM needs a Hopper GPU or newer"),),
        )

    def test_recorded_only_while_idle(self):
        busy = repeated((0.0, 29), (95.0, 31))
        seen = repeated((1.0, 29), (None, 31))
        made = one(busy=busy, gpu_sm_active_percent=seen)
        assert isinstance(judged(gpu_sm_low, made), Abstention)
        seen = [*repeated((1.0, 45)), 1.0, *repeated((None, 14))]
        busy = repeated((0.0, 45), (None, 1), (95.0, 14))
        assert judged(gpu_sm_low, one(busy=busy, gpu_sm_active_percent=seen)) == []


class TestLaunchBound:
    @pytest.mark.parametrize(
        ("busy", "active", "count"),
        [(40.0, 24.99, 1), (40.0, 25.0, 0), (39.99, 10.0, 0), (99.0, 5.0, 1)],
    )
    def test_thresholds(self, busy, active, count):
        made = one(busy=busy, gpu_sm_active_percent=active)
        assert len(judged(gpu_launch_bound, made)) == count

    @pytest.mark.parametrize(("small", "count"), [(30, 0), (31, 1)])
    def test_for_most_of_the_time(self, small, count):
        active = repeated((10.0, small), (90.0, 60 - small))
        assert len(judged(gpu_launch_bound, one(gpu_sm_active_percent=active))) == count

    def test_takes_the_place_of_low_activity(self):
        made = one(gpu_sm_active_percent=9.0, gpu_sm_occupancy_percent=4.0)
        assert kinds_of(made) == ["gpu_launch_bound"]
        sentence = found(gpu_launch_bound, made).sentence
        assert sentence == (
            "GPU 0 on r01g01 was busy with small kernels (functions on the GPU): only 9.0 % of "
            "the multiprocessors (computing units) had work."
        )

    def test_several_gpus_may_wait_for_each_other(self):
        small = gpu(95.0, gpu_sm_active_percent=9.0)
        action = found(gpu_launch_bound, scenario(NodePart(gpus=[small, small]))).action
        assert "waits for other GPUs shows the same values" in action
        assert "other GPUs" not in found(gpu_launch_bound, one(gpu_sm_active_percent=9.0)).action

    @pytest.mark.parametrize("signal", ["gpu_busy_percent", "gpu_sm_active_percent"])
    def test_abstains(self, signal):
        made = scenario(NodePart(gpus=[{**gpu(), signal: FORBIDDEN}]))
        assert isinstance(judged(gpu_launch_bound, made), Abstention)


class TestOccupancy:
    @pytest.mark.parametrize(("occupancy", "count"), [(49.99, 1), (50.0, 0), (50.01, 0)])
    def test_threshold(self, occupancy, count):
        made = one(gpu_sm_occupancy_percent=occupancy)
        assert len(judged(gpu_low_occupancy, made)) == count

    def test_is_never_more_than_a_remark(self):
        assert found(gpu_low_occupancy, one(gpu_sm_occupancy_percent=1.0)).severity is (
            Severity.REMARK
        )

    @pytest.mark.parametrize("pipe", ["gpu_tensor_percent", "gpu_fp64_percent", "gpu_dram_percent"])
    @pytest.mark.parametrize(("share", "count"), [(59.99, 1), (60.0, 0)])
    def test_what_is_at_a_limit_needs_no_more_warps(self, pipe, share, count):
        """The naive way: occupancy below 50 % is slow. DCGM's manual says that it need not be."""
        made = one(**{"gpu_sm_occupancy_percent": 20.0, pipe: share})
        assert len(judged(gpu_low_occupancy, made)) == count

    @pytest.mark.parametrize(("share", "count"), [(59.0, 1), (61.0, 0)])
    def test_a_limit_counts_while_the_gpu_is_busy(self, share, count):
        """The naive way takes the mean of the whole run, with its start: 31 %."""
        busy, pipe = repeated((0.0, 30), (100.0, 30)), repeated((0.0, 30), (share, 30))
        signals = {"gpu_fp32_percent": pipe, "gpu_dram_percent": 5.0, "gpu_tensor_percent": 1.0}
        made = one(busy=busy, gpu_sm_occupancy_percent=20.0, **signals)
        assert len(judged(gpu_low_occupancy, made)) == count

    def test_multiprocessors_without_work_explain_it(self):
        made = one(gpu_sm_active_percent=60.0, gpu_sm_occupancy_percent=20.0)
        assert kinds_of(made) == ["gpu_sm_low"]

    def test_abstains(self):
        made = one(gpu_sm_occupancy_percent=NO_GPM)
        assert isinstance(judged(gpu_low_occupancy, made), Abstention)

    def test_no_warp_at_all_on_a_busy_gpu_is_no_occupancy(self):
        """KFD tells of the job's processes alone: what keeps the GPU busy is then another's."""
        verdict = judged(gpu_low_occupancy, one(gpu_sm_occupancy_percent=0.0))
        assert isinstance(verdict, Abstention)
        assert "another job" in verdict.lacked


class TestTensorCores:
    @pytest.mark.parametrize(("tensor", "count"), [(0.0, 1), (0.99, 1), (1.0, 0)])
    def test_idle(self, tensor, count):
        made = one(gpu_tensor_percent=tensor, gpu_fp32_percent=80.0)
        assert len(judged(gpu_tensor_cores_idle, made)) == count

    @pytest.mark.parametrize(
        ("fp32", "fp16", "count"), [(20.0, 4.99, 0), (20.0, 5.0, 1), (0.0, 25.0, 1)]
    )
    def test_on_work_that_could_use_them(self, fp32, fp16, count):
        made = one(gpu_tensor_percent=0.0, gpu_fp32_percent=fp32, gpu_fp16_percent=fp16)
        assert len(judged(gpu_tensor_cores_idle, made)) == count

    def test_names_what_the_device_has(self):
        idle = {"gpu_tensor_percent": 0.0, "gpu_fp32_percent": 80.0}
        finding = found(gpu_tensor_cores_idle, one(**idle))
        assert finding.sentence == (
            "The tensor cores (fast units for matrix products) of GPU 0 on r01g01 did nothing. "
            "Other arithmetic units of the GPU computed for 82 % of the time."
        )
        assert "bfloat16" in finding.action
        volta = found(gpu_tensor_cores_idle, one("Tesla V100-SXM2-32GB", **idle))
        assert "float16" in volta.action
        assert "bfloat16" not in volta.action
        assert "the number of channels and the width of the images multiples of 8" in volta.action

    def test_a_gpu_without_any_is_not_asked(self):
        made = one("Tesla P100-PCIE-16GB", gpu_tensor_percent=UNSUPPORTED, gpu_fp32_percent=80.0)
        assert judged(gpu_tensor_cores_idle, made) == []

    def test_an_unknown_gpu_is_not_accused(self):
        made = one(UNKNOWN, gpu_tensor_percent=0.0, gpu_fp32_percent=80.0)
        assert judged(gpu_tensor_cores_idle, made).lacked == (
            "peak of the tensor cores of GPU 0 on r01g01: "
            f"the peak rates of {UNKNOWN} are not known"
        )

    @pytest.mark.parametrize(
        "signal", ["gpu_tensor_percent", "gpu_fp32_percent", "gpu_fp16_percent"]
    )
    def test_abstains(self, signal):
        idle = {"gpu_tensor_percent": 0.0, "gpu_fp32_percent": 80.0, signal: NO_GPM}
        assert isinstance(judged(gpu_tensor_cores_idle, one(**idle)), Abstention)


class TestFp64:
    @pytest.mark.parametrize(("share", "count"), [(9.99, 0), (10.0, 1), (90.0, 1)])
    def test_share_of_time(self, share, count):
        made = one(L40S, gpu_fp64_percent=share)
        assert len(judged(gpu_slow_fp64, made)) == count

    @pytest.mark.parametrize(
        ("model", "count"),
        [(H100, 0), ("Tesla V100-SXM2-32GB", 0), (L40S, 1), ("Tesla T4", 1)],
    )
    def test_only_where_the_gpu_is_poor_at_it(self, model, count):
        assert len(judged(gpu_slow_fp64, one(model, gpu_fp64_percent=60.0))) == count

    def test_says_how_poor(self):
        finding = found(gpu_slow_fp64, one(L40S, gpu_fp64_percent=60.0))
        assert finding.sentence == (
            "GPU 0 on r01g01 computed with 64-bit numbers for 60 % of the time. Its speed with "
            "64-bit numbers is only 1.6 % of the speed with 32-bit numbers."
        )

    def test_a_good_gpu_needs_no_signal(self):
        assert judged(gpu_slow_fp64, one(gpu_fp64_percent=NO_GPM)) == []

    def test_abstains(self):
        made = one(L40S, gpu_fp64_percent=NO_GPM)
        assert isinstance(judged(gpu_slow_fp64, made), Abstention)
        unknown = judged(gpu_slow_fp64, one(UNKNOWN, gpu_fp64_percent=60.0))
        assert unknown.lacked.startswith("rate of 64-bit arithmetic of GPU 0")
        assert judged(gpu_slow_fp64, one(UNKNOWN, gpu_fp64_percent=0.0)) == []


class TestMemoryBound:
    @pytest.mark.parametrize(("traffic", "count"), [(59.99, 0), (60.0, 1), (85.0, 1)])
    def test_threshold(self, traffic, count):
        assert len(judged(gpu_memory_bound, one(gpu_dram_percent=traffic))) == count

    def test_is_a_remark_with_the_rate(self):
        finding = found(gpu_memory_bound, one(gpu_dram_percent=70.0))
        assert finding.severity is Severity.REMARK
        traffic = figures(finding)["memory traffic while the GPU was busy (GPU 0 on r01g01)"]
        assert traffic == pytest.approx(0.7 * 3.35e12)

    def test_an_unknown_gpu_has_a_share_and_no_rate(self):
        labels = figures(found(gpu_memory_bound, one(UNKNOWN, gpu_dram_percent=70.0)))
        assert not any(label.startswith("memory traffic") for label in labels)

    def test_without_pipes_it_still_reports(self):
        made = one(
            gpu_dram_percent=70.0, gpu_tensor_percent=UNSUPPORTED, gpu_fp32_percent=UNSUPPORTED
        )
        assert found(gpu_memory_bound, made).kind == "gpu_memory_bound"

    def test_how_busy_the_memory_was_is_no_bandwidth(self):
        """The naive way takes NVML's memory utilisation, a share of time, for bandwidth."""
        made = one(gpu_dram_percent=NO_GPM, gpu_memory_busy_percent=95.0)
        assert isinstance(judged(gpu_memory_bound, made), Abstention)


class TestPcie:
    LINK = 15.754e9  # V100: PCIe 3.0 x16

    def copying(self, share, busy=30.0, **signals):
        signals = {"gpu_pcie_receive_bytes_per_s": share * self.LINK, **signals}
        return one("Tesla V100-SXM2-32GB", busy=busy, **signals)

    @pytest.mark.parametrize(
        ("share", "severity"),
        [(0.199, None), (0.201, Severity.REMARK), (0.499, Severity.REMARK),
         (0.501, Severity.WARNING)],
    )  # fmt: skip
    def test_share_of_the_link(self, share, severity):
        verdict = judged(gpu_pcie_bound, self.copying(share))
        assert [finding.severity for finding in verdict] == ([severity] if severity else [])

    @pytest.mark.parametrize(("active", "count"), [(79.99, 1), (80.0, 0)])
    def test_copies_behind_work_cost_nothing(self, active, count):
        made = self.copying(0.6, busy=99.0, gpu_sm_active_percent=active)
        assert len(judged(gpu_pcie_bound, made)) == count

    def test_busy_replaces_the_multiprocessors(self):
        for busy, count in ((79.99, 1), (80.0, 0)):
            made = self.copying(0.6, busy=busy, gpu_sm_active_percent=UNSUPPORTED)
            assert len(judged(gpu_pcie_bound, made)) == count

    def test_both_ways_are_not_added_up(self):
        """The naive way: 0.12 + 0.12 of a link that carries as much in each direction."""
        made = self.copying(0.12, gpu_pcie_send_bytes_per_s=0.12 * self.LINK)
        assert judged(gpu_pcie_bound, made) == []

    def test_the_busier_way_counts(self):
        made = self.copying(0.01, gpu_pcie_send_bytes_per_s=0.3 * self.LINK)
        assert (
            "copied 4.73 GB/s over PCIe (the connection to the CPU), which is 30 % of the highest"
            in (found(gpu_pcie_bound, made).sentence)
        )

    def test_explains_low_activity(self):
        made = self.copying(0.6, busy=60.0, gpu_sm_active_percent=40.0)
        assert kinds_of(made) == ["gpu_pcie_bound"]

    @pytest.mark.parametrize(
        "model", ["NVIDIA GH200 480GB", f"{H100} MIG 1g.10gb", "AMD Instinct MI250X"]
    )
    def test_without_such_a_link_nothing_is_requested(self, model):
        missing = dict.fromkeys(
            ("gpu_pcie_receive_bytes_per_s", "gpu_pcie_send_bytes_per_s"), UNSUPPORTED
        )
        assert judged(gpu_pcie_bound, one(model, busy=30.0, **missing)) == []

    def test_abstains(self):
        made = self.copying(0.0, gpu_pcie_receive_bytes_per_s=UNSUPPORTED)
        assert isinstance(judged(gpu_pcie_bound, made), Abstention)
        unknown = one(UNKNOWN, busy=30.0)
        assert "rate of the PCIe link of GPU 0" in judged(gpu_pcie_bound, unknown).lacked
        nobody_knows = self.copying(0.6, busy=FORBIDDEN, gpu_sm_active_percent=FORBIDDEN)
        assert isinstance(judged(gpu_pcie_bound, nobody_knows), Abstention)


class TestPowerCap:
    @staticmethod
    def capped(share=80.0, limit_w=300.0, default_w=700.0):
        one = gpu(gpu_power_throttle_percent=share)
        return scenario(NodePart(gpus=[one], power_limit_w=limit_w, power_default_w=default_w))

    @pytest.mark.parametrize(("share", "count"), [(49.99, 0), (50.0, 1), (50.01, 1)])
    def test_threshold(self, share, count):
        assert len(judged(gpu_power_capped, self.capped(share))) == count

    @pytest.mark.parametrize(("limit_w", "count"), [(685.9, 1), (686.0, 0), (700.0, 0)])
    def test_the_limit_of_the_maker_is_no_finding(self, limit_w, count):
        assert len(judged(gpu_power_capped, self.capped(limit_w=limit_w))) == count

    def test_names_both_limits(self):
        finding = found(gpu_power_capped, self.capped())
        assert finding.severity is Severity.REMARK
        assert finding.sentence.startswith(
            "GPU 0 on r01g01 ran at its power limit in 80 % of the samples."
        )
        assert figures(finding)["power limit (GPU 0 on r01g01)"] == 300.0
        assert figures(finding)["the maker's power limit (GPU 0 on r01g01)"] == 700.0

    @pytest.mark.parametrize("unknown", [{"limit_w": None}, {"default_w": None}])
    def test_abstains_if_a_limit_is_unknown(self, unknown):
        verdict = judged(gpu_power_capped, self.capped(**unknown))
        assert isinstance(verdict, Abstention)
        assert "power limit of GPU 0" in verdict.lacked

    def test_is_separate_from_heat(self):
        assert kinds_of(self.capped()) == ["gpu_power_capped"]


def instances(made):
    """Make every GPU a MIG instance."""
    run, summary = made
    nodes = tuple(
        msgspec.structs.replace(node, gpus=tuple(instance(gpu) for gpu in node.gpus))
        for node in summary.nodes
    )
    return run, msgspec.structs.replace(summary, nodes=nodes)


def instance(of):
    device = msgspec.structs.replace(of.device, parent_id="GPU-whole")
    return msgspec.structs.replace(of, device=device)


class TestHeldIdle:
    def held(self, **signals):
        return scenario(NodePart(gpus=[{**untouched_gpu(), "gpu_job_processes": 1.0, **signals}]))

    @pytest.mark.parametrize(("peak", "count"), [(0.0, 1), (0.99, 1), (1.0, 0)])
    def test_threshold(self, peak, count):
        assert len(judged(gpu_held_idle, self.held(gpu_busy_percent=peak))) == count

    def test_the_only_gpu(self):
        made = self.held(gpu_job_memory_bytes=30.0 * GIB)
        finding = found(gpu_held_idle, made)
        assert finding.sentence == (
            "The program used memory of GPU 0 on r01g01, but computed nothing on this GPU."
        )
        used = figures(finding)["memory used by the program on the GPU (GPU 0 on r01g01)"]
        assert used == 30 * GIB
        assert kinds_of(made) == ["gpu_held_idle"]

    def test_next_to_one_that_worked_it_is_the_idle_one(self):
        made = scenario(NodePart(gpus=[gpu(), gpu(0.0)]))
        assert kinds_of(made) == ["gpu_one_idle"]

    @pytest.mark.parametrize("processes", [0.0, 1.0])
    @pytest.mark.parametrize(("most", "count"), [(0.0, 1), (0.1, 0)])
    def test_a_mig_instance_is_judged_by_its_multiprocessors(self, processes, most, count):
        """It has no busy share: without them an idle slice is never found."""
        signals = {**untouched_gpu(), "gpu_busy_percent": UNSUPPORTED,
                   "gpu_sm_active_percent": most, "gpu_sm_occupancy_percent": most,
                   "gpu_job_processes": processes}  # fmt: skip
        made = instances(scenario(NodePart(gpus=[signals], model=f"{H100} MIG 1g.10gb")))
        rule = gpu_held_idle if processes else gpu_never_used
        assert len(judged(rule, made)) == count
        if count:
            assert kinds_of(made) == [kind_of(rule)]
            assert figures(found(rule, made))["SM activity, highest (GPU 0 on r01g01)"] == 0

    def test_a_gpu_without_processes_is_no_finding(self):
        assert judged(gpu_held_idle, scenario(NodePart(gpus=[untouched_gpu()]))) == []

    def test_abstains(self):
        unknown = dict.fromkeys(("gpu_job_processes", "gpu_job_memory_bytes"), FORBIDDEN)
        made = scenario(NodePart(gpus=[{**untouched_gpu(), **unknown}]))
        assert isinstance(judged(gpu_held_idle, made), Abstention)
        short = scenario(NodePart(gpus=[gpu(0.0)]), elapsed_s=9.0)
        assert judged(gpu_held_idle, short).lacked.endswith("only 9 samples")


class TestTogether:
    def test_waiting_for_other_gpus_explains_small_kernels(self):
        rates = {"net_receive_bytes": 1.1e9, "net_send_bytes": 1.1e9}
        waiting = gpu(99.0, gpu_power_w=215.0, gpu_sm_active_percent=8.0)
        parts = [
            NodePart(name, gpus=[waiting] * 4, rates=rates, power_limit_w=700.0)
            for name in ("r01g01", "r01g02")
        ]
        assert kinds_of(scenario(*parts)) == ["communication_bound"]

    def test_a_short_run_is_not_judged_by_its_pipes(self):
        made = scenario(
            NodePart(gpus=[gpu(95.0, gpu_sm_active_percent=5.0, gpu_dram_percent=90.0)]),
            elapsed_s=19.0,
        )
        assert kinds_of(made) == ["job_too_short"]

    def test_what_one_gpu_lacks_does_not_silence_the_others(self):
        gpus = [gpu(gpu_sm_active_percent=40.0), gpu(gpu_sm_active_percent=NO_GPM)]
        finding = found(gpu_sm_low, scenario(NodePart(gpus=gpus)))
        missing = figures(finding)["not judged: SM activity (GPU 1 on r01g01)"]
        assert missing == NO_GPM
