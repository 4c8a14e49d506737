"""Causes in traces that are known by hand, and traces that look alike. Times are in µs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from profile_traces import ON_GPU, call, copy, event, kernel, mark, operator, path_of, step, write
from teho.model.finding import Certainty
from teho.model.trace import Cause
from teho.profile.causes import rows
from teho.profile.compiling import compiled_of
from teho.profile.load import Loaded
from teho.profile.summary import read_trace, read_traces
from teho.profile.tracks import Operators
from teho.profile.xplane import write_xspace

Events = list[dict[str, Any]]
STEP = 1000
"""Length of a step."""
SGEMM = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_tn_align1>(Params)"
TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align1>(Params)"
ALIGNED = (
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_tn_align{}>(P)"
)
DOUBLE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<double>>(i)"
EXPONENTIAL = "vectorized_elementwise_kernel<4, exp_kernel_cuda(Tensor&)::{{lambda({})#1}}>"
LAYOUT = "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false>(P)"
INDEXING = "void at::native::indexing_backward_kernel<float, 4>(long const*, long const*)"
HOPPER = [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9}]
VOLTA = [{"id": 0, "name": "Tesla V100-SXM2-32GB", "computeMajor": 7}]


def of_kernels(*names: tuple[str, int], around: str = "aten::op", steps: int = 2) -> Events:
    """Return steps that are busy with kernels of these lengths, all launched by one operator.

    The rest of a step is another kernel.
    """
    numbers = count(1)
    found: Events = []
    for number in range(steps):
        begin = number * STEP
        found.append(step(number, begin, begin + STEP))
        found.append(operator(around, begin, begin + 40))
        now = begin
        for name, length in names:
            found += _launched(next(numbers), begin + 1, now, now + length, name)
            now += length
        found.append(operator("aten::mm", begin + 50, begin + 60))
        found += _launched(next(numbers), begin + 55, now, begin + STEP, "nvjet_sm90_tst_64x64")
    return found


def _launched(number: int, at: float, start: float, end: float, name: str) -> Iterator[Any]:
    yield call(number, at, at + 0.5)
    yield kernel(number, start, end, name)


def of_copies(name: str, length: int, *, is_hidden: bool = False) -> Events:
    """Return a step with a copy, during which the GPU computes or not."""
    return [
        step(0, 0, STEP), call(1, 0, 1), copy(1, 10, 10 + length, name), call(2, 1, 2),
        kernel(2, 5 if is_hidden else 10 + length, STEP),
    ]  # fmt: skip


def of_calls(name: str, *, steps: tuple[int, ...] = (0, 1, 2), length: int = 100) -> Events:
    """Return three steps; in some of them the program calls the driver twice."""
    found: Events = []
    for number in range(3):
        begin = number * STEP
        found += [step(number, begin, begin + STEP), *_launched(number + 1, begin, begin + 5,
                  begin + 500, "gemm")]  # fmt: skip
        if number in steps:
            found += [call(0, begin + 510 + 200 * one, begin + 510 + 200 * one + length, name)
                      for one in range(2)]  # fmt: skip
    return found


def of_syncs(*around: str, name: str = "cudaStreamSynchronize") -> Events:
    """Return a step in which the GPU is idle after a call that waits for it."""
    found = [
        step(0, 0, STEP), *_launched(1, 0, 5, 500, "gemm"), call(0, 20, 505, name),
        *_launched(2, 700, 710, STEP, "gemm"),
    ]  # fmt: skip
    return found + [operator(one, 10 + place, 510 - place) for place, one in enumerate(around)]


def of_optimizer(kernels: int, kind: str = "AdamW") -> Events:
    """Return a step in which the GPU waits for the optimizer, which launches small kernels."""
    found = [step(0, 0, STEP), *_launched(1, 0, 5, 500, "gemm")]
    found.append(mark(f"Optimizer.step#{kind}.step", 500, 980))
    for number in range(kernels):
        at = 510 + number * 400 / kernels
        found += _launched(number + 2, at, at + 5, at + 7, "vectorized_elementwise_kernel")
    return found


def of_search(kernels: int, around: str = "aten::cudnn_convolution", steps: int = 3) -> Events:
    """Return three steps; in some of them one operator launches different convolutions."""
    found: Events = []
    numbers = count(1)
    for number in range(3):
        begin = number * STEP
        found += [step(number, begin, begin + STEP), operator(around, begin, begin + 400)]
        for place in range(kernels if number < steps else 1):
            found += _launched(next(numbers), begin + 10 * place, begin + 20 + 10 * place,
                               begin + 29 + 10 * place, f"sm80_xmma_fprop_tile{place}")  # fmt: skip
        found += _launched(next(numbers), begin + 500, begin + 510, begin + STEP, "bn_fw")
    return found


def of_factorisations(number: int, length: int, name: str = "aten::linalg_qr") -> Events:
    """Return a step with several calls of one operator, with kernels of one length."""
    found = [step(0, 0, STEP)]
    for place in range(number):
        begin = place * (900 // number)
        found.append(operator(name, begin, begin + 900 // number - 1))
        found.append(operator("aten::empty", begin + 1, begin + 2))
        found += _launched(place + 1, begin + 2, begin + 3, begin + 3 + length, "geqr2_smem")
    return found


def of_one_call(name: str, kernels: int, step_us: int) -> Events:
    """Return a step with one call of an operator that launches kernels of 5 µs."""
    found = [step(0, 0, step_us), operator(name, 0, 7 * kernels + 100)]
    for number in range(kernels):
        at = 10 + 7 * number
        found += _launched(number + 1, at, at + 1, at + 6, "orgqr")
    return [*found, *_launched(kernels + 1, step_us - 200, step_us - 190, step_us, "gemm")]


def of_pauses(length: int, *, has_operator: bool = False, step_us: int = 4000) -> Events:
    """Return three steps in which the program does something else between two kernels."""
    found: Events = []
    for number in range(3):
        begin = number * step_us
        end = begin + step_us
        found += [
            step(number, begin, end),
            operator("aten::mm", begin, begin + 20),
            *_launched(2 * number + 1, begin + 5, begin + 10, end - length, "gemm"),
            operator("aten::mm", end - 15, end - 1),
            *_launched(2 * number + 2, end - 14, end - 10, end, "gemm"),
        ]
        if has_operator:
            found.append(operator("aten::sort", end - length, end - 20))
    return found


def of_loop(kernels: int, *, lines: int = 1) -> Events:
    """Return a step in which lines of the program launch small kernels, with stacks."""
    found = [step(0, 0, STEP), *_launched(1, 0, 5, 200, "gemm")]
    for number in range(kernels):
        at = 200 + number * 800 / kernels
        found += _launched(number + 2, at, at + 2, at + 3, "elementwise_kernel")
        line = 40 + number % lines
        found.append(event("python_function", f"/home/a/train.py({line}): f", at, at + 3))
    return found


def of_compiling(name: str, length: int = 600) -> Events:
    """Return two steps; in each of them a mark has this name."""
    return [
        part
        for begin in (0, STEP)
        for part in (step(begin // STEP, begin, begin + STEP), mark(name, begin + 50,
                     begin + 50 + length), *_launched(begin + 1, begin + 800, begin + 810,
                     begin + STEP, "gemm"))
    ]  # fmt: skip


FOUND: dict[str, tuple[str, Events, float, dict[str, Any]]] = {
    "indexing, with its sort": (
        "indexing_gradient",
        of_kernels(("DeviceRadixSortOnesweep", 200), (INDEXING, 300), around="aten::_index_put_"),
        0.5, {},
    ),
    "small rows": ("indexing_gradient", of_kernels(
        ("void at::native::indexing_backward_kernel_small_stride<float>(P)", 80)), 0.08, {}),
    "layout": ("layout_conversion", of_kernels((LAYOUT, 60)), 0.06, {}),
    "layout, back": ("layout_conversion", of_kernels(
        ("void cudnn::ops::nhwcToNchwKernel<__half, __half>(P)", 200)), 0.2, {}),
    "prime length": ("fft_length", of_kernels(("multi_bluestein_fft<1323u, 4u>", 300)), 0.3, {}),
    "32 bits": ("fp32_matmul", of_kernels((SGEMM, 300), around="aten::addmm"), 0.3,
                {"deviceProperties": HOPPER}),
    "32 bits, cuBLAS": ("fp32_matmul", of_kernels(("ampere_sgemm_128x64_nn", 150)), 0.15,
                        {"deviceProperties": HOPPER}),
    "odd sizes": ("matrix_alignment", of_kernels((ALIGNED.format(1), 300)), 0.3, {}),
    "odd sizes, cuBLAS": ("matrix_alignment", of_kernels(
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_stage5_tensor16x8x16_aligna2_alignc2_k", 300)),
        0.3, {}),
    "sizes divisible by 2": ("matrix_alignment", of_kernels((ALIGNED.format(2), 70)), 0.07, {}),
    "double": ("fp64", of_kernels((DOUBLE, 300)), 0.3, {}),
    "double, one argument": ("fp64", of_kernels(
        (EXPONENTIAL.format("double"), 300)), 0.3, {}),
    "complex": ("fp64", of_kernels(
        ("void vector_fft<1024u, EPT<16u>, 8u, unsigned int, double>(K)", 300)), 0.3, {}),
    "dgemm": ("fp64", of_kernels(("cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", 400)), 0.4,
              {}),
    "pageable": ("pageable_copy", of_copies("Memcpy HtoD (Pageable -> Device)", 200), 0.2, {}),
    "results": ("copy_to_host", of_copies("Memcpy DtoH (Device -> Pageable)", 200), 0.2, {}),
    "empty_cache": ("device_allocation", of_calls("cudaFree"), 0.2, {}),
    "segments": ("device_allocation", of_calls("cuMemMap"), 0.2, {}),
    "older names": ("device_allocation", of_calls("cudaMalloc_v3020"), 0.2, {}),
    "AMD": ("device_allocation", of_calls("hipFree"), 0.2, {}),
    "pin_memory": ("pinned_allocation", of_calls("cudaHostAlloc"), 0.2, {}),
    "benchmark": ("algorithm_search", of_search(12), 0.4, {}),
    "benchmark, which empties the cache": (
        "algorithm_search",
        [*of_search(12),
         *(call(0, at * STEP + 450, at * STEP + 550, "cudaFree") for at in range(3))],
        0.4, {},
    ),
    "benchmark of gradients": (
        "algorithm_search", of_search(12, "aten::convolution_backward"), 0.4, {}),
    "small matrices": ("small_factorisations", of_factorisations(30, 10), 0.87, {}),
    "small systems": (
        "small_factorisations", of_factorisations(30, 10, "aten::_linalg_solve_ex"), 0.87, {}),
    "a batch, one by one": (
        "factorisation_kernels", of_one_call("aten::linalg_qr", 1200, step_us=9000), 0.94, {}),
    "mask": ("sync_mask", of_syncs("aten::index", "aten::nonzero"), 0.21, {}),
    "check": ("sync_linalg", of_syncs(
        "aten::_linalg_check_errors", "aten::is_nonzero", "aten::item"), 0.21, {}),
    "item": ("sync_item", of_syncs("aten::item", "aten::_local_scalar_dense"), 0.21, {}),
    "AMD, item": ("sync_item", of_syncs("aten::_local_scalar_dense",
                                        name="hipStreamSynchronize"), 0.21, {}),
    "cpu": ("sync_copy", of_syncs("aten::to", "aten::_to_copy", "aten::copy_"), 0.21, {}),
    "synchronize": ("sync_call", of_syncs(name="cudaDeviceSynchronize"), 0.21, {}),
    "loop over parameters": ("optimizer_launches", of_optimizer(100), 0.28, {}),
    "other work": ("other_code", of_pauses(2000), 0.49, {}),
    "loop": ("one_line_launches", of_loop(100), 0.7, {}),
    "recompiled": ("compiling", of_compiling("compile_inner (dynamo_timed)"), 0.6, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_causes(name: str, tmp_path: Path) -> None:
    kind, events, share, values = FOUND[name]
    trace = read_trace(write(tmp_path, events, **values))
    assert [cause.kind for cause in trace.causes] == [kind]
    (cause,) = trace.causes
    assert cause.share == pytest.approx(share, abs=0.011)
    assert cause.time_s == pytest.approx(cause.share * trace.step_s)
    assert "{" not in cause.sentence + cause.advice.replace("${", "")


def test_every_cause_is_tested() -> None:
    of_xla = {"small_kernels"}
    assert {row.kind for row in rows()} == {kind for kind, *_ in FOUND.values()} | of_xla


@pytest.mark.parametrize(("length", "kinds"), [(4, ["small_kernels"]), (30, [])])
def test_small_kernels_of_xla(tmp_path: Path, length: int, kinds: list[str]) -> None:
    """For PyTorch, it is advice on launching."""
    path = write(tmp_path, of_one_call("aten::op", 400, step_us=3100))
    assert read_trace(path).causes == ()
    events = [step(0, 0, 20_000)]
    for number in range(400):
        events += _launched(
            number + 1, 45 * number, 45 * number + 1, 45 * number + 1 + length, "add"
        )
    write(tmp_path, events)
    write_xspace(path, tmp_path / "a.xplane.pb", "g1")
    causes = read_trace(tmp_path / "a.xplane.pb").causes
    assert [one.kind for one in causes] == kinds
    assert all("ran 399 small kernels" in one.sentence for one in causes)


CLEAN: dict[str, tuple[Events, dict[str, Any]]] = {
    "embedding": (of_kernels(("embedding_backward_feature_kernel<float>", 400)), {}),
    "gather": (of_kernels(("void at::native::index_elementwise_kernel<128, 4>(P)", 400)), {}),
    "a sort of its own": (of_kernels(("DeviceRadixSortOnesweep", 400), around="aten::sort"), {}),
    "few conversions": (of_kernels((LAYOUT, 40)), {}),
    "fast FFT": (of_kernels(("void regular_fft<1024u, EPT<4u>>(P)", 400)), {}),
    "TF32": (of_kernels((TF32, 400), around="aten::mm"), {"deviceProperties": HOPPER}),
    "32 bits on a V100": (of_kernels((SGEMM, 400)), {"deviceProperties": VOLTA}),
    "32 bits on an unknown GPU": (of_kernels((SGEMM, 400)), {}),
    "convolution": (of_kernels(("wgrad_alg0_engine<float>", 400)), {"deviceProperties": HOPPER}),
    "32 bits, seldom": (of_kernels((SGEMM, 90)), {"deviceProperties": HOPPER}),
    "aligned, cuBLAS": (of_kernels(
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_stage5_tensor16x8x16_aligna8_alignc8_k", 300)),
        {}),
    "32 bits, aligned to 1": (of_kernels(
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tensor16x8x8_aligna1_alignc1_k", 300)), {}),
    "aligned": (of_kernels((ALIGNED.format(8), 400)), {}),
    "TF32, odd sizes": (of_kernels((TF32, 400)), {}),
    "a scalar of 64 bits": (of_kernels(
        ("at::native::vectorized_elementwise_kernel<4, MulFunctor<float>, double>", 400)), {}),
    "single": (of_kernels((EXPONENTIAL.format("float"), 300)), {}),
    "double, seldom": (of_kernels((DOUBLE, 150)), {}),
    "pinned": (of_copies("Memcpy HtoD (Pinned -> Device)", 300), {}),
    "pageable, hidden": (
        of_copies("Memcpy HtoD (Pageable -> Device)", 300, is_hidden=True), {}),
    "within the GPU": (of_copies("Memcpy DtoD (Device -> Device)", 300), {}),
    "the first step allocates": (of_calls("cudaMalloc", steps=(0,)), {}),
    "short calls": (of_calls("cudaMalloc", length=10), {}),
    "CUDA's own pool": (of_calls("cudaMallocAsync"), {}),
    "plans of FFTs": (
        [*of_calls("cudaMalloc"), operator("aten::_fft_r2c", 0, 3 * STEP)], {}),
    "launches": (of_calls("cudaLaunchKernel"), {}),
    "Winograd": (of_search(5), {}),
    "the first step searches": (of_search(12, steps=1), {}),
    "a fused operator": (of_search(12, around="fused_block"), {}),
    "large matrices": (of_factorisations(9, 90), {}),
    "few matrices": (of_factorisations(6, 10), {}),
    "one matrix": (of_one_call("aten::linalg_qr", 300, step_us=2500), {}),
    "norms": (of_factorisations(30, 10, "aten::linalg_vector_norm"), {}),
    "fused optimizer": (of_optimizer(4), {}),
    "another optimizer": (of_optimizer(100, "Muon"), {}),
    "a short pause": (of_pauses(900), {}),
    "a pause in an operator": (of_pauses(2000, has_operator=True), {}),
    "a few kernels of one line": (of_loop(30), {}),
    "kernels of many lines": (of_loop(100, lines=4), {}),
    "a look-up of compiled code": (of_compiling("TorchDynamo Cache Lookup"), {}),
    "compiling, shortly": (of_compiling("compile_inner (dynamo_timed)", 50), {}),
    "a busy GPU": (of_kernels(("nvjet_sm90_tst_128x256_64x4", 800)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_traces_that_look_alike_have_no_cause(name: str, tmp_path: Path) -> None:
    events, values = CLEAN[name]
    assert read_trace(write(tmp_path, events, **values)).causes == ()


def test_shorter_kernels_do_not_help_a_gpu_that_is_idle(tmp_path: Path) -> None:
    events = [step(0, 0, STEP), *_launched(1, 0, 5, 400, LAYOUT)]
    assert read_trace(write(tmp_path, events)).causes == ()
    events += _launched(2, 401, 410, 700, "gemm")
    (cause,) = read_trace(write(tmp_path, events)).causes
    assert (cause.kind, cause.certainty) == ("layout_conversion", Certainty.LIKELY)


@pytest.mark.parametrize("name", ON_GPU)
def test_real_traces(name: str) -> None:
    """With stacks, PyTorch's profiler slows down the CPU so much that the GPU waits for it."""
    expected = ["one_line_launches"] if name == "lm-stacks" else []
    causes = read_trace(path_of(name)).causes
    assert [one.kind for one in causes] == expected
    assert [one.line for one in causes] == ["make_traces.py:44 forward"] * len(causes)


def frame(name: str, start: float, end: float) -> dict[str, Any]:
    return event("python_function", name, start, end)


def test_the_line_is_before_the_advice(tmp_path: Path) -> None:
    def cause_at(events: Events, line: str) -> Cause:
        whole = [*events, frame(f"/home/a/train.py({line}): train", 0, 3 * 4000)]
        return read_trace(write(tmp_path, whole)).causes[0]

    for events in (
        of_kernels((LAYOUT, 60)), of_calls("cudaFree"), of_search(12), of_factorisations(30, 10),
        of_pauses(2000), of_syncs("aten::item"),
    ):  # fmt: skip
        cause = cause_at(events, "12")
        assert cause.line == "/home/a/train.py:12 train"
        assert cause.advice.startswith("At `/home/a/train.py:12 train`: ")
        assert cause.advice.partition("`: ")[2][0].islower()


def test_the_largest_cause_is_first_and_general_advice_is_left_out(tmp_path: Path) -> None:
    events = of_syncs("aten::item")
    profiled = read_traces([write(tmp_path, events)])
    assert "`total += loss.detach()`" in profiled.advice[0]
    assert not any("every 100 steps." in one for one in profiled.advice[1:])
    events = [*of_kernels((LAYOUT, 60), (INDEXING, 300))]
    kinds = [one.kind for one in read_trace(write(tmp_path, events)).causes]
    assert kinds == ["indexing_gradient", "layout_conversion"]


def test_the_advice_on_optimizers_names_the_class(tmp_path: Path) -> None:
    profiled = read_traces([write(tmp_path, of_optimizer(100, "SGD"))])
    assert "`torch.optim.SGD(..., fused=True)`" in profiled.advice[0]
    assert "launched 100 kernels in each step" in profiled.advice[0]


def test_a_recorded_trace_without_lines_says_how_to_get_them(tmp_path: Path) -> None:
    path = write(tmp_path, of_kernels((LAYOUT, 60)))
    assert "--with stack" in read_traces([path], by_teho=True).advice[-1]
    assert "--with stack" not in " ".join(read_traces([path]).advice)
    path = write(tmp_path, of_kernels())
    assert read_traces([path], by_teho=True).advice == ()
    advice = read_traces([path_of("conv")], by_teho=True).advice
    assert "Launch fewer" in advice[0]
    assert "--with stack" in advice[1]


def test_what_xla_compiles_on_a_gpu() -> None:
    """Names from a trace of JAX 0.10 on an H200."""
    loaded = Loaded()
    events = {
        "PjRtCApiClient::CompileAndLoad(jit_train_step)": (0, 500),
        "HLO Transforms:jit_train_step": (10, 400),
        "config-assigner (jit_train_step)": (20, 300),
        "CompileToBackendResult": (450, 600),  # in a thread of its own
        "PjitFunction(jit_train_step)": (0, 900),
        "gemm_fusion_dot_general.17:XLA GPU module": (700, 800),
        "Thunks::Initialize": (800, 810),
    }
    track = loaded.operators.setdefault(("/host:CPU", "python3"), Operators())
    for name, (start, end) in events.items():
        track.add(start, end, loaded.numbers[name])
    compiled = compiled_of(loaded)
    assert compiled.spans == [(0, 600)]
    assert compiled.functions == {"train_step": 500}


def test_a_trace_of_compiling_says_little_about_steps(tmp_path: Path) -> None:
    events = [
        one for one in of_compiling("compile_inner (dynamo_timed)") if one["name"][:8] != "Profiler"
    ]
    profiled = read_traces([write(tmp_path, events)], by_teho=True)
    assert profiled.verdict.startswith("For 6")
    assert "functions were compiled" in profiled.verdict
    assert len(profiled.advice) == 1
    assert "`--window 2s --after 60s`" in profiled.advice[0]


def test_compiling_in_most_steps_is_no_reason_to_record_again(tmp_path: Path) -> None:
    profiled = read_traces(
        [write(tmp_path, of_compiling("compile_inner (dynamo_timed)"))], by_teho=True
    )
    assert "functions were compiled (by XLA, or by `torch.compile`)" in profiled.verdict
    assert "give all batches the same size" in profiled.advice[0]
    assert not any("--after" in one for one in profiled.advice)
