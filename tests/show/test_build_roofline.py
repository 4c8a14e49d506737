"""The roofline in words: sentences, labels, notes, and the reason if there is none."""

from __future__ import annotations

from itertools import pairwise

import pytest

from explain.scenario_parts import UNSUPPORTED, NodePart, gpu, scenario
from teho.explain.analysis import Analysis
from teho.explain.peaks import all_peaks
from teho.model.run import RunState
from teho.show.build.report.document import build_report
from teho.show.text.document import render_text

H100 = "NVIDIA H100 80GB HBM3"
NO_TENSOR = {"gpu_tensor_percent": 0.0, "gpu_fp64_percent": 0.0, "gpu_fp16_percent": 0.0}


def view_of(*gpus, model=H100, **given):
    run, summary = scenario(NodePart(gpus=gpus, model=model, **given))
    return build_report(Analysis(run, RunState.FINISHED, summary))


def roofline_of(model=H100, **signals):
    (roofline,) = view_of(gpu(100.0, **signals), model=model).rooflines
    return roofline


def test_memory_bound():
    """12 FLOP/byte: 42.7 % of 66.9 TFLOP/s over 71 % of 3.35 TB/s."""
    roofline = roofline_of(**NO_TENSOR, gpu_fp32_percent=42.7, gpu_dram_percent=71.0)
    assert roofline.sentence == (
        "memory-bound (memory limits the speed): the memory was read and written at 71 % of "
        "3.35 TB/s; the arithmetic intensity was 12.0 FLOP/byte"
    )


def test_compute_bound():
    roofline = roofline_of(
        **NO_TENSOR | {"gpu_tensor_percent": 65.0}, gpu_fp32_percent=0.0, gpu_dram_percent=30.0
    )
    assert roofline.sentence == (
        "compute-bound (arithmetic limits the speed): the busiest pipe (tensor cores) was active "
        "for 65 % of the busy time, at most 322 to 643 TFLOP/s; the arithmetic intensity was 320 "
        "to 640 FLOP/byte"
    )
    assert any("precision" in note for note in roofline.notes)


def test_under_both_roofs():
    roofline = roofline_of(**NO_TENSOR, gpu_fp32_percent=8.0, gpu_dram_percent=12.0)
    assert roofline.sentence == (
        "neither memory nor arithmetic was at its limit: the memory was read and written at 12 % "
        "of 3.35 TB/s, and the busiest pipe (FP32 pipe) was active for 8.0 % of the busy time; "
        "the arithmetic intensity was 13.3 FLOP/byte"
    )
    assert any("its kernels were small" in note for note in roofline.notes)


def test_says_that_arithmetic_is_an_upper_bound():
    assert roofline_of().notes[0].startswith("A pipe is a part of the GPU")


def test_cites_the_document_of_the_peaks():
    assert "H100 whitepaper" in roofline_of().notes[-1]
    (roofline,) = view_of(gpu(UNSUPPORTED), model=f"{H100} MIG 1g.10gb").rooflines
    assert (
        "1/7 of the multiprocessors and 1/8 of the memory bandwidth of the whole GPU"
        in roofline.notes[-1]
    )


def test_roofs_that_are_one_line_share_it():
    labels = [roof.label for roof in roofline_of().roofs]
    assert labels == ["FP64", "FP32, FP64 tensor", "FP16", "TF32 tensor", "16-bit tensor"]


def test_only_what_was_used_is_active():
    roofline = roofline_of(**NO_TENSOR, gpu_fp32_percent=20.0)
    assert [roof.label for roof in roofline.roofs if roof.active] == ["FP32, FP64 tensor"]


@pytest.mark.parametrize("peaks", all_peaks(), ids=lambda peaks: peaks.names[0])
def test_every_known_device_can_be_drawn(peaks):
    """Some lack a rate, or have an unknown one."""
    roofline = roofline_of(peaks.names[0])
    heights = [roof.flop_per_s for roof in roofline.roofs]
    assert heights == sorted(heights)
    assert all(high > 1.07 * low for low, high in pairwise(heights))


def test_gpus_are_named_with_their_node_if_there_are_several():
    run, summary = scenario(*(NodePart(name, gpus=[gpu()], model=H100) for name in ("a", "b")))
    (roofline,) = build_report(Analysis(run, RunState.FINISHED, summary)).rooflines
    assert [point.label for point in roofline.points] == ["a GPU 0", "b GPU 0"]
    assert roofline.mean.label == "mean of 2 GPUs"


def test_the_only_gpu_is_no_mean():
    roofline = roofline_of()
    assert roofline.mean == roofline.points[0]


def test_without_a_roofline_the_reason_is_shown():
    view = view_of(gpu(gpu_dram_percent=UNSUPPORTED))
    assert view.rooflines == ()
    (lack,) = view.abstentions
    assert (lack.kind, lack.lacked) == (
        "roofline",
        "memory bandwidth of GPU 0 on r01g01: not offered under MIG",
    )


def test_in_text_it_is_a_sentence_and_what_to_know():
    view = view_of(gpu(100.0, **NO_TENSOR, gpu_fp32_percent=42.7, gpu_dram_percent=71.0))
    text = render_text(view, width=80, color=False, detail="why")
    assert "\nRoofline  NVIDIA H100 80GB HBM3 · memory-bound (memory limits the speed): the" in text
    assert (
        "the memory was read and written at 71 % of 3.35 TB/s; the arithmetic intensity was 12.0 "
        "FLOP/byte A pipe is a part of the GPU for one kind of arithmetic. "
    ) in " ".join(text.split())
