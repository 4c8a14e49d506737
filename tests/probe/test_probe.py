"""The probe in real programs, in every Python from 3.8 on that this machine has."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from probe.probed import INJECT, Probed


@functools.cache
def found_pythons() -> dict[tuple[int, ...], str]:
    """Return a Python of each version that this machine has and that starts."""
    # Where several are kept side by side, this one's neighbours.
    neighbours = Path(sys.base_prefix).parent.glob("*/bin/python")
    found = versions_of([sys.executable, *map(str, neighbours)])
    # Those on the PATH may be scripts that are slow to find the Python that they start.
    others = ((2, 7), *((3, minor) for minor in range(6, 16)))
    names = ("python{}.{}".format(*version) for version in others if version not in found)
    return dict(sorted((versions_of(filter(None, map(shutil.which, names))) | found).items()))


def versions_of(paths: Iterable[str]) -> dict[tuple[int, ...], str]:
    """Return the first of each version, of those that start."""
    words = "import sys; print('%d %d' % sys.version_info[:2])"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    asked = {path: subprocess.Popen([path, "-c", words], **pipes) for path in paths}
    found: dict[tuple[int, ...], str] = {}
    for path, process in asked.items():
        said = process.communicate()[0]
        if process.returncode == 0:
            found.setdefault(tuple(map(int, said.split())), path)
    return found


def pythons(*, old: bool = False) -> list[str]:
    """Return this Python, and others that start: those that can be looked into, or older ones."""
    return [path for version, path in found_pythons().items() if (version < (3, 8)) is old]


VERSIONS = pytest.mark.drawn(1, always=(pythons()[0], pythons()[-1]))
"""The oldest, the newest, and one of the others."""


def walls(lines: list[dict]) -> dict[str, float]:
    """Return the wall time for which each function was the innermost of the program's own."""
    places = {line["frame"]: line["is"] for line in lines if "frame" in line}
    frames = {
        str(line["stack"]): [places[number] for number in line["frames"]]
        for line in lines
        if "frames" in line
    }
    found: dict[str, float] = {}
    for line in lines:
        for number, (_, wall_s, _, _) in line.get("seen", {}).items():
            own = [frame for frame in frames.get(number, []) if frame[0].endswith("program.py")]
            name = own[0][1] if own else "other"
            found[name] = found.get(name, 0.0) + wall_s
    return found


@VERSIONS
@pytest.mark.parametrize("python", pythons())
def test_the_time_adds_up_and_is_shown_where_it_was_spent(probed: Probed, python: str) -> None:
    code = """
    import threading
    late = [0.0]
    def be_late():
        while True:
            due = time.monotonic() + 0.01
            time.sleep(0.01)
            late[0] = max(late[0], time.monotonic() - due)
    threading.Thread(target=be_late, daemon=True).start()
    def rest(seconds): time.sleep(seconds)
    times = [time.monotonic()]
    spin(1.6)
    times.append(time.monotonic())
    rest(0.8)
    times.append(time.monotonic())
    print(*times, late[0])
    """
    done = probed.run(code, "-W", "error", python=python)
    assert (done.returncode, done.stderr) == (0, b"")
    (lines,) = probed.processes()
    head, end = lines[0], lines[-1]
    assert head["probe"] == 1
    assert "end_s" in end
    found = walls(lines)
    assert sum(found.values()) == pytest.approx(end["end_s"] - head["began_s"], abs=0.01)
    # Against the program's own clock: on a loaded machine, both take longer.
    # A sampler that waits for a core is late, as any other thread of the program.
    began_s, spun_s, rested_s, late_s = map(float, done.stdout.split())
    assert found["spin"] == pytest.approx(spun_s - began_s, abs=0.3 + 2 * late_s)
    assert found["rest"] == pytest.approx(rested_s - spun_s, abs=0.3 + 2 * late_s)
    texts = {line["is"][3] for line in lines if "frame" in line}
    called = "time.sleep(seconds)" if sys.version_info >= (3, 11) else "def rest"
    assert python != sys.executable or any(called in text for text in texts)


def test_whether_a_person_can_answer(probed: Probed) -> None:
    leader, terminal = os.openpty()
    try:
        assert probed.run("print(os.isatty(0))", stdin=terminal).stdout == b"True\n"
        assert probed.run("print(os.isatty(0))").stdout == b"False\n"
    finally:
        os.close(leader)
        os.close(terminal)
    assert [process.stdin_is_terminal for process in probed.watched()] == [True, False]


def test_traced_memory_is_noted_only_while_it_is_traced(probed: Probed) -> None:
    probed.run("import tracemalloc; tracemalloc.start(7); spin(0.3)")
    probed.run("import tracemalloc; spin(0.3)")
    assert [process.libraries for process in probed.watched()] == [
        {"python": {"tracemalloc": 7}},
        {},
    ]


@VERSIONS
@pytest.mark.parametrize("python", pythons())
def test_forked_children_are_seen_without_a_warning(probed: Probed, python: str) -> None:
    code = """
    spin(0.3)
    pid = os.fork()
    if pid == 0:
        def is_written():
            folder = os.environ["TEHO_PROBE"]
            names = [one for one in os.listdir(folder) if one.startswith(f"{os.getpid()}-")]
            for name in names:
                with open(f"{folder}/{name}") as file:
                    if '"seen"' in file.read(): return True
        spin(1.5)
        until = time.monotonic() + 30
        while not is_written() and time.monotonic() < until: spin(0.2)
        os._exit(7)
    print(os.waitpid(pid, 0)[1] >> 8)
    spin(0.3)
    """
    done = probed.run(code, "-W", "error", python=python)
    assert (done.stdout, done.stderr) == (b"7\n", b"")
    parent, child = probed.processes()
    assert child[0]["parent_pid"] == parent[0]["pid"]
    assert "end_s" in parent[-1]
    # What was seen until its last write is there: on a loaded machine, this write may be late.
    assert walls(child)["spin"] > 0.7 * sum(walls(child).values())
    assert walls(child)["spin"] > 0.7
    assert not any("end_s" in line for line in child)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_are_seen(probed: Probed, method: str) -> None:
    done = probed.run(
        f"""
        import multiprocessing
        def rest(seconds): time.sleep(seconds)
        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                pool.map(rest, [2.8, 2.8], chunksize=1)
        """
    )
    assert (done.returncode, done.stderr) == (0, b"")
    workers = [lines for lines in probed.processes() if walls(lines).get("rest", 0.0) > 0.8]
    assert len(workers) == 2


def test_a_program_that_becomes_another_is_seen_again(probed: Probed) -> None:
    probed.run(
        """
        if len(sys.argv) == 1:
            time.sleep(3)
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        spin(0.2)
        """
    )
    first, second = probed.processes()
    assert first[0]["pid"] == second[0]["pid"]
    assert "end_s" not in first[-1]
    assert "end_s" in second[-1]


@pytest.mark.parametrize("python", pythons(old=True))  # none in most places: then it is skipped
def test_older_pythons_run_as_ever(probed: Probed, python: str) -> None:
    probed.both("print(sys.version)", python=python)
    assert probed.processes() == []


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_if_python_does_not_load_it_the_program_is_unchanged(probed: Probed, option: str) -> None:
    # Without `site` its folder stays on the path, where nothing asks for what is in it.
    probed.both(f"print([path for path in sys.path[1:] if path != {str(INJECT)!r}])", option)
    assert probed.processes() == []


def test_nothing_of_it_is_on_the_programs_path(probed: Probed) -> None:
    probed.both("print(sys.path[1:])")


def test_the_replaced_module_still_runs(probed: Probed, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.stdout.write('at the start\\n')\n")
    probed.path = str(site)
    done = probed.both("import sitecustomize; print(sitecustomize.__file__)")
    assert done.stdout.decode() == f"at the start\n{site}/sitecustomize.py\n"
    (site / "sitecustomize.py").write_text("import no_such_module\n")
    probed.both("print('sitecustomize' in sys.modules)")
    (site / "sitecustomize.py").write_text("raise RuntimeError('broken')\n")
    assert b"broken" in probed.both("print(1)").stderr


def test_bytes_signals_and_profilers_stay_unchanged(probed: Probed) -> None:
    probed.both(
        """
        import signal, threading
        calls = []
        sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_filename))
        spin(0.1)
        sys.setprofile(None)
        sys.stdout.buffer.write(bytes(range(256)))
        print(threading.active_count(), any("_teho" in name for name in calls))
        # Whoever waits for a signal has it blocked in all threads that it knows of.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGUSR1)
        print(signal.sigwait([signal.SIGUSR1]))
        signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(0.2)
        """
    )


@pytest.mark.parametrize("what", ["a file", "closed"])
def test_a_spool_that_cannot_be_used_costs_nothing_but_itself(
    probed: Probed, tmp_path: Path, what: str
) -> None:
    if what == "a file":
        probed.spool.parent.write_text("")
    else:
        probed.spool = Path("/proc/no/such")
    probed.both("time.sleep(1.2); print(1)")


def test_a_program_that_closes_all_descriptors_keeps_its_files_to_itself(
    probed: Probed, tmp_path: Path
) -> None:
    """As daemons do: what they open then gets the numbers of what was open before."""
    mine = tmp_path / "mine"
    probed.run(
        f"""
        time.sleep(1.3)
        os.closerange(3, 64)
        files = [open({str(mine)!r} + str(n), "w") for n in range(8)]
        time.sleep(1.3)
        """
    )
    assert [(tmp_path / f"mine{n}").read_text() for n in range(8)] == [""] * 8
    (lines,) = probed.processes()
    assert "end_s" in lines[-1]


def test_what_finds_no_room_is_reported_when_there_is_some(probed: Probed) -> None:
    done = probed.run(
        """
        import resource
        def before(): time.sleep(1.5)
        def after(): time.sleep(1.5); before()
        no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, no_limit[1]))
        before()
        resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
        after()
        """
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    (process,) = probed.watched()
    functions = {frame.function for seen in process.stacks for frame in seen.frames}
    assert {"before", "after"} <= functions


def test_a_program_without_descriptors_is_reported_when_it_has_some(probed: Probed) -> None:
    done = probed.run(
        """
        import resource
        no_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, no_limit[1]))
        time.sleep(2.5)
        resource.setrlimit(resource.RLIMIT_NOFILE, no_limit)
        time.sleep(1.5)
        """
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    (process,) = probed.watched()
    texts = {"time.sleep(2.5)": 0.0, "time.sleep(1.5)": 0.0}
    for seen in process.stacks:
        for frame in seen.frames:
            if frame.text in texts:
                texts[frame.text] += seen.wall_s
    # Samples are drawn at random: 2.2 s of the 2.5 s were seen once on a loaded machine.
    assert texts["time.sleep(2.5)"] > 1.5
    assert texts["time.sleep(1.5)"] > 0.9
    total_s = sum(seen.wall_s for seen in process.stacks)
    assert total_s == pytest.approx(process.wall_s, rel=0.02)


def test_a_file_that_is_full_says_so(probed: Probed) -> None:
    done = probed.run(
        """
        import sys
        sys.modules["_teho_probe.lines"]._MOST_BYTES = 2000
        for number in range(40):
            exec(f"def f{number}():\\n  time.sleep(0.1)\\nf{number}()")
        """
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    (lines,) = probed.processes()
    assert lines[-1] == {"failed": "the file of samples is full: later samples are missing"}


def test_a_line_is_read_while_linecache_is_imported(probed: Probed) -> None:
    """Another thread then has the module, and it is empty."""
    done = probed.run(
        """
        import sys, types
        sys.modules["linecache"] = types.ModuleType("linecache")
        spin(1.3)
        """
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    (process,) = probed.watched()
    assert any(frame.text == "spin(1.3)" for seen in process.stacks for frame in seen.frames)


def test_a_script_that_comes_from_a_pipe_is_not_read_again(probed: Probed, tmp_path: Path) -> None:
    """Nobody writes into it any more: who opens it waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    code = f"""
    import subprocess
    program = subprocess.Popen([sys.executable, {str(tmp_path / "pipe")!r}])
    with open({str(tmp_path / "pipe")!r}, "w") as pipe: pipe.write("import time; time.sleep(0.3)")
    try: print(program.wait(30))
    finally: program.kill()
    """
    assert probed.run(code).stdout == b"0\n"


def test_many_short_programs_do_not_fill_the_disk_with_files(probed: Probed) -> None:
    code = """
    lines = sys.modules.get("_teho_probe.lines")
    if lines: lines._MOST_NAMES_BYTES = 1
    """
    assert probed.run(code).stderr == b""
    assert probed.processes() == []


def test_a_short_program_is_reported_too(probed: Probed) -> None:
    probed.both("print(1)")
    (lines,) = probed.processes()
    assert "end_s" in lines[-1]


def test_its_cost_is_reported_and_small(probed: Probed) -> None:
    probed.run("spin(2.5)")
    (lines,) = probed.processes()
    costs = [line["cost_s"] for line in lines if "cost_s" in line]
    assert costs == sorted(costs)
    # A bound that holds on a loaded machine; benchmarks measure it.
    assert 0 < costs[-1] < 0.2


def test_threads_that_fork_at_once_do_not_wait_for_it(probed: Probed) -> None:
    """As `subprocess` does in a pool of threads, with `preexec_fn`."""
    done = probed.run(
        """
        import threading
        waits = sys.modules["_teho_probe.sampler"]
        waits._GONE_WAIT_S = 60.0
        def go():
            for _ in range(12):
                pid = os.fork()
                if pid == 0: os._exit(0)
                os.waitpid(pid, 0)
        threads = [threading.Thread(target=go) for _ in range(6)]
        began = time.monotonic()
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(time.monotonic() - began < 30)
        until = time.monotonic() + 30
        while len(os.listdir("/proc/self/task")) > 2 and time.monotonic() < until: time.sleep(0.1)
        print(len(os.listdir("/proc/self/task")))
        """
    )
    assert (done.stdout, done.stderr) == (b"True\n2\n", b"")


def test_what_a_handler_raises_leaves_no_signal_blocked(probed: Probed) -> None:
    probed.both(
        """
        import signal
        sampler = sys.modules.get("_teho_probe.sampler")
        if sampler:
            real = sampler.pthread_sigmask
            def interrupted(how, signals):
                before = real(how, signals)
                if signals and how == signal.SIG_BLOCK: raise KeyboardInterrupt
                return before
            sampler.pthread_sigmask = interrupted
            sys.unraisablehook = lambda _: None
        if os.fork() == 0: os._exit(0)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        """
    )


@pytest.mark.parametrize(
    "change",
    ["sys._is_gil_enabled = lambda: False", "sys.modules['_interpreters'] = sys"],
)
def test_it_does_not_read_stacks_if_this_may_crash_python(probed: Probed, change: str) -> None:
    done = probed.run(
        f"""
        {change}
        looks = []
        real = sys._current_frames
        sys._current_frames = lambda: looks.append(1) or real()
        time.sleep(0.5)
        print(looks)
        """
    )
    assert (done.stdout, done.stderr) == (b"[]\n", b"")
    (lines,) = probed.processes()
    assert "end_s" in lines[-1]


def test_no_garbage_is_collected_while_it_samples_if_that_may_hang(probed: Probed) -> None:
    done = probed.run(
        """
        import gc
        sys.modules["_teho_probe.sampler"]._HANGS = True
        seen = set()
        real = sys._current_frames
        sys._current_frames = lambda: seen.add(gc.isenabled()) or real()
        until = time.monotonic() + 30  # the first sample may be late on a loaded machine
        while not seen and time.monotonic() < until: time.sleep(0.5)
        print(seen, gc.isenabled())
        gc.disable()
        time.sleep(0.3)
        print(gc.isenabled())
        """
    )
    assert (done.stdout, done.stderr) == (b"{False} True\nFalse\n", b"")
