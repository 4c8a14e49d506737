"""Where a run stands under its roofline: figures by hand, spans, reasons, several models."""

from __future__ import annotations

import pytest

from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    gpu,
    repeated,
    scenario,
    untouched_gpu,
)
from teho.explain.policy import load_policy
from teho.explain.roofline import rooflines_of, uncounted
from teho.model.missing import Missing, Reason

H100 = "NVIDIA H100 80GB HBM3"
IDLE_PIPES = dict.fromkeys(
    ("gpu_tensor_percent", "gpu_fp64_percent", "gpu_fp32_percent", "gpu_fp16_percent"), 0.0
)
NO_GPM = Missing(Reason.UNSUPPORTED, "GPM needs a Hopper GPU or newer")


def placed(*gpus, model=H100, **given):
    return rooflines_of(*scenario(NodePart(gpus=gpus, model=model, **given)), load_policy())


def alone(model=H100, **signals):
    (roofline,), lacking = placed(gpu(100.0, **signals), model=model)
    assert lacking is None
    return roofline


class TestFigures:
    def test_by_hand(self):
        """FP32 20 % of 66.9 TFLOP/s, memory 60 % of 3.35 TB/s: 13.38e12 / 2.01e12."""
        pipes = IDLE_PIPES | {"gpu_fp32_percent": 20.0, "gpu_dram_percent": 60.0}
        mean = alone(**pipes).mean
        assert mean.bytes_per_s == pytest.approx(2.01e12)
        assert mean.least_flop_per_s == mean.most_flop_per_s == pytest.approx(13.38e12)
        assert mean.most_flop_per_byte == pytest.approx(6.6567, rel=1e-4)

    def test_tensor_cores_are_a_span(self):
        """10 % of 494.7 or of 989.4 TFLOP/s: which of the two is not known."""
        pipes = IDLE_PIPES | {"gpu_tensor_percent": 10.0, "gpu_dram_percent": 10.0}
        mean = alone(**pipes).mean
        assert mean.least_flop_per_s == pytest.approx(49.47e12)
        assert mean.most_flop_per_s == pytest.approx(98.94e12)
        assert mean.most_flop_per_byte / mean.least_flop_per_byte == pytest.approx(2.0)

    def test_all_pipes_are_added_up(self):
        pipes = {
            "gpu_fp64_percent": 10.0,
            "gpu_fp32_percent": 10.0,
            "gpu_fp16_percent": 10.0,
            "gpu_tensor_percent": 0.0,
        }
        assert alone(**pipes).mean.most_flop_per_s == pytest.approx((3.35 + 6.69 + 13.38) * 1e12)

    def test_volta_has_one_rate_of_tensor_cores(self):
        mean = alone("Tesla V100-SXM2-32GB", gpu_tensor_percent=50.0).mean
        assert mean.least_flop_per_s == mean.most_flop_per_s

    def test_a_slice_has_its_own_roofline(self):
        (roofline,), _ = placed(gpu(UNSUPPORTED), model=f"{H100} MIG 1g.10gb")
        assert roofline.peaks.memory_bytes_per_s == pytest.approx(3.35e12 / 8)
        whole = alone(gpu_dram_percent=42.0).mean
        assert roofline.mean.bytes_per_s == pytest.approx(whole.bytes_per_s / 8)
        assert roofline.mean.most_flop_per_s == pytest.approx(whole.most_flop_per_s / 7)

    def test_pauses_are_left_out(self):
        """The naive way: the mean of the whole run, with its slow start."""
        busy, share = repeated((0.0, 20), (100.0, 40)), repeated((0.0, 20), (60.0, 40))
        (roofline,), _ = placed(gpu(busy, gpu_dram_percent=share))
        assert roofline.mean.memory_percent == pytest.approx(60.0)

    def test_the_mean_of_several(self):
        gpus = [gpu(100.0, gpu_dram_percent=share) for share in (20.0, 40.0, 60.0)]
        (roofline,), _ = placed(*gpus)
        assert [at.memory_percent for _, at in roofline.places] == [20.0, 40.0, 60.0]
        assert roofline.mean.memory_percent == pytest.approx(40.0)
        total = sum(at.most_flop_per_s for _, at in roofline.places)
        traffic = sum(at.bytes_per_s for _, at in roofline.places)
        assert roofline.mean.most_flop_per_byte == pytest.approx(total / traffic)

    def test_a_pipe_without_a_known_peak_is_named(self):
        roofline = alone("NVIDIA L40S", gpu_fp16_percent=5.0)
        assert uncounted(roofline) == ["FP16 pipe"]
        assert uncounted(alone("NVIDIA L40S", gpu_fp16_percent=0.0)) == []

    def test_pascal_has_no_tensor_cores_to_ask_for(self):
        roofline = alone("Tesla P100-PCIE-16GB", gpu_tensor_percent=UNSUPPORTED)
        assert "gpu_tensor_percent" not in roofline.mean.pipe_percent


class TestBound:
    @pytest.mark.parametrize(
        ("memory", "fp32", "bound"),
        [
            (59.99, 59.99, "neither"),
            (60.0, 10.0, "memory"),
            (10.0, 60.0, "arithmetic"),
            (70.0, 70.0, "memory"),
            (70.0, 75.0, "arithmetic"),
        ],
    )
    def test_the_nearer_roof_sets_the_pace(self, memory, fp32, bound):
        signals = IDLE_PIPES | {"gpu_fp32_percent": fp32, "gpu_dram_percent": memory}
        assert alone(**signals).bound == bound


class TestNone:
    def test_a_run_without_gpus(self):
        assert rooflines_of(*scenario(NodePart()), load_policy()) == ((), None)

    def test_gpus_that_were_not_at_work_lack_nothing(self):
        assert placed(untouched_gpu()) == ((), None)

    @pytest.mark.parametrize(
        "signal",
        ["gpu_dram_percent", "gpu_tensor_percent", "gpu_fp64_percent", "gpu_fp32_percent",
         "gpu_fp16_percent"],
    )  # fmt: skip
    def test_a_missing_signal_is_not_zero(self, signal):
        rooflines, lacking = placed(gpu(100.0, **{signal: NO_GPM}))
        assert rooflines == ()
        assert lacking.kind == "roofline"
        assert lacking.lacked.endswith("of GPU 0 on r01g01: GPM needs a Hopper GPU or newer")

    def test_an_unknown_device(self):
        rooflines, lacking = placed(gpu(), model="NVIDIA GeForce RTX 9090")
        assert rooflines == ()
        assert lacking.lacked == (
            "peak rates of GPU 0 on r01g01: the peak rates of NVIDIA GeForce RTX 9090 are not known"
        )

    @pytest.mark.parametrize("signals", [IDLE_PIPES, {"gpu_dram_percent": 0.0}])
    def test_without_arithmetic_or_traffic_there_is_no_place(self, signals):
        """Both axes are logarithmic."""
        rooflines, lacking = placed(gpu(100.0, **signals))
        assert rooflines == ()
        assert "or the memory traffic was zero" in lacking.lacked

    def test_amd_has_no_pipes(self):
        missing = dict.fromkeys((*IDLE_PIPES, "gpu_dram_percent"), UNSUPPORTED)
        rooflines, lacking = placed(gpu(**missing), vendor="amd", model="")
        assert rooflines == ()
        assert lacking.lacked.startswith("memory bandwidth of GPU 0")

    def test_one_that_is_missing_does_not_hide_the_others(self):
        rooflines, lacking = placed(gpu(), gpu(gpu_dram_percent=NO_GPM))
        assert len(rooflines[0].places) == 1
        assert "GPU 1 on r01g01" in lacking.lacked


def test_two_models_have_two_rooflines():
    parts = [
        NodePart("a", gpus=[gpu()], model=H100),
        NodePart("b", gpus=[gpu(), gpu()], model="NVIDIA L40S"),
    ]
    rooflines, _ = rooflines_of(*scenario(*parts), load_policy())
    assert [(one.model, len(one.places)) for one in rooflines] == [(H100, 1), ("NVIDIA L40S", 2)]
