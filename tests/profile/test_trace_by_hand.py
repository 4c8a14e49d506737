"""Small traces whose figures are known by hand. Times are in µs, one step is 0 to 200 µs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import asdict

from profile_traces import ENGINE, call, copy, event, kernel, mark, operator, step, write
from teho.model.trace import Category, Idle, Parts, Trace
from teho.profile.categories import category_of, uses_tensor_cores
from teho.profile.summary import read_trace


def traced(folder: Path, *events, **values) -> Trace:
    return read_trace(write(folder, events, **values))


def parts_of(trace: Trace, device: int = 0, number: int = 0) -> Parts:
    return trace.devices[device].steps[number].parts


def us(noun: Parts | Idle) -> dict[str, float]:
    """Return the figures that are not zero, in µs."""
    figures = {name: value for name, value in asdict(noun).items() if isinstance(value, float)}
    return {name[:-2]: round(value * 1e6, 3) for name, value in figures.items() if value}


def test_waiting_for_data_then_for_the_launch(tmp_path: Path) -> None:
    trace = traced(
        tmp_path,
        step(4, 0, 200),
        mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5, 95),
        call(1, 100, 105),
        kernel(1, 110, 150),
    )
    parts = parts_of(trace)
    assert us(parts) == {"elapsed": 200, "compute": 40, "busy": 40}
    # 0 to 5, 95 to 110 and 150 to 200 are the launch's.
    assert us(parts.idle) == {"data": 90, "launch": 70}
    assert trace.data_s == pytest.approx(90e-6)
    assert trace.devices[0].steps[0].number == 4


def test_queued_kernels_do_not_wait_for_the_cpu(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 3), kernel(1, 8, 100), call(2, 4, 7),
        kernel(2, 102, 200),
    )  # fmt: skip
    assert us(parts_of(trace).idle) == {"launch": 8, "queued": 2}
    assert (trace.devices[0].launch_bound, trace.devices[0].launches) == (1, 2)


@pytest.mark.parametrize(
    ("launched", "is_bound"),
    [(42, True), (41, False)],  # the first kernel shows that a launch takes 8 µs
)
def test_a_launch_takes_time_to_reach_the_gpu(
    tmp_path: Path, launched: int, is_bound: bool
) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 3), kernel(1, 8, 49), call(2, launched, 45),
        kernel(2, 53, 60),
    )  # fmt: skip
    assert trace.devices[0].launch_bound == 1 + is_bound
    assert trace.kernels[0].launch_bound == 1 + is_bound
    assert ("queued" in us(parts_of(trace).idle)) is not is_bound


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "hipDeviceSynchronize"])
def test_after_a_synchronisation_nothing_is_queued(tmp_path: Path, name: str) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 5), kernel(1, 10, 50), call(3, 20, 51, name),
        call(2, 70, 73), kernel(2, 80, 200),
    )  # fmt: skip
    assert us(parts_of(trace).idle) == {"launch": 10, "sync": 30}


def test_a_synchronisation_of_an_idle_gpu_is_no_reason(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 5), kernel(1, 10, 50),
        call(3, 55, 56, "cudaStreamSynchronize"), call(2, 70, 73), kernel(2, 80, 200),
    )  # fmt: skip
    assert us(parts_of(trace).idle) == {"launch": 40}


def test_a_synchronisation_of_another_thread_is_no_reason(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 5), kernel(1, 10, 50),
        call(3, 20, 51, "cudaStreamSynchronize", tid=99), call(2, 70, 73), kernel(2, 80, 200),
    )  # fmt: skip
    assert us(parts_of(trace).idle) == {"launch": 40}


def test_a_collective_on_the_cpu(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 5), kernel(1, 10, 50),
        mark("gloo:all_reduce", 40, 120, tid=77), call(2, 130, 133), kernel(2, 140, 200),
    )  # fmt: skip
    assert us(parts_of(trace).idle) == {"launch": 10 + 20, "collective": 70}


def test_the_mark_of_nccl_on_the_cpu_is_no_collective_of_the_cpu(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), mark("nccl:all_reduce", 0, 100), call(1, 100, 101),
        kernel(1, 105, 200),
    )  # fmt: skip
    assert us(parts_of(trace).idle) == {"launch": 105}


def test_a_kernel_without_a_launch(tmp_path: Path) -> None:
    trace = traced(tmp_path, step(0, 0, 200), kernel(9, 60, 200))
    assert us(parts_of(trace).idle) == {"unknown": 60}
    assert trace.devices[0].launches == 0


def test_overlap(tmp_path: Path) -> None:
    nccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 1), call(2, 1, 2), call(3, 2, 3), call(4, 3, 4),
        kernel(1, 10, 60, nccl, stream=20), kernel(2, 30, 80), kernel(3, 70, 75, stream=8),
        copy(4, 50, 100),
    )  # fmt: skip
    parts = parts_of(trace)
    assert us(parts) == {
        "elapsed": 200, "compute": 50, "collective": 50, "copy": 50, "hidden_collective": 30,
        "hidden_copy": 30, "busy": 90,
    }  # fmt: skip
    assert parts.exposed_collective_s == pytest.approx(20e-6)
    assert parts.exposed_copy_s == pytest.approx(20e-6)
    assert parts.idle_s == pytest.approx(110e-6)


def test_a_copy_during_a_collective_is_hidden(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), call(1, 0, 1), call(2, 1, 2), kernel(1, 10, 60, "ncclKernel"),
        copy(2, 50, 100),
    )  # fmt: skip
    assert us(parts_of(trace)) == {
        "elapsed": 200, "collective": 50, "copy": 50, "hidden_copy": 10, "busy": 90,
    }  # fmt: skip


def test_work_is_cut_at_the_end_of_a_step(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 100), step(1, 110, 200), call(1, 0, 1), kernel(1, 50, 150),
        call(2, 120, 121), kernel(2, 180, 260),
    )  # fmt: skip
    assert us(parts_of(trace)) == {"elapsed": 100, "compute": 50, "busy": 50}
    assert us(parts_of(trace, number=1)) == {"elapsed": 90, "compute": 60, "busy": 60}
    mean = trace.devices[0].mean
    assert us(mean) == {"elapsed": 95, "compute": 55, "busy": 55}
    assert trace.devices[0].after_s == pytest.approx(60e-6)
    assert trace.devices[0].steps[1].start_s == pytest.approx(110e-6)


def test_without_steps_the_whole_trace_is_the_window(tmp_path: Path) -> None:
    trace = traced(tmp_path, operator("aten::mm", 20, 40), call(1, 30, 35), kernel(1, 50, 120))
    assert trace.step_count == 0
    assert trace.step_s == pytest.approx(100e-6)
    assert us(parts_of(trace)) == {"elapsed": 100, "compute": 70, "busy": 70}


def test_several_devices(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 100), call(1, 0, 1), call(2, 2, 3), kernel(1, 10, 50, device=3),
        kernel(2, 20, 100, device=1), deviceProperties=[{"id": 3, "name": "A"}],
    )  # fmt: skip
    assert [(one.device, one.name) for one in trace.devices] == [(1, ""), (3, "A")]
    assert [us(parts_of(trace, place))["busy"] for place in (0, 1)] == [80, 40]
    assert trace.kernels[0].count == 2


def test_a_graph_launches_many_kernels(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 100), call(1, 0, 5, "cudaGraphLaunch"), kernel(1, 10, 50),
        kernel(1, 52, 90), kernel(1, 90, 100),
    )  # fmt: skip
    assert trace.graph_launches == 1
    assert trace.devices[0].launch_bound == 1
    assert us(parts_of(trace).idle) == {"launch": 10, "queued": 2}


def test_operators_enclose_each_other(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 100), operator("aten::linear", 0, 40), operator("aten::addmm", 5, 30),
        operator("aten::relu", 40, 50), call(1, 10, 12), kernel(1, 20, 60), call(2, 35, 36),
        kernel(2, 60, 70), call(3, 45, 46), kernel(3, 70, 71), call(4, 60, 61), kernel(4, 71, 72),
    )  # fmt: skip
    launched = {share.name: round(share.total_s * 1e6) for share in trace.kernels[0].operators}
    assert launched == {"aten::addmm": 40, "aten::linear": 10, "aten::relu": 1}
    assert {one.name: (round(one.self_s * 1e6), round(one.total_s * 1e6), one.count)
            for one in trace.operators} == {
        "aten::addmm": (25, 25, 1), "aten::linear": (15, 40, 1), "aten::relu": (10, 10, 1),
    }  # fmt: skip


def test_of_two_operators_with_one_start_the_longer_is_outside(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, operator("aten::inner", 0, 20), operator("aten::outer", 0, 40), call(1, 10, 12),
        kernel(1, 20, 60), call(2, 30, 32), kernel(2, 60, 61),
    )  # fmt: skip
    (one,) = trace.kernels
    assert [share.name for share in one.operators] == ["aten::inner", "aten::outer"]
    assert [round(one.self_s * 1e6) for one in trace.operators] == [20, 20]


def test_steps_in_any_order(tmp_path: Path) -> None:
    trace = traced(tmp_path, step(6, 100, 180), step(5, 0, 100), call(1, 0, 1), kernel(1, 50, 120))
    steps = trace.devices[0].steps
    assert [one.number for one in steps] == [5, 6]
    assert [us(one.parts)["busy"] for one in steps] == [50, 20]
    assert trace.devices[0].after_s == 0


def test_the_optimizer_is_what_runs_inside_its_step(tmp_path: Path) -> None:
    name = "multi_tensor_apply_kernel"
    trace = traced(
        tmp_path, step(0, 0, 100), mark("Optimizer.step#AdamW.step", 20, 40), call(1, 10, 11),
        kernel(1, 15, 18, name), call(2, 30, 31), kernel(2, 35, 45, name), call(3, 40, 41),
        kernel(3, 50, 51, name),
    )  # fmt: skip
    assert [(one.category, one.count) for one in trace.kernels] == [
        ("optimizer", 1), ("elementwise", 2),
    ]  # fmt: skip


def frame(name: str, start, end, tid: int = 10):
    return event("python_function", name, start, end, tid=tid)


def test_the_line_of_a_forward_and_of_a_backward_kernel(tmp_path: Path) -> None:
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "id": 7}
    trace = traced(
        tmp_path,
        step(0, 0, 100),
        frame("train.py(80): main", 0, 100),
        frame("models/net.py(12): forward", 5, 20),
        frame("torch/nn/modules/linear.py(130): forward", 6, 19),
        frame("<built-in method linear>", 7, 18),
        operator("aten::linear", 8, 16),
        call(1, 10, 11),
        kernel(1, 12, 20, "forward_gemm"),
        {**arrow, "ph": "s", "ts": 8, "tid": 10},
        {**arrow, "ph": "f", "ts": 50, "tid": ENGINE, "bp": "e"},
        operator("autograd::engine::evaluate_function: AddmmBackward0", 49, 66, ENGINE),
        operator("AddmmBackward0", 50, 60, ENGINE),
        operator("aten::sum", 61, 65, ENGINE),
        call(4, 62, 63, tid=ENGINE),
        kernel(4, 70, 75, "sum_of_gradients"),
        operator("aten::mm", 52, 58, ENGINE),
        call(2, 53, 54, tid=ENGINE),
        kernel(2, 57, 70, "backward_gemm"),
        frame("threading.py(1012): run", 40, 90, tid=12),
        call(3, 80, 81),
        kernel(3, 90, 91, "last_gemm"),
    )
    lines = {one.name: [share.name for share in one.lines] for one in trace.kernels}
    assert lines == {
        "forward_gemm": ["models/net.py:12 forward"],
        "backward_gemm": ["models/net.py:12 forward"],
        "last_gemm": ["train.py:80 main"],
        "sum_of_gradients": ["models/net.py:12 forward"],
    }
    assert trace.has_stacks


def test_older_forms_of_the_same_trace(tmp_path: Path) -> None:
    """Whole µs since 1970, numbers as text, older categories, another unit for viewers."""
    base = 1669783687600000
    new = traced(tmp_path, step(0, 0, 200), call(1, 100, 105), kernel(1, 110, 150))
    old = [
        {**step(0, base, base + 200), "displayTimeUnit": "ns"},
        {**call(1, base + 100, base + 105), "cat": "Runtime",
         "args": {"correlation": "1"}},
        {**kernel(1, base + 110, base + 150), "cat": "Kernel", "pid": "0",
         "args": {"device": "0", "correlation": "1"}},
    ]  # fmt: skip
    assert traced(tmp_path, *old, displayTimeUnit="ns").devices == new.devices


@pytest.mark.parametrize(
    ("name", "category", "operator_name", "uses"),
    [
        ("void fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params)", "attention", "", None),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Flash)", "attention", "", True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn", "matmul", "", True),
        ("volta_sgemm_128x64_nn", "matmul", "", False),
        ("Cijk_Ailk_Bljk_SB_MT32x32x16_MI16x16x4x1_SN", "matmul", "", True),
        ("void at::native::tf32_elementwise_kernel<4>(int)", "elementwise", "", None),
        ("void fbgemm_gpu::bounds_check_indices_kernel<long>(int)", "other", "", None),
        ("my_kernel", "convolution", "aten::cudnn_convolution", None),
        ("my_kernel", "matmul", "aten::addmm", None),
        ("my_kernel", "other", "my::op", None),
        ("triton_per_fused_native_layer_norm_0", "normalisation", "", None),
        ("triton_red_fused_sum_0", "reduction", "", None),
        ("triton_tem_fused_mm_1", "matmul", "", None),
        ("mscclKernel_Sum_float_Simple_LL", "collective", "", None),
    ],
)
def test_categories(name: str, category: Category, operator_name: str, uses: bool | None) -> None:
    assert category_of(name, operator_name) == category
    assert uses_tensor_cores(name, category) is uses


def test_ranks_and_unreadable_events(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(0, 0, 200), {**kernel(1, 10, 20), "ts": "soon"}, {**kernel(1, 10, 20),
        "dur": -5}, {**kernel(2, 10, 20), "args": [1, 2]}, {"ph": "M", "name": None},
        distributedInfo={"rank": 3, "world_size": 16},
    )  # fmt: skip
    assert (trace.rank, trace.ranks) == (3, 16)
    assert trace.unread == 4
