"""`teho profile --steps`: the very steps, of unchanged programs with real PyTorch."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import teho
from probe.probed import Probed
from step_tasks import step_environment, wait
from support import SOAK, TEHO, lacks_framework, wait_for
from teho.model.profiling import ProfilerUse
from teho.observe.spool import spool_of
from teho.profile.load import Loaded, load
from teho.profile.recorded import chosen_ranks
from teho.profile.summary import read_traces
from teho.store.probe import watched_processes

LOOPS = Path(__file__).parents[2] / "benchmarks" / "profile_loops.py"
SOURCES = str(Path(teho.__file__).parents[1])
RUNS = pytest.mark.drawn(2, tests="runs")
"""Each of these tests starts PyTorch, its compiler and its profiler once or twice."""
Call = Callable[..., subprocess.CompletedProcess[str]]

TRAINING = """
import os, sys, time, torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps, then=lambda number: None):
    for number in range(1, steps + 1):
        with torch.profiler.record_function("loop step %d" % number):
            loss = model(torch.rand(4, 8)).sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        then(number)
    return loss.item()
"""


def only_run(home: Path) -> Path:
    (run,) = (home / "runs").iterdir()
    return run


def traces_of(home: Path) -> list[Path]:
    return sorted((only_run(home) / "traces").glob("*"))


def loop_steps(loaded: Loaded) -> list[int]:
    """Return the numbers of the steps that the loop itself has marked."""
    found = (re.fullmatch(r"loop step (\d+)", mark.name) for mark in loaded.marks)
    return sorted(int(match[1]) for match in found if match)


def marked_steps(loaded: Loaded) -> list[str]:
    return sorted(mark.name for mark in loaded.marks if mark.name.startswith("ProfilerStep"))


SEVERAL_LOOPS = f"""
import os, sys
sys.path.insert(0, {str(LOOPS.parent)!r})
import profile_loops
profile_loops.torch.set_num_threads(1)
import torch._dynamo
for rank, name in enumerate(sys.argv[1:]):
    os.environ["RANK"] = str(rank)
    if os.fork() == 0:
        getattr(profile_loops, name)(20)
        sys.exit()
    os.wait()
"""
"""Runs each loop in a fork, because PyTorch takes seconds to import. An optimizer needs the other
module too."""
PER_STEP = {
    "accumulation": 4, "gan": 1, "evaluation": 1, "told": 1, "epochs": 1, "plain": 1,
}  # fmt: skip
"""How often each loop marks one step."""


def test_the_trace_has_the_very_steps(
    teho: Call, torch_python: Path, tmp_path: Path, home: Path
) -> None:
    path = tmp_path / "loops.py"
    path.write_text(SEVERAL_LOOPS)
    done = teho(
        "profile", "--steps", "12:15", "--ranks", "all", "--", torch_python, path, *PER_STEP,
        env={"PYTHONPATH": SOURCES},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    said = r"\? The trace has no work of a GPU\. On the CPU, .+ took the most time:"
    assert re.match(said, " ".join(done.stderr.split())), done.stderr  # a long name wraps the line
    ranks = {int(re.search(r"rank(\d+)", path.name)[1]): path for path in traces_of(home)}
    assert sorted(ranks) == list(range(len(PER_STEP)))
    for rank, (name, per_step) in enumerate(PER_STEP.items()):
        loaded = load(ranks[rank])
        assert loop_steps(loaded) == sorted([12, 13, 14] * per_step), name
        assert marked_steps(loaded) == [f"ProfilerStep#{n}" for n in (12, 13, 14)], name
        assert read_traces([ranks[rank]]).traces[0].step_count == 3
        assert_nested(loaded)


def assert_nested(loaded: Loaded) -> None:
    """Viewers expect the marks of a thread to be inside each other; only the last one is cut."""
    steps = [mark for mark in loaded.marks if mark.name.startswith("ProfilerStep")]
    for one in loaded.marks:
        for step in steps:
            apart = one.end <= step.start or step.end <= one.start
            inside = step.start <= one.start and one.end <= step.end
            assert apart or inside or one.end > steps[-1].end, (one, step)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "package"),
    [("lightning", "pytorch_lightning"), ("lightning_accumulation", "pytorch_lightning"),
     ("trainer", "transformers")],
)  # fmt: skip
def test_steps_of_trainers(
    name: str, package: str, teho: Call, torch_python: Path, home: Path
) -> None:
    reason = lacks_framework(package)
    if reason or not SOAK:
        pytest.skip(reason or "it takes long: TEHO_SOAK=1, or benchmarks/profile_steps.py")
    done = teho("profile", "--steps", "12:15", "--", torch_python, LOOPS, name, "20")
    assert done.returncode == 0, done.stderr
    (path,) = traces_of(home)
    assert set(loop_steps(load(path))) == {12, 13, 14}


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Write a program that trains."""

    def write(code: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(TRAINING + code)
        return path

    return write


@RUNS
def test_a_program_that_ends_in_the_window(
    teho: Call, torch_python: Path, program: Callable[[str], Path], home: Path
) -> None:
    path = program("print(train(13)); print('end', file=sys.stderr); sys.exit(7)")
    alone = subprocess.run([torch_python, path], capture_output=True, text=True, check=False)
    done = teho("profile", "--steps", "12:20", "--", torch_python, path, env={"COLUMNS": "100"})
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (7, alone.stdout)
    assert done.stderr.startswith(alone.stderr)
    assert "The program ended in step 14, so the trace has only steps 12 to 13." in done.stderr
    (trace,) = traces_of(home)
    loaded = load(trace)
    assert loop_steps(loaded) == [12, 13]
    assert read_traces([trace]).traces[0].step_count == 2
    report = json.loads(teho("report", "--format", "json").stdout)
    run = only_run(home).name
    assert report["commands"] == [f"`teho profile {run}` explains the trace of steps 12 to 13"]
    assert any("ended in step 14" in note for note in report["notes"])
    # The same again, from the recording; and for a viewer.
    again = teho("profile", "last", "--trace-to", home / "a.json", env={"COLUMNS": "100"})
    assert again.stdout.splitlines()[0] == done.stderr[len(alone.stderr) :].splitlines()[0]
    assert json.loads((home / "a.json").read_bytes())["teho_steps"] == [12, 13]


SITUATIONS = """
import json, resource, types
from torch.autograd import profiler as module

def plan(name, **changes):
    wanted = {"id": name, "first": None, "last": None, "count": None, "window_s": None,
              "after_s": 0, "with": [], "ranks": "one", "most_s": 60, "most_bytes": 1 << 29}
    path = os.path.join(os.environ["TEHO_PROBE"], "profile.json")
    with open(path + ".new", "w") as file:
        json.dump({**wanted, **changes}, file)
    os.replace(path + ".new", path)
    time.sleep(1.05)

ORIGINALS = module._prepare_profiler, module._enable_profiler
def ended():
    assert (module._prepare_profiler, module._enable_profiler) == ORIGINALS
    assert not torch.autograd._profiler_enabled()

train(1)
plan("plain", count=2); train(6); ended()
plan("memory", count=2, **{"with": ["stack", "shapes", "memory"]}); train(6); ended()
plan("passed", first=3, last=4); train(2); ended()
plan("size", count=2, most_bytes=10); train(6); ended()
plan("time", count=50, most_s=0.2); train(30, then=lambda _: time.sleep(0.02)); ended()
plan("rank", count=2, ranks=[3]); train(6); ended()
with torch.profiler.profile() as own:
    plan("own", count=2); train(6)
assert any(one.key == "aten::linear" for one in own.key_averages())
plan("displaced", count=9)
train(4)
with torch.profiler.profile() as own:
    train(3)
assert sum(one.key == "loop step 2" for one in own.events()) == 1
ended()
plan("warm", count=9)
time.sleep(1)  # the probe may look late on a busy machine, and there are only two steps
train(1)
with torch.profiler.profile() as own:
    train(1)
assert sum(one.key == "loop step 1" for one in own.events()) == 1
ended()
plan("legacy", count=9)
train(4)
with module.emit_nvtx(enabled=False), module.profile() as own:
    train(1)
ended()
def fail(*_): raise RuntimeError("on purpose")
plan("fails", count=3)
train(2)
kind = torch.profiler._KinetoProfile
kind.add_metadata_json, keep = fail, kind.add_metadata_json
train(6)
kind.add_metadata_json = keep
ended()
def failing(name, attribute, place=kind):
    keep = getattr(place, attribute)
    plan(name, count=2)
    setattr(place, attribute, fail)
    train(6)
    setattr(place, attribute, keep)
    ended()
failing("prepares", "prepare_trace")
failing("starts", "start_trace")
failing("exports", "export_chrome_trace")
keep, os.statvfs = os.statvfs, lambda _: types.SimpleNamespace(f_bavail=1, f_frsize=4096)
plan("disk", count=2); train(6); ended()
os.statvfs = keep
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
plan("written", count=2)
train(3)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))  # as on a full disk
train(3)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
ended()
probe = sys.modules["_teho_probe.profiling"]
used = iter([1, 1, 1 << 40])
keep, probe.used_bytes = probe.used_bytes, lambda: next(used, 1 << 40)
plan("events", count=50); train(30, then=lambda _: time.sleep(0.02)); ended()
probe.used_bytes = keep
def used_mb(): return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
def fork(number):
    # A child such as a worker of a data loader must not record for ever.
    if number == 3:
        if os.fork() == 0:
            try:
                assert (module._prepare_profiler, module._enable_profiler) == ORIGINALS
                train(2)
                x, before = torch.rand(4, 8), used_mb()
                for _ in range(20_000): x = x + 1
                assert used_mb() < before + 8, used_mb() - before
                os._exit(0)
            finally:
                os._exit(1)
        assert os.wait()[1] == 0
plan("forks", count=3); train(7, then=fork); ended()
plan("again", count=2); train(6); ended()
def work():
    until = time.monotonic() + 3
    while time.monotonic() < until: model(torch.rand(4, 8)); time.sleep(0.05)
plan("window", window_s=0.1)
from multiprocessing import get_context
worker = get_context("fork").Process(target=work)
worker.start()
until = time.monotonic() + 3
while time.monotonic() < until: model(torch.rand(4, 8)); time.sleep(0.01)
worker.join()
ended()
print("done")
"""


def test_situations_in_one_program(torch_python: Path, tmp_path: Path) -> None:
    """All in one process, because PyTorch takes seconds to start."""
    probed = Probed(tmp_path)
    done = probed.run(TRAINING + SITUATIONS, python=str(torch_python))
    assert (done.stdout, done.returncode) == (b"done\n", 0), done.stderr
    # The program's own profilers print their two lines, and Teho's do not.
    lines = [re.sub(r".*\] ", "", line) for line in done.stderr.decode().splitlines()]
    assert [one for one in lines if one.startswith("profiler_")] == [
        "profiler_start", "profiler_stop"
    ] * 4  # fmt: skip
    # PyTorch's own words, if its start fails, are the only others.
    others = {re.split(" was| called", one)[0] for one in lines if not one.startswith("profiler_")}
    assert others <= {"Memory block of unknown size", "disableProfiler"}
    process, *children = probed.watched()  # a child that ends soon leaves nothing
    assert children
    assert not any(child.profiled for child in children)
    situations: dict[str, ProfilerUse] = {use.profile: use for use in process.profiled}
    whys = {name: use.why for name, use in situations.items()}
    assert whys == {
        "plain": "", "memory": "", "passed": "passed", "size": "size", "time": "time",
        "rank": "accepted", "own": "own", "displaced": "displaced", "warm": "displaced",
        "legacy": "displaced", "fails": "error", "prepares": "error", "starts": "error",
        "exports": "error", "disk": "disk", "written": "written", "events": "memory",
        "forks": "", "again": "", "window": "",
    }  # fmt: skip
    for name in ("fails", "prepares", "starts", "exports"):
        assert "on purpose" in situations[name].detail
    assert situations["disk"].detail == "4096"
    assert situations["displaced"].in_step == situations["displaced"].steps[1] + 1
    traces = {name: probed.spool / use.file for name, use in situations.items() if use.file}
    assert set(traces) == {"plain", "memory", "time", "events", "forks", "again", "window"}
    assert sorted(probed.spool.glob("trace-*")) == sorted(traces.values())
    loaded = {name: load(path) for name, path in traces.items()}
    for name in ("plain", "memory", "again"):
        first, last = situations[name].steps
        assert last == first + 1
        assert marked_steps(loaded[name]) == [f"ProfilerStep#{n}" for n in (first, last)]
        assert loop_steps(loaded[name]) == [3, 4]
        assert bool(loaded[name].frames) is (name == "memory")
    for name, has_memory in (("memory", True), ("plain", False)):
        (trace,) = read_traces([traces[name]]).traces
        assert bool(trace.memory) is has_memory
    assert b"Input Dims" in traces["memory"].read_bytes()
    assert b"Input Dims" not in traces["plain"].read_bytes()
    assert loop_steps(loaded["forks"]) == [3, 4, 5]  # and none of the child
    assert situations["events"].steps[1] - situations["events"].steps[0] < 28
    # Two of three steps of the limit are enough: the machine may be slow.
    assert 0 < situations["time"].steps[1] - situations["time"].steps[0] < 28
    assert situations["window"].steps is None
    assert {loaded["window"].names[n] for t in loaded["window"].operators.values() for n in t.names}


RANKS = (
    TRAINING
    + """
from torch import distributed
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="FREE")
distributed.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=2)
train(12)
distributed.destroy_process_group()
"""
)


PACED = RANKS.replace("world_size=2", "world_size=3").replace(
    "train(12)",
    "rank = distributed.get_rank()\n"
    "train(10**6, then=lambda _: time.sleep((0.02, 0.06, 0.2)[rank]))",
)
"""The ranks exchange nothing, so each has its own pace."""


def with_free_port(program: str, path: Path) -> Path:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    path.write_text(program.replace("FREE", str(port)))
    return path


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """Return a program of two ranks."""
    return with_free_port(RANKS, tmp_path / "ranks.py")


@RUNS
def test_only_rank_0_of_a_step_is_recorded(torch_python: Path, ranks: Path, home: Path) -> None:
    command = [*TEHO, "profile", "--steps", "8:10", "--", torch_python, ranks]
    tasks = [
        subprocess.Popen(
            command, env=step_environment(home, rank, nodes=1, per_node=2), text=True,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    codes, said = wait(tasks)
    assert codes == [0, 0], said
    (trace,) = read_traces(traces_of(home)).traces
    assert (trace.rank, trace.ranks, trace.step_count) == (0, 2, 2)
    (printed,) = [text for text in said if text]
    assert "The trace has no work of a GPU." in printed


@RUNS
def test_the_slowest_and_the_median_rank_of_a_run(
    teho: Call, torch_python: Path, tmp_path: Path, home: Path
) -> None:
    path = with_free_port(PACED, tmp_path / "paced.py")
    tasks = [
        subprocess.Popen(
            [*TEHO, "run", "--quiet", "--every", "200ms", "--", torch_python, path],
            env=step_environment(home, rank, nodes=1, per_node=3), text=True,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )
        for rank in range(3)
    ]  # fmt: skip

    def paces() -> tuple[int, ...]:
        (run,) = (one for one in (home / "runs").iterdir() if one.name[0] != ".")
        return chosen_ranks(watched_processes(run, []))

    try:
        wait_for(lambda: list(home.glob("runs/*/probe/*.jsonl")), 120)
        wait_for(lambda: paces() == (2, 1), 120)
        done = teho("profile", "last", "--steps", "3", "-o", home / "a.json")
        assert done.returncode == 0, done.stderr
        assert "recording the slowest rank, 2, and the median rank, 1" in done.stderr
        traces = json.loads((home / "a.json").read_bytes())["traces"]
        assert [(one["rank"], one["step_count"]) for one in traces] == [(1, 3), (2, 3)]
    finally:
        for task in tasks:
            task.send_signal(signal.SIGTERM)
        codes, said = wait(tasks)
    assert codes == [-signal.SIGTERM] * 3, said
    assert len(traces_of(home)) == 2


@RUNS
def test_a_run_that_continues_and_then_is_killed(
    teho: Call, torch_python: Path, program: Callable[[str], Path], home: Path
) -> None:
    path = program("train(10**6, then=lambda _: time.sleep(0.02))")
    with subprocess.Popen(
        [*TEHO, "run", "--quiet", "--every", "200ms", "--", torch_python, path],
        env={**os.environ, "SLURM_JOB_ID": "4711"},
        stderr=subprocess.PIPE,
    ) as running:
        try:
            wait_for(lambda: list(home.glob("runs/*/probe/*.jsonl")), 60)
            wait_for(lambda: b'"steps"' in b"".join(
                one.read_bytes() for one in home.glob("runs/*/probe/*.jsonl")
            ), 60)  # fmt: skip
            done = teho("profile", "4711", "--steps", "3", "-o", home / "a.json")
            assert done.returncode == 0, done.stderr
            answer = json.loads((home / "a.json").read_bytes())
            assert answer["traces"][0]["step_count"] == 3
            window = teho("profile", "4711", "--window", "200ms", "-o", home / "b.json")
            assert window.returncode == 0, window.stderr
            (trace,) = json.loads((home / "b.json").read_bytes())["traces"]
            assert 0.1 < trace["step_s"] * max(trace["step_count"], 1) < 5
            late = teho("profile", "last", "--steps", "2:4")
            assert late.returncode == 2
            assert "step 2 was over when the profiler could start" in late.stderr
        finally:
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == -signal.SIGTERM
    assert not list(only_run(home).glob("plans/*"))
    assert teho("profile", "last", "--steps", "3").returncode == 2
    assert "The trace has no work of a GPU." in teho("profile", "last").stdout
    assert not Path(spool_of(str(running.pid))).exists()


@RUNS
def test_a_length_of_time(
    teho: Call, torch_python: Path, program: Callable[[str], Path], home: Path
) -> None:
    path = program(
        "until = time.monotonic() + float(sys.argv[1])\n"
        "while time.monotonic() < until: train(1); time.sleep(0.01)"
    )
    words = ("--window", "500ms", "--after", "0s", "--", torch_python, path, "6")
    done = teho("profile", *words)
    assert done.returncode == 0, done.stderr
    (trace,) = read_traces(traces_of(home)).traces
    assert 0.3 < trace.step_s * max(trace.step_count, 1) < 6
