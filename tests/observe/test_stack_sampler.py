"""The recorder's child that reads stacks, over real programs with the probe in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from teho.model.stack import State
from teho.model.watched import WatchedProcess
from teho.observe import stack_sampler, stays
from teho.observe.spool import with_probe
from teho.observe.stack_sampling import StackSampling
from teho.store.probe import processes_in

LOOP = """
import hashlib, time
data = b"x" * 3_000_000
def python():
    total = 0
    for number in range(300_000): total += number * number
    return total
def native(): return hashlib.sha256(data).digest()
def rest(): time.sleep(0.002)
end = time.monotonic() + 8
while time.monotonic() < end:
    python()
    native()
    rest()
"""


@pytest.fixture
def spool(tmp_path: Path) -> str:
    (tmp_path / "above").mkdir(mode=0o700)
    return str(tmp_path / "above" / "probe")


@pytest.fixture
def sampling(spool: str) -> Iterator[Callable[[], None]]:
    child = StackSampling(spool, cores=os.cpu_count() or 1)
    ended = []

    def end() -> None:
        if not ended:
            ended.append(True)
            child.stop()

    yield end
    end()


def run(spool: str, code: str) -> subprocess.CompletedProcess[str]:
    environment = with_probe(dict(os.environ), spool)
    argv = [sys.executable, "-c", code]
    return subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=120, check=True
    )


def read(spool: str) -> list[WatchedProcess]:
    problems: list[str] = []
    found = processes_in(Path(spool), problems)
    assert problems == []
    return found


def sampled(spool: str) -> list[dict[str, Any]]:
    """Return the lines of the sampler."""
    (file,) = Path(spool).glob("stacks-*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


UNTIL_SAMPLED = """
import glob, os, time
def wait_for(word):
    # Until the sampler has written of this process, however late on a loaded machine.
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(
        f'"process":"{os.getpid()}-' in line and word in line
        for name in glob.glob(os.environ["TEHO_PROBE"] + "/stacks-*") for line in open(name)
    ): time.sleep(0.3)
"""


def by_function(process: WatchedProcess) -> dict[str, dict[State, float]]:
    found: dict[str, dict[State, float]] = {}
    for one in process.stacks:
        states = found.setdefault(one.frames[0].function, {})
        states[one.state] = states.get(one.state, 0.0) + one.wall_s
    return found


def test_each_function_has_its_time_in_the_state_that_it_was_in(
    spool: str, sampling: Callable[[], None], tmp_path: Path
) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    run(spool, f"exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))")
    sampling()
    (process,) = read(spool)
    assert process.from_outside
    functions = by_function(process)
    assert max(functions["python"], key=functions["python"].__getitem__) in {
        State.PYTHON,
        State.CORE,
    }
    assert max(functions["native"], key=functions["native"].__getitem__) in {
        State.NATIVE,
        State.CORE,
    }
    # On a loaded machine, a thread that has slept long enough waits for a core.
    assert {State.SLEEPING, State.CORE} & set(functions["rest"])
    # By looks from outside but for the first moments: these are longer on a loaded machine.
    first_s = next(line["began_s"] for line in sampled(spool) if "began_s" in line)
    found_s = sum(one.wall_s for one in process.stacks)
    assert 0.97 * (process.until_s - first_s) < found_s < 1.03 * process.wall_s
    # The data never change: the hash is the same in each iteration.
    if sys.version_info >= (3, 11):  # before, the text of a call is its whole line
        hashes = [one for one in process.repeated if "sha256(data)" in one.call.text]
        # A single sample may be in `digest()`.
        (found,) = [one for one in hashes if one.happens_again]
        assert (found.loop.line, found.is_same) == (11, True)
        assert found.periods >= 3


WAITS_OFTEN = """time.sleep(0.002); until = time.monotonic() + 0.002
  while time.monotonic() < until: pass"""


def share_on_other_cores(spool: str, loop: str) -> float:
    """Return how often the sampler of a program was on another core, if all cores are in use."""
    core, *others = sorted(os.sched_getaffinity(0))
    pinned = "import os, time; os.sched_setaffinity(0, {%d})\n"
    until = f"end = time.monotonic() + 3\nwhile time.monotonic() < end:\n  {loop}"
    busy = [
        subprocess.Popen([sys.executable, "-c", f"{pinned % one}while True: pass"])
        for one in (core, *others)
    ]
    child = StackSampling(spool, cores=2)
    try:
        program = subprocess.Popen(
            [sys.executable, "-c", pinned % core + until], env=with_probe(dict(os.environ), spool)
        )
        seen = []
        while program.poll() is None:
            seen.append(os.sched_getaffinity(child._pid))
            time.sleep(0.01)
    finally:
        for one in busy:
            one.kill()
            one.wait()
        child.stop()
    late = seen[len(seen) // 2 :]
    return sum(cores == set(others) for cores in late) / len(late)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core: no other to go to")
def test_it_samples_from_another_core_if_all_are_in_use_and_the_thread_waits(spool: str) -> None:
    # Each 4th sample is from another core, and on a loaded machine the sampler may stay there
    # until it gets a core. So both shares are compared, each measured under the same load: about
    # 0.9 to 1 for a thread that waits, 0.02 to 0.5 for one that computes.
    for number in range(3):
        waits = share_on_other_cores(f"{spool}-w{number}", WAITS_OFTEN)
        computes = share_on_other_cores(f"{spool}-c{number}", "pass")
        if waits - computes > 0.2:
            return
    pytest.fail(f"on another core: {waits:.2f} if it waits, {computes:.2f} if it computes")


def test_a_child_that_is_forked_is_found_too(spool: str, sampling: Callable[[], None]) -> None:
    run(
        spool,
        f"{UNTIL_SAMPLED}"
        "def of_child(): wait_for('seen')\n"
        "def of_parent(): os.wait()\n"
        "of_parent() if os.fork() else of_child()",
    )
    sampling()
    parent, child = read(spool)
    assert (parent.from_outside, child.from_outside) == (True, True)
    assert child.parent_pid == parent.pid
    functions = by_function(child)
    assert State.SLEEPING in functions["wait_for"]
    assert State.PROCESS in by_function(parent)["of_parent"]


def test_a_notebook_s_lines_have_their_text(spool: str, sampling: Callable[[], None]) -> None:
    code = """
import linecache, time
cell = "def slow(): time.sleep(0.5)\\nfor _ in range(8): slow()\\n"
name = "/tmp/ipykernel_1/no_such_cell.py"
linecache.cache[name] = len(cell), None, cell.splitlines(True), name
exec(compile(cell, name, "exec"))
"""
    run(spool, code)
    sampling()
    (process,) = read(spool)
    cells = {frame for one in process.stacks for frame in one.frames if "ipykernel" in frame.file}
    exact = sys.version_info >= (3, 11)
    assert {frame.text for frame in cells} == {
        "time.sleep(0.5)" if exact else "def slow(): time.sleep(0.5)",
        "slow()" if exact else "for _ in range(8): slow()",
    }


def test_a_process_that_cannot_be_read_is_sampled_by_its_own_thread(
    spool: str, sampling: Callable[[], None]
) -> None:
    # As one says that is no CPython.
    run(
        spool,
        "import sys\nown = sys.implementation\n"
        "sys.implementation = type(own)(**{**vars(own), 'name': 'other'})\n"
        f"{UNTIL_SAMPLED}wait_for('failed')\ntime.sleep(0.5)",
    )
    sampling()
    (process,) = read(spool)
    why = "the Python of the process is other, not CPython"
    assert (process.from_outside, process.why_inside) == (False, why)
    assert sum(one.wall_s for one in process.stacks) == pytest.approx(process.wall_s, rel=0.1)


def test_it_ends_with_the_recorder_that_was_killed(spool: str) -> None:
    code = (
        "import os, sys, time\n"
        "from teho.observe.stack_sampling import StackSampling\n"
        "child = StackSampling(sys.argv[1], 1)\n"
        "print(child._pid, flush=True)\n"
        "time.sleep(60)"
    )
    recorder = subprocess.Popen(
        [sys.executable, "-c", code, spool], stdout=subprocess.PIPE, text=True
    )
    assert recorder.stdout is not None
    pid = int(recorder.stdout.readline())
    recorder.kill()
    recorder.wait()
    recorder.stdout.close()
    deadline_s = time.monotonic() + 30
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline_s:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state in "ZX":  # nobody waits for it
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{pid}").exists()


def test_a_full_disk_costs_no_line(spool: str) -> None:
    from teho.observe.stack_lines import StackLines

    lines = StackLines(Path(spool))  # there is no such folder yet
    lines.began("7-100", 1.0)
    lines.flush(0.1)
    Path(spool).mkdir()
    lines.flush(0.2)
    (file,) = Path(spool).iterdir()
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert told == [{"process": "7-100", "began_s": 1.0}, {"cost_s": 0.2}]


ASYNCIO = """
import asyncio, time
async def pause(): await asyncio.sleep(0.02)
async def waits(end):
    while time.monotonic() < end: await pause()
async def main():
    end = time.monotonic() + 6
    await asyncio.gather(waits(end), waits(end))
asyncio.run(main())
"""


def test_an_event_loop_waits_in_its_coroutines(
    spool: str, sampling: Callable[[], None], tmp_path: Path
) -> None:
    script = tmp_path / "waits.py"
    script.write_text(ASYNCIO)
    run(spool, f"exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))")
    sampling()
    (process,) = read(spool)
    waiting = [seen for seen in process.stacks if any(one.file == "<task>" for one in seen.frames)]
    whole_s = sum(seen.wall_s for seen in process.stacks)
    assert sum(seen.wall_s for seen in waiting) > 0.6 * whole_s
    assert {seen.state for seen in waiting} == {State.SLEEPING}
    for seen in waiting:
        names = [one.function for one in seen.frames if one.file == str(script)]
        assert names == ["pause", "waits", "main", "<module>"]


THREAD = """
import hashlib, threading, time
data = b"x" * 3_000_000
def python():
    total = 0
    for number in range(300_000): total += number * number
    return total
def native(): return hashlib.sha256(data).digest()
def work():
    end = time.monotonic() + 4
    while time.monotonic() < end:
        python()
        native()
def wait():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
wait()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="threads have no number before Python 3.11")
def test_the_thread_for_which_the_main_thread_waits_is_in_front(
    spool: str, sampling: Callable[[], None]
) -> None:
    run(spool, THREAD)
    sampling()
    (process,) = read(spool)
    joined = [seen for seen in process.stacks if seen.frames and seen.own_frames != seen.frames]
    whole_s = sum(seen.wall_s for seen in process.stacks)
    assert sum(seen.wall_s for seen in joined) > 0.6 * whole_s
    assert {seen.state for seen in joined} == {State.THREADS}
    functions = {seen.frames[0].function for seen in joined}
    assert {"python", "native"} <= functions
    for seen in joined:
        names = [frame.function for frame in seen.frames]
        assert names[-2:] == ["wait", "<module>"]
        assert "work" in names[: names.index("")]  # the mark has no function
        assert [frame.function for frame in seen.own_frames][-2:] == ["wait", "<module>"]


STAYS = """
import os, threading, time
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(50_000))
        time.sleep(0.001)
lock = threading.Lock()
def hold():
    with lock: time.sleep(4)
work(1)
child = os.fork()
if child == 0: os.kill(os.getpid(), 9)
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.1)
lock.acquire()
work(4)
"""


def test_a_process_that_stays_in_one_line_is_written_at_once(
    spool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "stays.py"
    script.write_text(STAYS)
    # In a run of some hours, a slice has minutes.
    monkeypatch.setattr(stack_sampler, "_WRITE_S", 60.0)
    monkeypatch.setattr(stays, "_MARK_S", 1.0)
    monkeypatch.setattr(stays, "_AFTER_S", 1.0)
    child = StackSampling(spool, cores=os.cpu_count() or 1)
    try:
        assert not child.is_urgent()
        run(spool, f"exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))")
        assert child.is_urgent()
        assert not child.is_urgent()
    finally:
        child.stop()
    assert not child.is_urgent()
    lines = sampled(spool)
    found = [line["stays"] for line in lines if "stays" in line]
    assert found[-1] == {}  # it has gone on
    of_lock = [one for one in found if one.get("dead")]
    assert of_lock
    assert [how for _, how in of_lock[0]["dead"]] == [9]
    slices = [line for line in lines if "seen" in line]
    assert any(
        one["from_s"] == pytest.approx(of_lock[0]["since_s"], abs=0.01)
        for one in slices
    )  # fmt: skip
    (process,) = read(spool)
    assert process.stayed is None
    waited_s = sum(one.wall_s for one in process.stacks if one.frames[0].text == "lock.acquire()")
    assert 2.0 < waited_s < 6.0


def test_the_end_of_a_process_is_noticed(spool: str, sampling: Callable[[], None]) -> None:
    killed = UNTIL_SAMPLED + "wait_for('\"seen\"'); os.kill(os.getpid(), 9)"
    with pytest.raises(subprocess.CalledProcessError):
        run(spool, killed)
    time.sleep(2.0)  # two samples are at most 1.5 s apart
    sampling()
    (process,) = read(spool)
    assert process.death is not None
    assert process.death.pid == process.pid
    assert process.death.status in {None, 9}  # as a zombie, it still has a status
