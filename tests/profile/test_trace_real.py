"""Real traces: the figures are those of a few lines of plain Python over the decoded JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import pytest
from msgspec.structs import asdict

from profile_traces import FOLDER, ON_GPU, REAL, document_of, ends, events_of, ns, path_of
from teho.model.trace import Trace
from teho.profile.summary import read_trace, read_traces

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
KINDS = {"kernel": "compute", "gpu_memcpy": "copy", "gpu_memset": "copy"}
AMD = "hta/amd-minitoy"


@cache
def trace_of(name: str) -> Trace:
    return read_trace(path_of(name))


def steps_of(name: str) -> list[tuple[int, int]]:
    return sorted(
        ends(event)
        for event in events_of(name, "user_annotation")
        if event["name"].startswith("ProfilerStep#")
    )


def seconds(time_ns: int) -> float:
    return time_ns / 1e9


def test_the_folder_has_all_kinds_of_traces() -> None:
    assert set(REAL) == {
        "conv", "conv-cpu", "conv-pageable-item", "ddp-gloo-0of2", "ddp-gloo-1of2", "lm-graph",
        "lm-stacks",
    }  # fmt: skip
    sizes = [path.stat().st_size for path in FOLDER.iterdir()]
    assert max(sizes) < 60_000
    assert sum(sizes) < 310_000


@pytest.mark.parametrize("name", [*ON_GPU, AMD])
def test_the_parts_of_each_step(name: str) -> None:
    """Count what runs between each two moments at which something starts or ends."""
    changes = [
        (moment, change, KINDS[event["cat"]])
        for event in events_of(name, *GPU)
        for moment, change in zip(ends(event), (1, -1), strict=True)
    ]
    steps = steps_of(name)
    changes += [(moment, 0, "") for step in steps for moment in step]
    changes.sort()
    expected = {step: Counter() for step in steps}
    running = Counter()
    for (moment, change, kind), (later, *_) in pairwise(changes):
        running[kind] += change
        step = next((step for step in steps if step[0] <= moment < step[1]), None)
        if step:
            for one in ("compute", "copy"):
                expected[step][one] += (later - moment) * (running[one] > 0)
            expected[step]["both"] += (later - moment) * (
                min(running["compute"], running["copy"]) > 0
            )
    (device,) = trace_of(name).devices
    assert len(device.steps) == len(steps) == trace_of(name).step_count
    assert sum(of["compute"] for of in expected.values()) > 0
    for step, (start, end) in zip(device.steps, steps, strict=True):
        parts, of = step.parts, expected[start, end]
        assert parts.elapsed_s == pytest.approx(seconds(end - start), abs=1e-12)
        assert parts.compute_s == pytest.approx(seconds(of["compute"]), abs=1e-12)
        assert parts.copy_s == pytest.approx(seconds(of["copy"]), abs=1e-12)
        assert parts.hidden_copy_s == pytest.approx(seconds(of["both"]), abs=1e-12)
        busy = of["compute"] + of["copy"] - of["both"]
        assert parts.busy_s == pytest.approx(seconds(busy), abs=1e-12)
        assert sum(asdict(parts.idle).values()) == pytest.approx(parts.idle_s, abs=1e-12)


@pytest.mark.parametrize("name", [*ON_GPU, AMD])
def test_the_time_and_number_of_each_kernel(name: str) -> None:
    times, counts = Counter(), Counter()
    for event in events_of(name, *GPU):
        times[event["name"]] += ns(event["dur"])
        counts[event["name"]] += 1
    found_times, found_counts = Counter(), Counter()
    for kernel in trace_of(name).kernels:
        found_times[kernel.name] += round(kernel.total_s * 1e9)
        found_counts[kernel.name] += kernel.count
    assert found_times == times
    assert found_counts == counts
    totals = [kernel.total_s for kernel in trace_of(name).kernels]
    assert totals == sorted(totals, reverse=True)


@pytest.mark.parametrize("name", ["conv", "conv-pageable-item", "lm-graph"])
def test_the_operators_are_those_that_kineto_names(name: str) -> None:
    """Kineto gives a kernel and its operator the same `External id`: another way to the answer."""
    names = {event["args"]["External id"]: event["name"] for event in events_of(name, "cpu_op")}
    expected = defaultdict(Counter)
    for event in events_of(name, *GPU):
        operator = names.get(event["args"].get("External id"))
        if operator:
            expected[event["name"]][operator] += ns(event["dur"])
    found = defaultdict(Counter)
    for kernel in trace_of(name).kernels:
        for share in kernel.operators:
            found[kernel.name][share.name] += round(share.total_s * 1e9)
    assert len(expected) > 25
    assert found == expected


@pytest.mark.parametrize("name", [*ON_GPU, AMD])
def test_launch_bound_kernels(name: str) -> None:
    calls = {
        event["args"]["correlation"]: ns(event["ts"])
        for event in events_of(name, "cuda_runtime", "cuda_driver")
        if "correlation" in event.get("args", {})
    }
    work = sorted((*ends(event), event["args"]["correlation"]) for event in events_of(name, *GPU))
    known = [one for one in work if one[2] in calls]
    delay = min(start - calls[number] for start, _, number in known)
    assert 0 < delay < 11_000  # the clocks of CPU and GPU agree in these traces
    delay = min(delay, 10_000)
    bound, free = 0, 0
    for start, end, number in work:
        bound += number in calls and free < calls[number] + delay
        free = max(free, end)
        assert start < end
    (device,) = trace_of(name).devices
    assert (device.launch_bound, device.launches) == (bound, len(known))


@pytest.mark.parametrize("name", REAL)
def test_waiting_for_the_data_loader(name: str) -> None:
    waited = sum(
        ns(event["dur"])
        for event in events_of(name, "user_annotation")
        if event["name"].startswith("enumerate(DataLoader)")
    )
    trace = trace_of(name)
    assert waited > 0
    assert trace.data_s * trace.step_count == pytest.approx(seconds(waited), abs=1e-12)


def test_loading_in_the_main_process_is_the_largest_part() -> None:
    idle = trace_of("conv-pageable-item").devices[0].mean.idle
    assert idle.data_s == max(asdict(idle).values())
    # `.item()` at the end of each step; the other program has none.
    assert idle.sync_s > 0
    assert trace_of("conv").devices[0].mean.idle.sync_s == 0


def test_graphs_are_launched_twice_a_step() -> None:
    trace = trace_of("lm-graph")
    assert (trace.graph_launches, trace.step_count) == (6, 3)
    # 600 pieces of work were launched by 72 calls.
    calls = events_of("lm-graph", "cuda_runtime")
    launching = [
        call for call in calls if call["name"].startswith(("cudaGraph", "cudaLaunch", "cudaMem"))
    ]
    assert trace.devices[0].launches > 8 * len(launching)
    assert trace.devices[0].launch_bound <= len(launching)


def test_gloo_exchanges_on_the_cpu() -> None:
    profiled = read_traces([path_of("ddp-gloo-1of2"), path_of("ddp-gloo-0of2")])
    assert [(trace.rank, trace.ranks) for trace in profiled.traces] == [(0, 2), (1, 2)]
    for trace in profiled.traces:
        idle = trace.devices[0].mean.idle
        assert idle.collective_s > 0.1 * trace.step_s
    assert "init_process_group('nccl')" in " ".join(profiled.advice)
    assert not any("ranks" in note for note in profiled.notes)


def test_lines_of_the_program() -> None:
    lines = {one.name: [share.name for share in one.lines] for one in trace_of("lm-stacks").kernels}
    (embedding,) = (lines[name] for name in lines if "embedding_backward" in name)
    assert embedding == ["make_traces.py:44 forward"]  # the line of the forward pass
    copies = next(lines[name] for name in lines if name.startswith("Memcpy HtoD"))
    assert copies == ["make_traces.py:70 train"]
    assert not any(kernel.lines for kernel in trace_of("conv").kernels)


def test_calls_of_hip_and_matrix_cores() -> None:
    calls = {one["args"]["correlation"]: one["name"] for one in events_of(AMD, "cuda_runtime")}
    launched = [calls.get(one["args"]["correlation"], "") for one in events_of(AMD, *GPU)]
    assert set(launched) == {"hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyWithStream"}
    trace = trace_of(AMD)
    assert trace.devices[0].name == "AMD Radeon Graphics"
    assert trace.devices[0].launches == len(launched)
    matrices = [one for one in trace.kernels if one.name.startswith("Cijk_")]
    assert {(one.category, one.tensor_cores) for one in matrices} == {("matmul", True)}
    assert {one.operators[0].name for one in matrices} <= {"aten::addmm", "aten::mm"}


def test_operators_on_the_cpu() -> None:
    """The own times of operators add up to the time in which a thread is in any operator."""
    trace = trace_of("conv-cpu")
    assert trace.devices == trace.kernels == ()
    covered = 0
    for tid in {event["tid"] for event in events_of("conv-cpu", "cpu_op")}:
        spans = sorted(ends(e) for e in events_of("conv-cpu", "cpu_op") if e["tid"] == tid)
        last = 0
        for start, end in spans:
            covered += max(end - max(start, last), 0)
            last = max(last, end)
    own = sum(one.self_s for one in trace.operators)
    assert own == pytest.approx(seconds(covered), abs=1e-11)
    calls = Counter(event["name"] for event in events_of("conv-cpu", "cpu_op"))
    assert {one.name: one.count for one in trace.operators} == calls


@pytest.mark.parametrize("name", ["conv", "lm-stacks"])
def test_categories_of_the_kernels(name: str) -> None:
    found = {one.name: one.category for one in trace_of(name).kernels}
    for words, category in {
        "bn_bw_1C11": "normalisation",
        "layer_norm": "normalisation",
        "wgrad": "convolution",
        "fprop_implicit": "convolution",
        "_sdpa_sm90_flash": "attention",
        "nvjet": "matmul",
        "xmma_gemm": "matmul",
        "direct_copy": "copy",
        "Memcpy": "copy",
        "at::native::reduce_kernel": "reduction",
        "softmax": "reduction",
        "dropout": "elementwise",
        "multi_tensor_apply": "optimizer",
        "embedding": "other",
    }.items():
        named = {found[one] for one in found if words in one}
        assert named <= {category}, words
    assert found


def test_tensor_cores_by_name() -> None:
    found = {one.name: one.tensor_cores for one in trace_of("conv").kernels}
    used = {
        words: next(found[one] for one in found if words in one)
        for words in ("ffma_aligna4_alignc4_execute_kernel__5x_cublas", "sm90_xmma_dgrad", "bn_fw",
                      "tensor16x8x8", "simt_sgemm", "wgrad_alg0")
    }  # fmt: skip
    assert used == {
        "ffma_aligna4_alignc4_execute_kernel__5x_cublas": False, "sm90_xmma_dgrad": True,
        "bn_fw": None, "tensor16x8x8": True, "simt_sgemm": False, "wgrad_alg0": None,
    }  # fmt: skip


def test_traces_do_not_name_a_person_or_a_machine() -> None:
    for name in REAL:
        text = json.dumps(document_of(name), default=str)
        assert not any(word in text for word in ("/tmp/", "/home/", "/root", "hostname", 'user"'))
