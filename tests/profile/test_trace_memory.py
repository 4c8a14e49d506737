"""The memory in traces: the peak, and which phase and which operator allocated what was there."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profile_traces import (
    ENGINE,
    MAIN,
    call,
    copy,
    event,
    kernel,
    mark,
    memory,
    operator,
    path_of,
    step,
    write,
)
from support import WITHOUT_COMPILER
from teho.model.trace import Profiled, Trace
from teho.model.trace_memory import MemoryUse
from teho.profile.summary import read_trace, read_traces
from teho.show.build.profile import profile_document
from teho.show.build.profile_diff import trace_diff_document
from teho.show.html.page import render_html
from teho.show.html.step import step_section
from teho.show.json.noun import render_noun, schema_of
from teho.show.text.document import Detail, render_text

BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"
GIB = 1024**3
BATCH = (  # 100 bytes of a batch are copied to the GPU
    operator("aten::to", 2, 9), operator("aten::_to_copy", 3, 8),
    operator("aten::empty_strided", 4, 6), memory(5, 100, 0x10, 1100),
    operator("aten::copy_", 6.5, 8), call(1, 7, 7.5, "cudaMemcpyAsync"), copy(1, 12, 15),
)  # fmt: skip
FORWARD = (  # 200 bytes of a result, 50 bytes that are freed again, 300 bytes
    operator("aten::linear", 18, 30), operator("aten::addmm", 19, 29),
    operator("aten::empty", 19.5, 20.5), memory(20, 200, 0x20, 1300), memory(24, 50, 0x30, 1350),
    call(2, 25, 25.5), kernel(2, 28, 40), memory(26, -50, 0x30, 1300),
    operator("aten::relu", 38, 45), operator("aten::clamp_min", 39, 44),
    memory(40, 300, 0x30, 1600),
)  # fmt: skip
THERE = (  # 400 bytes, 300 freed, 500 bytes: the peak, at 76
    operator(BACKWARD, 60, 80, ENGINE), operator("AddmmBackward0", 61, 79, ENGINE),
    operator("aten::mm", 62, 78, ENGINE), memory(70, 400, 0x40, 2000, tid=ENGINE),
    memory(75, -300, 0x30, 1700, tid=ENGINE), call(3, 75.5, 75.8, tid=ENGINE), kernel(3, 80, 90),
    memory(76, 500, 0x50, 2200, tid=ENGINE, reserved=4096),
    memory(77, -200, 0x20, 2000, tid=ENGINE),
)  # fmt: skip
UPDATE = (  # the state of the optimizer, and a block from before the profiler began
    mark("Optimizer.step#AdamW.step", 120, 140), operator("aten::zeros_like", 128, 132),
    memory(130, 100, 0x60, 2100), memory(150, -30, 0x70, 2070),
)  # fmt: skip
WHOLE = (step(4, 0, 200), *BATCH, *FORWARD, *THERE, *UPDATE)


def traced(folder: Path, *events, **values) -> Trace:
    return read_trace(write(folder, events, **values))


def used(folder: Path, *events, **values) -> MemoryUse:
    (found,) = traced(folder, *events, **values).memory
    return found


def parts(use: MemoryUse) -> dict[str, int]:
    return {part.phase: part.bytes for part in use.parts}


def text_of(found: Profiled, detail: Detail = "default") -> str:
    return render_text(profile_document(found), width=80, color=False, detail=detail)


def test_the_peak_of_a_step_by_phase(tmp_path: Path) -> None:
    gpu = {"id": 0, "name": "A", "totalGlobalMem": 9000}
    use = used(tmp_path, *WHOLE, deviceProperties=[gpu])
    assert (use.device, use.peak_bytes, use.step, use.during) == (0, 2200, 4, "backward")
    assert use.after_s == pytest.approx(76e-6)
    assert parts(use) == {"before": 1000, "input": 100, "forward": 200, "backward": 900}
    assert [part.count for part in use.parts] == [None, 1, 1, 2]
    assert (use.reserved_bytes, use.device_bytes, use.unseen_bytes) == (4096, 9000, 0)
    assert [(one.name, one.phase, one.bytes) for one in use.operators] == [
        ("aten::mm", "backward", 900), ("aten::addmm", "forward", 200),
        ("aten::to", "input", 100),
    ]  # fmt: skip
    (whole,) = use.steps
    assert (whole.number, whole.peak_bytes, whole.end_bytes) == (4, 2200, 2070)


def test_state_of_the_optimizer_and_gradients_of_the_last_step(tmp_path: Path) -> None:
    """What a step leaves is there at the peak of the next step, with its own phase."""
    second = [
        {**one, "ts": one["ts"] + 200, **({"id": 1} if "id" in one else {})}
        for one in (*FORWARD, *THERE)
        if one["cat"] == "cpu_op"
    ]
    allocated = memory(221, 5000, 0x80, 7070)
    use = used(tmp_path, *WHOLE, step(5, 200, 400), *second, allocated)
    assert (use.peak_bytes, use.step, use.during) == (7070, 5, "forward")
    assert parts(use) == {
        "before": 970, "input": 100, "forward": 5000, "backward": 900, "optimizer": 100,
    }  # fmt: skip
    assert [one.peak_bytes for one in use.steps] == [2200, 7070]
    assert use.operators[-1].name in {"aten::to", "aten::zeros_like"}


def test_of_equal_moments_the_last_one_is_the_peak(tmp_path: Path) -> None:
    """Most is known about the last one: what was there at first is of an unknown phase."""
    use = used(
        tmp_path, step(1, 0, 100), memory(10, 500, 1, 1500), memory(20, -500, 2, 1000),
        step(2, 100, 200), memory(110, 500, 2, 1500), memory(120, -500, 1, 1000),
    )  # fmt: skip
    assert (use.step, parts(use)) == (2, {"before": 500, "forward": 1000})


def test_a_peak_before_the_first_step(tmp_path: Path) -> None:
    """Gradients of an earlier step are freed at its start."""
    use = used(tmp_path, step(1, 0, 100), memory(10, -500, 1, 1000), memory(20, 100, 2, 1100))
    assert (use.peak_bytes, use.after_s, use.during) == (1500, 0, None)
    assert parts(use) == {"before": 1500}
    text = text_of(read_traces([write(tmp_path, [
        step(1, 0, 100), memory(10, -500, 1, 1000), memory(20, 100, 2, 1100)
    ])]))  # fmt: skip
    assert "The peak was at the start of step 1." in text


def test_what_happens_outside_of_the_steps_is_no_peak(tmp_path: Path) -> None:
    use = used(
        tmp_path, memory(1, 9000, 1, 9100), memory(2, -9000, 1, 100), step(1, 10, 100),
        memory(20, 50, 2, 150), memory(200, 9000, 1, 9150),
    )  # fmt: skip
    assert (use.peak_bytes, parts(use)) == (150, {"before": 100, "forward": 50})


def test_on_the_cpu_only_what_the_profiler_has_seen_is_known(tmp_path: Path) -> None:
    """PyTorch's total there may have memory of an earlier use of the profiler."""
    use = used(
        tmp_path, step(1, 0, 100), memory(10, 500, 1, 99_500, kind=0),
        memory(20, -700, 2, 98_800, kind=0), memory(30, 100, 3, 98_900, kind=0),
        memory(40, -500, 1, 98_400, kind=0),
    )  # fmt: skip
    assert (use.device, use.peak_bytes, parts(use)) == (None, 600, {"forward": 600})
    assert (use.reserved_bytes, use.device_bytes) == (None, None)
    assert use.steps[0].end_bytes == 100


def test_each_device_has_its_own_peak(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, step(1, 0, 100), memory(10, 500, 1, 1500), memory(11, 70, 1, kind=0),
        memory(12, 900, 1, 900, device=1), memory(13, -500, 1, 1000),
        memory(14, 5, 7, 905, device=1),
        call(1, 0, 1), kernel(1, 2, 99), kernel(1, 3, 9, device=1),
    )  # fmt: skip
    assert [(one.device, one.peak_bytes) for one in trace.memory] == [
        (None, 70), (0, 1500), (1, 905)
    ]  # fmt: skip
    text = text_of(read_traces([tmp_path / "trace.json"]))
    assert "Memory of GPU 0 at the peak 1.46 KiB" in " ".join(text.split())
    title = "Memory of the CPU at its peak"
    assert title not in text.splitlines()
    assert title in text_of(read_traces([tmp_path / "trace.json"]), "why").splitlines()


def test_threads_are_put_into_the_order_of_time(tmp_path: Path) -> None:
    """The file has the events of one thread after those of the other."""
    use = used(
        tmp_path, step(1, 0, 100), memory(10, 100, 1, 100), memory(30, 100, 3, 300),
        memory(20, 100, 2, 200, tid=ENGINE), memory(40, -100, 1, 200, tid=ENGINE),
    )  # fmt: skip
    assert (use.peak_bytes, parts(use)) == (300, {"forward": 300})


def test_memory_that_another_thread_frees_unseen(tmp_path: Path) -> None:
    use = used(
        tmp_path, step(1, 0, 100), memory(10, 400, 1, 400), memory(20, 300, 2, 350),
        memory(30, 200, 3, 550),
    )  # fmt: skip
    assert (use.peak_bytes, use.unseen_bytes) == (550, 350)
    (note,) = (one for one in read_traces([tmp_path / "trace.json"]).notes if "in threads" in one)
    assert "350 B too high" in note
    # A new block at the same address shows that the old one is gone.
    use = used(tmp_path, step(1, 0, 100), memory(10, 400, 1, 400), memory(20, 500, 1, 500))
    assert (use.unseen_bytes, parts(use)) == (0, {"forward": 500})


def test_a_cast_on_the_gpu_is_no_copy_of_data(tmp_path: Path) -> None:
    """`aten::to` also converts weights, without any copy from the memory of the node."""
    use = used(
        tmp_path, step(1, 0, 100), operator("aten::to", 10, 20), operator("aten::_to_copy", 11, 19),
        memory(12, 64, 1, 64), call(1, 15, 16), kernel(1, 30, 40), operator("aten::to", 50, 60),
        memory(52, 32, 2, 96), call(2, 55, 56, "hipMemcpyAsync"),
        copy(2, 70, 71, "Memcpy HtoD (Host -> Device)"),
        mark("enumerate(DataLoader)#_Single.__next__", 80, 90), memory(85, 8, 3, 104),
    )  # fmt: skip
    assert parts(use) == {"forward": 64, "input": 40}


def closure(begin: int) -> list[dict]:
    """Return a call of `Optimizer.step` with a closure, as Lightning makes it."""
    return [
        mark("Optimizer.step#SGD.step", begin, begin + 90),
        operator("aten::linear", begin + 10, begin + 20), memory(begin + 15, 200, 1, 200),
        call(1, begin + 16, begin + 17), kernel(1, begin + 20, begin + 30, "gemm"),
        operator(BACKWARD, begin + 30, begin + 50), memory(begin + 40, 300, 2, 500),
        operator("aten::add_", begin + 60, begin + 70), memory(begin + 65, 400, 3, 900),
        call(2, begin + 66, begin + 67), kernel(2, begin + 70, begin + 80, "add"),
    ]  # fmt: skip


def test_a_closure_is_no_part_of_the_optimizer(tmp_path: Path) -> None:
    """Its passes are inside PyTorch's mark `Optimizer.step`; only what follows is the update."""
    trace = traced(tmp_path, step(1, 0, 100), *closure(0))
    (use,) = trace.memory
    assert parts(use) == {"forward": 200, "backward": 300, "optimizer": 400}
    assert {one.name: one.category for one in trace.kernels} == {
        "gemm": "matmul", "add": "optimizer",
    }  # fmt: skip
    assert {band.label for lane in trace.picture.lanes for band in lane.bands} >= {
        "optimizer", "backward pass", "other operators",
    }  # fmt: skip


def test_lines_of_the_program(tmp_path: Path) -> None:
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "id": 7}
    trace = traced(
        tmp_path, *WHOLE,
        event("python_function", "train.py(80): main", 0, 199),
        event("python_function", "net.py(12): forward", 17, 35),
        event("python_function", "torch/nn/modules/linear.py(9): forward", 17.5, 33),
        {**arrow, "ph": "s", "ts": 19, "tid": MAIN},
        {**arrow, "ph": "f", "ts": 61, "tid": ENGINE, "bp": "e"},
    )  # fmt: skip
    (use,) = trace.memory
    assert [(one.name, one.phase, one.bytes) for one in use.lines] == [
        ("net.py:12 forward", "backward", 900), ("net.py:12 forward", "forward", 200),
        ("train.py:80 main", "input", 100),
    ]  # fmt: skip
    lines = text_of(read_traces([tmp_path / "trace.json"])).splitlines()
    assert "Memory of GPU 0 at its peak by line" in lines
    assert "Memory of GPU 0 at its peak by operator" not in lines


@pytest.mark.parametrize(
    "bad",
    [
        {**memory(10, 5, 1, 5), "args": {"Bytes": 5, "Device Type": 1}},  # PyTorch 1.11
        {**memory(10, 5, 1, 5), "name": "[OutOfMemory]"},
        {**memory(10, 5, 1, 5), "ph": "X", "dur": 1},
        {**memory(10, 5, 1, 5), "args": None},
    ],
)
def test_events_without_an_allocation(tmp_path: Path, bad) -> None:
    trace = traced(tmp_path, step(1, 0, 100), operator("aten::mm", 0, 9), bad)
    assert (trace.memory, trace.unread) == ((), 0)
    document = profile_document(read_traces([tmp_path / "trace.json"]))
    assert not [one for one in document.tables if one.key.startswith("memory")]
    assert not [one for one in document.facts if one.key.startswith("memory")]
    assert "peak" not in text_of(read_traces([tmp_path / "trace.json"]), "why")


@pytest.mark.parametrize("changes", [{"ts": "soon"}, {"args": {"Addr": 1}}, {"args": {"Addr": []}}])
def test_unreadable_allocations_are_counted(tmp_path: Path, changes) -> None:
    bad = {**memory(10, 5, 1, 5), **changes}
    trace = traced(tmp_path, step(1, 0, 100), memory(9, 3, 2, 3), bad, memory(11, 2, 3, 5))
    assert trace.unread == 1
    assert trace.memory[0].peak_bytes == 5


def growing(*ends: int):
    """Return a trace whose steps end with these amounts; a step needs 1000 more."""
    total = 0
    for number, end in enumerate(ends):
        begin = 100 * number
        yield step(number, begin, begin + 100)
        yield memory(begin + 10, end - total, 10 + number, end)
        yield memory(begin + 20, 1000, 1, end + 1000)
        yield memory(begin + 30, -1000, 1, end)
        total = end


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((500, 520, 540, 560), "the allocated memory of GPU 0 grows by 20 B in each step"),
        ((500, 500, 500, 500), ""),
        ((500, 520, 540), ""),  # too few steps
        ((500, 560, 560, 560), ""),  # only once, as with the state of an optimizer
        ((500, 501, 502, 503), ""),  # too little
        ((560, 540, 520, 500), ""),
    ],
)
def test_a_steady_growth(tmp_path: Path, ends, said: str) -> None:
    advice = " ".join(read_traces([write(tmp_path, growing(*ends))]).advice)
    assert ("in each step" in advice) is bool(said)
    assert said in advice


@pytest.mark.parametrize(("size", "is_full"), [(1111, False), (1112, True)])
def test_a_full_gpu_gets_no_advice_to_use_a_larger_batch(
    tmp_path: Path, size: int, is_full: bool
) -> None:
    """1000 of 1111 bytes are 90.009 %, and 1000 of 1112 are 89.9 %."""
    path = write(
        tmp_path, [step(1, 0, 100), call(1, 80, 81), kernel(1, 85, 99), memory(9, 10, 1, 1000)],
        deviceProperties=[{"id": 0, "name": "A", "totalGlobalMem": 1111 if is_full else 1112}],
    )  # fmt: skip
    (advice,) = read_traces([path]).advice
    assert ("use a larger batch" in advice) is not is_full
    assert ("a larger batch does not fit" in advice) is is_full
    assert "torch.compile" in advice


def test_what_is_shown(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE, deviceProperties=[{"id": 0, "totalGlobalMem": 80 * GIB}])
    found = read_traces([path])
    text = text_of(found)
    assert "Memory at the peak 2.15 KiB (of 80.0 GiB)" in " ".join(text.split())
    assert "The peak was in step 4, in the backward pass." in text
    reserved = "At the peak, PyTorch had reserved 4.00 KiB of the GPU's memory."
    assert reserved in " ".join(text.split())
    for words in ("before the recorded steps", "in the forward pass", "by loading or copying data"):
        assert words in text
    assert "Memory of GPU 0 in each step" in text_of(found, "why")
    assert "The peak is the moment" in text_of(found, "why")
    answer = json.loads(render_noun(found))
    jsonschema.validate(answer, schema_of(Profiled))
    (use,) = answer["traces"][0]["memory"]
    assert sum(part["bytes"] for part in use["parts"]) == use["peak_bytes"] == 2200
    assert "Memory of GPU 0 at its peak" in render_html(profile_document(found), [])


def test_the_memory_over_a_step(tmp_path: Path) -> None:
    """A part of the step is 200 µs / 480; each has the moment of its highest amount."""
    picture = traced(tmp_path, *WHOLE).picture
    assert picture.memory.peak_bytes == 2200
    bands = {band.phase: band for band in picture.memory.bands}
    assert {phase: band.peak_bytes for phase, band in bands.items()} == {
        "before": 1000, "input": 100, "forward": 500, "backward": 900, "optimizer": 100,
    }  # fmt: skip

    def amounts(at: float) -> dict[str, int]:
        place = int(at / 200 * 480)
        found = {phase: round(2200 * band.shares[place]) for phase, band in bands.items()}
        return {phase: amount for phase, amount in found.items() if amount > 1}

    assert amounts(2) == {"before": 1001}
    assert amounts(30) == {"before": 1001, "input": 99, "forward": 200}
    assert amounts(24.1) == {"before": 1001, "input": 99, "forward": 251}
    assert amounts(76.3) == {"before": 1001, "input": 99, "forward": 200, "backward": 900}
    assert amounts(199) == {"before": 970, "input": 99, "backward": 900, "optimizer": 99}
    page = step_section(picture)
    assert "GPU 0, memory up to 2.15 KiB, allocated" in page
    assert page.count('role="img"') == len(picture.lanes) + 1
    assert "in the backward pass 900 B" in page
    legends = re.findall(r'class="(c\d)"><i></i>(in the )?(backward pass|optimizer)', page)
    assert len(legends) == 4
    assert len({color for color, *_ in legends}) == 2  # in both strips the same
    assert step_section(traced(tmp_path, step(1, 0, 9), call(1, 0, 1), kernel(1, 2, 5)).picture)


def test_two_traces(tmp_path: Path) -> None:
    both = []
    for name, events in (("a", WHOLE), ("b", (*WHOLE, memory(78, 3800, 0x90, 5800)))):
        (tmp_path / name).mkdir()
        both.append(read_traces([write(tmp_path / name, events)]))
    document = trace_diff_document(*both, ["a.json", "b.json"])
    (table,) = (one for one in document.tables if one.key == "memory")
    rows = {row["part"]: (row["first"], row["second"], row["difference"]) for row in table.rows}
    assert rows["all"] == (2200, 5800, 3600)
    assert rows["in the forward pass"] == (200, 3800, 3600)
    assert rows["in the backward pass"] == (900, 900, 0)
    assert "in the optimizer step" not in rows
    without = read_traces([write(tmp_path, [step(1, 0, 9), call(1, 0, 1), kernel(1, 2, 5)])])
    assert not [
        one for one in trace_diff_document(both[0], without, ["a", "c"]).tables
        if one.key == "memory"
    ]  # fmt: skip


def test_several_ranks(tmp_path: Path) -> None:
    paths = []
    for rank in (0, 1):
        folder = tmp_path / str(rank)
        folder.mkdir()
        paths.append(
            write(folder, (*WHOLE, memory(77.5, 100 * (rank + 2), 0x90, 2400 + 100 * rank)),
                  distributedInfo={"rank": rank, "world_size": 2})
        )  # fmt: skip
    document = profile_document(read_traces(paths))
    (table,) = (one for one in document.tables if one.key == "memory_ranks")
    assert [row["peak"] for row in table.rows] == [2400, 2500]
    assert [row["before"] for row in table.rows] == [1200, 1200]
    assert [one.key for one in table.columns][-1] == "backward"


def test_traces_without_memory_have_none() -> None:
    assert read_trace(path_of("conv")).memory == ()


SIZES = st.integers(1, 50)
EVENTS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 6), st.one_of(SIZES, SIZES.map(lambda n: -n)),
              st.sampled_from([MAIN, ENGINE]), st.sampled_from([0, 1])),
    min_size=1, max_size=30,
)  # fmt: skip


@given(found=EVENTS, before=st.integers(0, 100))
def test_any_allocations(tmp_path_factory: pytest.TempPathFactory, found, before: int) -> None:
    """The peak is that of a walk over the events; the parts add up to it."""
    events = [step(1, 50, 150), step(2, 150, 250), operator(BACKWARD, 100, 120, ENGINE)]
    total, alive, most = before, {}, None
    for at, address, size, tid, kind in sorted(found, key=lambda one: one[0]):
        if kind:
            total = max(total + size, 0)
        events.append(memory(at, size, address, total if kind else None, kind=kind, tid=tid))
        if not kind:
            alive.pop(address, None)
            if size > 0:
                alive[address] = size
            if at <= 250:
                now = sum(alive.values())
                most = now if at < 50 or most is None else max(most, now)
    trace = read_trace(write(tmp_path_factory.getbasetemp(), events))
    for use in trace.memory:
        known = sum(part.bytes for part in use.parts)
        assert known == use.peak_bytes + use.unseen_bytes
        assert use.peak_bytes == max(step.peak_bytes for step in use.steps)
        assert sum(one.bytes for one in use.operators) == known - parts(use).get("before", 0)
        if use.device is None:
            assert use.peak_bytes == (most or 0)
    for detail in ("default", "why"):
        assert text_of(read_traces([tmp_path_factory.getbasetemp() / "trace.json"]), detail)


PROGRAM = """\
import torch
from torch.profiler import profile, schedule
torch.set_num_threads(1)
model = torch.nn.Linear(1024, 1024, bias=False)
optimizer = torch.optim.Adam(model.parameters())
def step():
    inputs = torch.rand(256, 1024)
    optimizer.zero_grad()
    outputs = model(inputs).relu()
    outputs.square().sum().backward()
    optimizer.step()
with profile(profile_memory=True, schedule=schedule(wait=0, warmup=0, active=4, repeat=1),
             on_trace_ready=lambda one: one.export_chrome_trace(sys.argv[1])) as profiler:
    for _ in range(4):
        step()
        profiler.step()
"""
MIB = 1024**2


def test_a_real_training_on_the_cpu(
    teho: Callable[..., subprocess.CompletedProcess[str]], torch_python: Path, tmp_path: Path
) -> None:
    """The sizes are known: a batch and each result have 1 MiB, a gradient has 4 MiB."""
    path = tmp_path / "a.json"
    program = tmp_path / "train.py"
    program.write_text(WITHOUT_COMPILER + PROGRAM)
    done = subprocess.run(
        [torch_python, program, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (use,) = read_trace(path).memory
    written = [
        one for one in json.loads(path.read_text())["traceEvents"] if one["name"] == "[memory]"
    ]
    now = most = 0
    for one in sorted(written, key=lambda one: one["ts"]):
        now += one["args"]["Bytes"]
        most = max(most, now)
    assert use.peak_bytes == most
    assert sum(part.bytes for part in use.parts) == most
    found = {phase: amount / MIB for phase, amount in parts(use).items()}
    # At the peak, the optimizer has its two states and two temporary results, each of 4 MiB.
    assert use.during == "optimizer"
    assert found["backward"] == pytest.approx(4, abs=0.01)
    assert found["optimizer"] == pytest.approx(16, abs=0.01)
    assert found["forward"] == pytest.approx(2, abs=0.01)  # the batch, and the result of `relu`
    names = {one.name for one in use.operators if one.bytes >= MIB}
    assert "aten::rand" in names
    shown = teho("profile", path, env={"COLUMNS": "80"}).stdout
    assert "Memory of the CPU at its peak" in shown
    assert "On the CPU, PyTorch reports only the memory" in " ".join(shown.split())
