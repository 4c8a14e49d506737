"""What `teho profile` is asked to record, and what it says if there is no trace."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import profile_traces
from probe.probed import Probed
from support import FRAMEWORKS, lacks_framework
from teho.cli.profile_options import plan_of, read_ranks, read_steps
from teho.errors import InputError
from teho.model.profiling import ProfilerPlan, ProfilerUse
from teho.model.run import Run
from teho.model.watched import Progress, WatchedProcess
from teho.profile.hand_over import copy_traces, tool_commands
from teho.profile.recorded import chosen_ranks, failed_words, obstacle_of, partly_words
from teho.profile.summary import read_traces
from teho.profile.xplane import write_xspace
from teho.store.protobuf import varint

PLAN = ProfilerPlan(id="aa", first=20, last=24, most_s=60, most_bytes=1 << 29)
OPTIONS = {"steps": None, "window": None, "after": None, "extras": None, "ranks": None,
           "max_time": "60s", "max_size": "512MiB", "is_running": False}  # fmt: skip


def test_steps() -> None:
    assert read_steps("20:25", may_be_count=False) == (20, 24)
    assert read_steps("2:3", may_be_count=False) == (2, 2)
    assert read_steps("5", may_be_count=True) == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1:5", "a first step of 2 or more"),
        ("0:5", "a first step of 2 or more"),
        ("20:20", "has no steps"),
        ("25:20", "has no steps"),
        ("2:20000", "more than 10,000 steps"),
        ("5", "is not a range of steps"),
        ("-1:5", "is not a range of steps"),
        ("a:b", "is not a range of steps"),
        ("", "is not a range of steps"),
        ("²:5", "is not a range of steps"),
    ],
)
def test_wrong_steps(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_steps(text, may_be_count=False)


def test_ranks() -> None:
    assert read_ranks("all") == "all"
    assert read_ranks("3,0,3") == (0, 3)
    with pytest.raises(InputError, match="`one`, `all`, or ranks"):
        read_ranks("first")


def test_plans() -> None:
    assert plan_of(**{**OPTIONS, "steps": "20:25"}).last == 24
    window = plan_of(**{**OPTIONS, "window": "90s", "extras": "stack, shapes"})
    assert (window.window_s, window.after_s, window.most_s) == (90, 10, 90)
    assert json.loads(msgspec.json.encode(window))["with"] == ["stack", "shapes"]
    assert plan_of(**{**OPTIONS, "is_running": True}).count == 5
    assert plan_of(**OPTIONS).window_s == 2
    assert plan_of(**{**OPTIONS, "after": "1s"}).after_s == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_running": True, "after": "1s"}, "--after works only with --window"),
        ({"steps": "2:3", "window": "1s"}, "cannot be used together"),
        ({"steps": "2:3", "after": "1s"}, "--after works only with --window"),
        ({"window": "1ms"}, "between 10ms and 10min"),
        ({"steps": "2:3", "extras": "flops"}, "some of: stack, shapes, memory"),
        ({"steps": "2:3", "extras": "stack,nsys"}, "`rocprof` or `range` without other words"),
        ({"steps": "2:3", "extras": "rocprof,nsys"}, "`nsys`, `rocprof` or `range` without"),
    ],
)
def test_wrong_plans(changes: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan_of(**{**OPTIONS, **changes})


def process(steps: int = 0, *uses: ProfilerUse, rank: int | None = None, pace: float = 1.0):
    last_s = max(steps - 1, 0) / pace
    return WatchedProcess(
        node="g1", pid=1, python="3.11", began_s=0.0, until_s=9.0, stacks=(),
        libraries={"torch": {} if rank is None else {"rank": rank}},
        progress=(Progress(steps=steps, first_s=0.0, last_s=last_s),) if steps else (),
        profiled=uses,
    )  # fmt: skip


def use(why: str, **values) -> ProfilerUse:
    return ProfilerUse(profile="aa", why=why, **values)


@pytest.mark.parametrize(
    ("found", "words", "next_step"),
    [
        ([], "no Python process of the program loaded Teho's probe", "docs/probe.md"),
        ([process()], "Teho counted no steps of the program", "--window 2s"),
        ([process(12)], "made only 12 steps, so step 20 was not reached", "--steps 7:12"),
        ([process(1)], "made only 1 step, so", "--window 2s"),
        ([process(30)], "no process with the chosen rank", "--ranks all"),
        ([process(19, use("accepted"))], "made only 19 steps", "--steps 14:19"),
        ([process(30, use("passed", detail="25"))], "step 20 was over", "later steps"),
        ([process(30, use("own"))], "own profiler was active", "teho profile FILE"),
        ([process(30, use("displaced", in_step=22))], "own profiler in step 22", "FILE"),
        ([process(30, use("tool", detail="Nsight Systems"))], "Nsight Systems already", "without"),
        ([process(30, use("size", detail="1073741824"))], "1.00 GiB, more than the limit of 512",
         "--max-size"),
        ([process(30, use("disk", detail="1048576"))], "only 1.00 MiB are free", "fewer steps"),
        ([process(30, use("written"))], "disk of /tmp may be full", "fewer steps"),
        ([process(30, use("framework"))], "has not imported a framework", "teho report"),
        ([process(19, use("ended"))], "ended before the first step", "earlier steps"),
        ([process(30, use("device"))], "did not use a GPU", "--with range"),
        ([process(30, use("roctx"))], "rocprofv3 does not run the program", "--with rocprof"),
        ([process(30, use("error", detail="OSError: x"))], "OSError: x", "teho report"),
        ([process(30, use("new"))], "the profiler failed: new", "teho report"),
    ],
)  # fmt: skip
def test_each_obstacle_is_a_sentence(found, words: str, next_step: str) -> None:
    obstacle = obstacle_of(PLAN, found)
    assert words in obstacle.found
    assert next_step in obstacle.next_step
    text = str(obstacle.error())
    assert text.count(". Next: ") == 1
    for one in found:
        for own in one.profiled:
            if own.why != "accepted":
                assert failed_words(own).startswith("Teho recorded no trace: ")


@pytest.mark.parametrize(
    ("library", "after_s", "words", "next_step"),
    [
        ("torch", 10, "ended before the time to record", "`--after 0s` begins to record"),
        ("jax", 10, "ended before the time to record", "`--after 0s` begins to record"),
        ("tensorflow", 10, "ended before the time to record", "`--after 0s` begins to record"),
        ("torch", 0, "ended before the time to record", "run for longer"),
        ("numpy", 10, "has not imported a framework", "teho report"),
    ],
)
def test_a_window_that_was_not_reached(
    library: str, after_s: float, words: str, next_step: str
) -> None:
    plan = msgspec.structs.replace(PLAN, first=None, last=None, window_s=2, after_s=after_s)
    found = msgspec.structs.replace(process(12), libraries={library: {}})
    other = msgspec.structs.replace(process(), libraries={})
    obstacle = obstacle_of(plan, [other, found])
    assert words in obstacle.found
    assert next_step in obstacle.next_step


def test_a_program_that_was_killed() -> None:
    """Its newest notes are missing, so Teho does not say how many steps it made."""
    obstacle = obstacle_of(PLAN, [process(12)], killed_by="SIGTERM")
    assert obstacle.found.startswith("the program was killed by SIGTERM before")


def test_a_range_that_fits_is_advised() -> None:
    advice = obstacle_of(PLAN, [process(3)]).next_step
    assert advice == "`--steps 2:4`"
    assert read_steps(advice[len("`--steps ") : -1], may_be_count=False) == (2, 3)


def test_parts_of_a_plan() -> None:
    part = use("ended", file="x", steps=(20, 22), in_step=23)
    assert partly_words(part) == (
        "The program ended in step 23, so the trace has only steps 20 to 22."
    )
    assert "has no complete step" in partly_words(use("time", file="x", in_step=20), PLAN)
    assert "limit of 1 min" in partly_words(use("time", file="x", in_step=20), PLAN)
    assert partly_words(use("", file="x", steps=(20, 24))) == ""


def test_the_slowest_and_the_median_rank() -> None:
    paces = {0: 2.0, 1: 1.9, 2: 1.0, 3: 2.1}
    processes = [process(50, rank=rank, pace=pace) for rank, pace in paces.items()]
    assert chosen_ranks(processes) == (2, 0)
    assert chosen_ranks([process(50, rank=rank, pace=2.0) for rank in range(4)]) == ()
    assert chosen_ranks(processes[:2]) == ()


def test_the_ranks_of_jax() -> None:
    def of(count: int) -> list[WatchedProcess]:
        facts = ({"process_count": count, "process_index": rank} for rank in range(3))
        return [
            msgspec.structs.replace(process(50, pace=pace), libraries={"torch": {}, "jax": one})
            for one, pace in zip(facts, (2.0, 1.0, 1.9), strict=True)
        ]

    assert chosen_ranks(of(3)) == (1, 2)
    assert chosen_ranks(of(1)) == ()


@given(value=st.integers(0, 2**63 - 1))
def test_varints(value: int) -> None:
    encoded = varint(value)
    assert sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(encoded)) == value
    assert [byte >> 7 for byte in encoded] == [1] * (len(encoded) - 1) + [0]


READ_XSPACE = """
import json, sys
from jax.profiler import ProfileData
data = ProfileData.from_file(sys.argv[1])
print(json.dumps([
    [plane.name, line.name, event.name, round(event.start_ns), round(event.duration_ns)]
    for plane in data.planes for line in plane.lines for event in line.events
]))
"""


@pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax"))
def test_the_file_for_xprof_has_each_event(tmp_path: Path) -> None:
    """JAX has OpenXLA's own reader of these files."""
    path = tmp_path / "a.xplane.pb"
    write_xspace(profile_traces.path_of("lm-graph"), path, "g1")
    done = subprocess.run(
        [FRAMEWORKS / "bin" / "python", "-c", READ_XSPACE, path],
        capture_output=True, text=True, check=False, env={"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = [
        ["/device:GPU:0", "Stream #all", one["name"], *_times(one)]
        for one in profile_traces.events_of("lm-graph", "kernel", "gpu_memcpy", "gpu_memset")
    ]
    assert sorted(row for row in found if row[0] != "/host:CPU") == sorted(expected)
    steps = [row[2] for row in found if row[2] == "ProfilerStep"]
    assert len(steps) == read_traces([profile_traces.path_of("lm-graph")]).traces[0].step_count
    assert sum(row[2].startswith("aten::") for row in found) == len(
        [one for one in profile_traces.events_of("lm-graph", "cpu_op")
         if one["name"].startswith("aten::")]
    )  # fmt: skip


def _times(event) -> list[int]:
    start, end = profile_traces.ends(event)
    return [start, end - start]


def test_copies(tmp_path: Path, teho: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    trace, other = (profile_traces.path_of(name) for name in ("conv", "lm-graph"))
    content = gzip.decompress(trace.read_bytes())
    (sentence,) = copy_traces([trace], tmp_path / "a.json")
    assert "ui.perfetto.dev" in sentence
    assert (tmp_path / "a.json").read_bytes() == content
    list(copy_traces([tmp_path / "a.json"], tmp_path / "b.json.gz"))
    assert gzip.decompress((tmp_path / "b.json.gz").read_bytes()) == content
    with pytest.raises(InputError, match="there are 2 traces"):
        list(copy_traces([trace, other], tmp_path / "a.json"))
    with pytest.raises(InputError, match="a place that can be written"):
        list(copy_traces([trace], tmp_path / "none" / "a.json"))
    done = teho("profile", trace, other, "--trace-to", tmp_path / "logs", env={"COLUMNS": "120"})
    assert "tensorboard --logdir" in done.stdout
    assert "ssh" not in done.stdout
    over_ssh = teho(
        "profile", trace, "--trace-to", tmp_path / "ssh",
        env={"COLUMNS": "200", "SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"},
    )  # fmt: skip
    assert re.search(
        r"`ssh -N -L 6006:localhost:6006 \w+@\S+`, and open `localhost:6006`", over_ssh.stdout
    )
    assert sorted(str(path.relative_to(tmp_path / "logs")) for path in tmp_path.rglob("logs/**/*.*")
                  ) == [
        "conv.pt.trace.json.gz", "lm-graph.pt.trace.json.gz",
        "plugins/profile/conv/conv.xplane.pb", "plugins/profile/graph/lm-graph.xplane.pb",
    ]  # fmt: skip


@pytest.fixture
def commands(tmp_path: Path) -> Callable[..., list[str]]:
    """Return the commands of other profilers for a process with a trace."""

    def of(
        gpu: str, *, framework: str = "torch", steps: tuple[int, int] | None = (20, 24),
        vendor: str = "", **facts: object,
    ) -> list[str]:  # fmt: skip
        path = profile_traces.write(
            tmp_path, [profile_traces.step(20, 0, 9), profile_traces.kernel(1, 2, 5)],
            deviceProperties=[{"id": 0, "name": gpu}],
        )  # fmt: skip
        device = {"id": "GPU-1", "index": 0, "name": gpu, "vendor": vendor}
        run = msgspec.convert(
            {"format": 1, "id": "a", "command": ["python", "my train.py"], "host": "g1",
             "started_at": "2026-11-26T10:00:00Z", "period_s": 1.0, "directory": "/",
             "environment": {}, "versions": {},
             "nodes": [{"name": "g1", "started_at": "2026-11-26T10:00:01Z", "started_s": 500.0,
                        "period_s": 1.0, "devices": [device] if vendor else []}]}, Run,
        )  # fmt: skip
        process = WatchedProcess(
            node="g1", pid=1, python="3.11", began_s=501.0, until_s=530.0, stacks=(),
            libraries={framework: facts},
        )  # fmt: skip
        use = ProfilerUse(
            profile="abc123", framework=framework, steps=steps, file="x", began_s=511.5,
            ended_s=513.4,
        )  # fmt: skip
        return list(tool_commands(run, read_traces([path]), [(process, use)]))

    return of


def test_commands_of_other_profilers(commands: Callable[..., list[str]]) -> None:
    systems, compute = commands("NVIDIA H200")
    assert "--capture-range=cudaProfilerApi" in systems
    assert "teho profile --steps 20:25 --with range -- python 'my train.py'`" in systems
    assert "teho profile --steps 20:21 --with range -- python 'my train.py'`" in compute
    (amd,) = commands("AMD Instinct MI250X")
    assert amd.startswith("rocprofv3: `rocprofv3 --runtime-trace --selected-regions ")
    assert " -- teho profile --steps 20:25 --with range -- python 'my train.py'`" in amd
    assert commands("") == []


def test_the_vendor_without_its_name(commands: Callable[..., list[str]]) -> None:
    by_build = commands("A100-SXM4-80GB", cuda="12.4")
    assert by_build == commands("A100-SXM4-80GB", vendor="nvidia") == commands("NVIDIA A100")
    (amd,) = commands("gfx90a", hip="6.2")
    assert amd.startswith("rocprofv3: ")
    assert commands("gfx90a", vendor="amd") == [amd]


@pytest.mark.parametrize(
    ("framework", "steps"),
    [("jax", None), ("jax", (20, 24)), ("tensorflow", (20, 24)), ("torch", None)],
)
def test_commands_for_a_length_of_time(
    commands: Callable[..., list[str]], framework: str, steps: tuple[int, int] | None
) -> None:
    """Of JAX and TensorFlow too, whose steps Teho cannot mark for another tool."""
    # The recording began 12.5 s after the start of the run, and took 1.9 s.
    (nvidia,) = commands("NVIDIA H200", framework=framework, steps=steps)
    assert nvidia == (
        "Nsight Systems: `nsys profile --trace=cuda,nvtx,osrt --delay=12 --duration=3 --kill=none "
        "-o steps python 'my train.py'`"
    )
    (amd,) = commands("AMD Instinct MI250X", framework=framework, steps=steps)
    assert amd == (
        "rocprofv3: `rocprofv3 --runtime-trace --collection-period 12:3:1 --output-format pftrace "
        "--output-directory steps -- python 'my train.py'`"
    )


def test_what_does_not_fit_is_one_line(teho, tmp_path: Path, home: Path) -> None:
    trace = profile_traces.path_of("conv")
    for words, said in (
        (["--steps", "20:25", trace], "--steps has no effect on the trace"),
        (["nothing"], "'nothing' is not a file, and no run is recorded"),
        (["--steps", "20:25", "--"], "Missing COMMAND after '--'."),
        (["a", "--steps", "20:25", "--", "true"], "'a' before `--`"),
        (["--steps", "20:25", "--with", "nsys", "--", "true"], "there is no nsys on the PATH"),
        (["--steps", "20:25", "--with=rocprof", "--", "true"], "there is no rocprofv3 on the"),
    ):
        done = teho("profile", *words, env={"PATH": "/usr/bin:/bin"})
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert said in line
    assert not home.exists()


def test_a_program_without_a_framework(teho, tmp_path: Path) -> None:
    """It keeps its output and its exit code; one sentence says what is missing."""
    path = tmp_path / "a.py"
    path.write_text("import sys, teho\nfor _ in range(9): teho.step()\nprint('x'); sys.exit(3)")
    import sys

    done = teho("profile", "--steps", "4:6", "--", sys.executable, path)
    assert (done.returncode, done.stdout) == (3, "x\n")
    # Without `--steps`, a length of time is recorded.
    window = teho("profile", "--", sys.executable, path, env={"COLUMNS": "200"})
    assert (window.returncode, window.stdout) == (3, "x\n")
    assert "the program has not imported a framework" in window.stderr
    first, last = done.stderr.splitlines()
    assert "the program has not imported a framework" in first
    assert "teho report" in last
    done = teho("profile", "--steps", "20:25", "--", sys.executable, path)
    assert "made only 9 steps, so step 20 was not reached. Next: `--steps 4:9`" in done.stderr


RANGE = """
import json, os, sys, types
calls = []
def noted(name): return lambda *given: calls.append(" ".join([name, *map(str, given)]))
cudart = types.SimpleNamespace(cudaProfilerStart=noted("start"), cudaProfilerStop=noted("stop"))
nvtx = types.SimpleNamespace(range_push=noted("push"), range_pop=noted("pop"))
cuda = types.SimpleNamespace(is_initialized=lambda: True, synchronize=noted("wait"),
                             cudart=lambda: cudart, nvtx=nvtx)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
for number in range(int(os.environ["UNTOLD"])):
    sys.modules["_teho_probe"].NOTES.step()
for number in range(1, 9):
    sys.modules["_teho_probe"].NOTES.step(is_reported=True)
    if number in (2, 5): calls.append("step %d ended" % number)
print(calls)
"""


@pytest.mark.parametrize(
    ("untold", "before"),
    [(0, []), (2, []), (3, ["wait", "start", "push ProfilerStep#4", "pop", "wait", "stop"])],
)
def test_marks_for_a_tool_that_runs_the_program(
    untold: int, before: list[str], tmp_path: Path
) -> None:
    """A stand-in for PyTorch's interface of CUDA notes each call.

    If the program calls `teho.step()` late, its steps count from 1, and the marks begin again.
    """
    probed = Probed(tmp_path)
    plan = msgspec.structs.replace(PLAN, first=4, last=5, extras=("range",))
    probed.environment = {
        "TEHO_PROFILE": msgspec.json.encode(plan).decode(),
        "NSYS_PROFILING_SESSION_ID": "1",
        "UNTOLD": str(untold),
    }
    done = probed.run(RANGE)
    assert done.stderr == b""
    assert eval(done.stdout) == [
        *before, "step 2 ended", "wait", "start", "push ProfilerStep#4", "pop",
        "push ProfilerStep#5", "pop", "wait", "stop", "step 5 ended",
    ]  # fmt: skip
    (process,) = probed.watched()
    (use,) = process.profiled
    assert (use.steps, use.why, use.file) == ((4, 5), "", "")


ROCTX = """
#include <stdint.h>
#include <stdio.h>
int roctxProfilerResume(uint64_t thread) { return !printf("resume %d\\n", (int)thread); }
int roctxProfilerPause(uint64_t thread) { return !printf("pause %d\\n", (int)thread); }
"""
MARKED = """
import ctypes, sys, types
sys.stdout.reconfigure(line_buffering=True)
def noted(name): return lambda *given: print(name, *given)
nvtx = types.SimpleNamespace(range_push=noted("push"), range_pop=noted("pop"))
cuda = types.SimpleNamespace(is_initialized=lambda: True, synchronize=noted("wait"), nvtx=nvtx)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, version=types.SimpleNamespace(hip="6.4"))
flush = ctypes.CDLL(None).fflush
for number in range(1, 9):
    sys.modules["_teho_probe"].NOTES.step(is_reported=True)
    flush(None)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("is_loaded", [True, False])
def test_marks_for_rocprofv3(is_loaded: bool, tmp_path: Path) -> None:
    """A stand-in for the library that rocprofv3 loads into the program prints each call.

    Without the library, rocprofv3 does not listen, and the program goes on.
    """
    (tmp_path / "roctx.c").write_text(ROCTX)
    library = tmp_path / "libroctx.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "roctx.c"], check=True)
    probed = Probed(tmp_path)
    plan = msgspec.structs.replace(PLAN, first=4, last=5, extras=("range",))
    probed.environment = {
        "TEHO_PROFILE": msgspec.json.encode(plan).decode(),
        "ROCP_TOOL_LIBRARIES": "/opt/rocm/lib/tool.so",
        **({"LD_PRELOAD": str(library)} if is_loaded else {}),
    }
    done = probed.run(MARKED)
    assert done.stderr == b""
    (process,) = probed.watched()
    (use,) = process.profiled
    assert use.why == ("" if is_loaded else "roctx")
    lines = done.stdout.decode().splitlines()
    assert sorted(lines) == (sorted([
        "wait", "resume 0", "push ProfilerStep#4", "pop", "push ProfilerStep#5", "pop", "wait",
        "pause 0",
    ]) if is_loaded else [])  # fmt: skip


@pytest.mark.parametrize("word", ["nsys", "rocprof"])
def test_this_command_under_another_profiler(word: str, teho, tmp_path: Path) -> None:
    """The tool gets its own options, and this command with `--with range`."""
    program = {"nsys": "nsys", "rocprof": "rocprofv3"}[word]
    tool = tmp_path / program
    tool.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    tool.chmod(0o755)
    done = teho(
        "profile", "--steps", "20:25", "--with", word, "--", "python", "a b.py",
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )  # fmt: skip
    words = done.stdout.splitlines()
    if word == "nsys":
        name = words[words.index("-o") + 1]
        written = f"{name}.nsys-rep"
        assert words[:4] == [
            "profile", "--trace=cuda,nvtx,osrt", "--capture-range=cudaProfilerApi",
            "--capture-range-end=stop",
        ]  # fmt: skip
        rest = words[6:]
    else:
        name = words[words.index("--output-directory") + 1]
        written = f"the folder {name}"
        assert words[:3] == ["--runtime-trace", "--selected-regions", "--output-format"]
        rest = words[words.index("--") + 1 :]
    assert done.stderr == f"teho: {program} writes {written}\n"
    place = rest.index("profile")
    assert rest[place:] == [
        "profile", "--steps", "20:25", "--with", "range", "--", "python", "a b.py"
    ]  # fmt: skip


def test_another_tool_keeps_the_gpu(tmp_path: Path) -> None:
    probed = Probed(tmp_path)
    probed.environment = {
        "TEHO_PROFILE": msgspec.json.encode(PLAN).decode(),
        "CUDA_INJECTION64_PATH": "/opt/tool.so",
    }
    code = """
        import sys, types
        sys.modules["torch"] = sys.modules["torch.autograd.profiler"] = types.SimpleNamespace()
        for _ in range(30): sys.modules["_teho_probe"].NOTES.step(is_reported=True)
        """
    assert probed.run(code).stderr == b""
    (process,) = probed.watched()
    (use,) = process.profiled
    assert (use.why, use.detail) == ("tool", "the tool in CUDA_INJECTION64_PATH")


def test_a_framework_that_is_still_being_imported_is_not_started(tmp_path: Path) -> None:
    probed = Probed(tmp_path)
    code = """
        import sys, types
        torch = types.ModuleType("torch")
        torch.__spec__ = types.SimpleNamespace(_initializing=True)
        sys.modules["torch"] = torch
        sys.modules["torch.autograd.profiler"] = types.ModuleType("profiler")
        from _teho_probe.surroundings import framework_of
        notes = sys.modules["_teho_probe"].NOTES
        print(framework_of(notes))
        torch.__spec__._initializing = False
        print(framework_of(notes).__name__)
        """
    assert probed.run(code).stdout == b"None\nTorchTracer\n"
