"""Functions of real programs that are not Python, sampled by the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from native_programs import built, needs_cc
from other_users import ALICE, as_user, root
from teho.devices.host.procstat import read_stat
from teho.devices.procfile import names_in
from teho.model.native import NativeProgram
from teho.observe import native_functions
from teho.observe.native_functions import NativeFunctions
from teho.unwind import perf_events
from teho.unwind.perf_events import why_refused

pytestmark = [
    needs_cc,
    pytest.mark.skipif(bool(why_refused()), reason="the kernel refuses perf events here"),
]
_EVERY_S = 0.2


def ticks(*pids: int) -> dict[int, int]:
    found = {pid: read_stat(f"/proc/{pid}") for pid in pids}
    return {pid: one.own_ticks for pid, one in found.items() if one and not one.is_dead}


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def sampled(*command: str | Path, samples: int = 30) -> NativeProgram:
    """Run a program until it has enough samples, and return its functions."""
    functions = NativeFunctions()
    deadline_s = time.monotonic() + 90  # the machine may have other work
    with running(*command) as process:
        while time.monotonic() < deadline_s:
            functions.read(ticks(process.pid))
            if sum(one.samples for one in functions.found()) >= samples:
                break
            time.sleep(_EVERY_S)
    functions.read({})
    functions.close()
    assert not functions.refused
    (program,) = functions.found()
    return program


def shares(program: NativeProgram) -> dict[tuple[str, str], float]:
    return {(one.function, one.caller): one.samples / program.samples for one in program.functions}


def test_the_functions_of_a_program(tmp_path: Path) -> None:
    program = sampled(built(tmp_path, "own", "-O2"), "60", samples=60)
    assert (program.name, program.file, program.is_installed) == ("own", "own", False)
    assert program.main_samples == program.samples
    # 19 samples in each second of CPU time.
    assert program.samples == pytest.approx(19 * program.cpu_s, rel=0.2)
    found = shares(program)
    # `sin` is in the library; the program's functions called it.
    second = found.get(("second", ""), 0) + found.get(("sin", "second"), 0)
    first = found.get(("first", ""), 0) + found.get(("sin", "first"), 0)
    assert first + second > 0.9
    assert second == pytest.approx(0.75, abs=0.2)


def test_a_library_is_named_by_the_function_that_the_program_called(tmp_path: Path) -> None:
    program = sampled(built(tmp_path, "text"), "60")
    most = program.functions[0]
    assert (most.function, most.caller, most.file) == ("fprintf", "save", "libc.so.6")
    line = (tmp_path / "text.c").read_text().splitlines()
    number = next(n for n, text in enumerate(line, 1) if "the line" in text)
    assert max(most.lines, key=lambda one: most.lines[one]) == f"text.c:{number}"


def test_powers_are_named_with_their_exponent(tmp_path: Path) -> None:
    found = shares(sampled(built(tmp_path, "powers", "-O2"), "60"))
    assert found["pow(x, 3)", "main"] > 0.1
    assert found["pow", "main"] > 0.1


def test_threads(tmp_path: Path) -> None:
    program = sampled(built(tmp_path, "lock"), "60")
    assert program.threads == 2
    most = program.functions[0]
    assert (most.function, most.caller, most.threads) == ("rand", "main._omp_fn.0", 2)
    assert 0 < most.main_samples < most.samples


def test_a_program_that_has_been_deleted(tmp_path: Path) -> None:
    path = built(tmp_path, "own")
    script = 'f=$1; "$f" 60 & sleep 0.2; rm "$f"; wait'
    functions = NativeFunctions()
    with running("sh", "-c", script, "sh", path) as shell:
        while path.exists():
            time.sleep(0.05)
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        (pid, *_) = map(int, children.read_text().split())
        deadline_s = time.monotonic() + 60
        while not functions.found() and time.monotonic() < deadline_s:
            time.sleep(_EVERY_S)
            functions.read(ticks(pid))
        os.kill(pid, signal.SIGKILL)
    functions.close()
    (program,) = functions.found()
    assert program.name == program.file == "own"
    names = {name for one in program.functions for name in (one.function, one.caller)}
    assert {"first", "second"} & names


def test_the_compilers_note_of_its_options(tmp_path: Path) -> None:
    for options, is_unoptimised in ((("-g",), True), (("-g", "-O1"), False), (("-O0",), False)):
        assert (
            sampled(built(tmp_path, "own", *options), "60", samples=5).is_unoptimised
            is is_unoptimised
        )


def test_python_is_not_sampled() -> None:
    functions = NativeFunctions()
    with running(sys.executable, "-c", "while True: pass") as process:
        for _ in range(3):
            time.sleep(_EVERY_S)
            functions.read(ticks(process.pid))
        assert functions.found() == ()
        functions.close()


def test_a_shell_becomes_a_program(tmp_path: Path) -> None:
    path = built(tmp_path, "own")
    functions = NativeFunctions()
    script = f"i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exec {path} 60"
    with running("sh", "-c", script) as process:
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            time.sleep(_EVERY_S)
            functions.read(ticks(process.pid))
            found = {one.name: one for one in functions.found()}
            if "own" in found:
                break
    functions.close()
    assert {one.file for one in found["own"].functions} <= {"own", "libm.so.6", "libc.so.6"}


def test_thousands_of_short_processes_leave_no_event() -> None:
    before = len(names_in("/proc/self/fd"))
    functions = NativeFunctions()
    script = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i + 1)); done"
    with running("sh", "-c", script) as process:
        while process.poll() is None:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            try:
                pids = [int(one) for one in children.read_text().split()]
            except OSError:
                pids = []
            functions.read(ticks(process.pid, *pids))
            assert len(names_in("/proc/self/fd")) < before + 20
    functions.read({})
    assert len(names_in("/proc/self/fd")) == before
    functions.close()


def test_the_number_of_events_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_functions, "_MOST_OF_ALL", 1)
    program = sampled(built(tmp_path, "lock"), "60", samples=12)
    assert program.threads == 1


def test_if_the_kernel_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(perf_events, "_system_call", refuse)
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/perf_event_paranoid").write_text("3\n")
    assert why_refused(str(tmp_path)) == (
        "the kernel refuses perf events (`kernel.perf_event_paranoid` is 3)"
    )
    functions = NativeFunctions()
    with running(built(tmp_path, "own"), "60") as process:
        for _ in range(2):
            time.sleep(_EVERY_S)
            functions.read(ticks(process.pid))
    assert functions.refused.startswith("the kernel refuses perf events")
    assert functions.found() == ()
    functions.close()


def test_without_a_program_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = NativeFunctions()
    functions.read({})
    functions.close()
    assert (functions.refused, functions.found()) == ("", ())


_REFUSING = """
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
long syscall(long number, ...) { errno = EACCES; return -1; }
"""


def test_the_report_says_that_the_kernel_refused(tmp_path: Path) -> None:
    source, library = tmp_path / "refuse.c", tmp_path / "refuse.so"
    source.write_text(_REFUSING)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    program = built(tmp_path, "own")
    teho = [sys.executable, "-m", "teho"]
    environment = os.environ | {"TEHO_HOME": str(tmp_path), "LD_PRELOAD": str(library)}
    subprocess.run(
        [*teho, "run", "--every", "200ms", "--", program, "1.5"],
        env=environment, capture_output=True, check=True,
    )  # fmt: skip
    report = subprocess.run(
        [*teho, "report", "--why"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    words = " ".join(report.split())
    assert (
        "It is not known in which functions the programs that are not Python used their CPU "
        "time: the kernel refuses perf events"
    ) in words
    assert "Functions of programs" not in words


def test_the_report_has_the_functions(tmp_path: Path) -> None:
    program = built(tmp_path, "text")
    teho = [sys.executable, "-m", "teho"]
    environment = os.environ | {"TEHO_HOME": str(tmp_path)}
    subprocess.run(
        [*teho, "run", "--every", "200ms", "--", program, "3"],
        env=environment, capture_output=True, check=True,
    )  # fmt: skip
    report = subprocess.run(
        [*teho, "report", "--why"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "Functions of programs that are not Python" in report
    assert "on writing numbers as text" in " ".join(report.split())
    (line,) = [
        one for one in report.splitlines() if "fprintf" in one and "save" in one and "%" not in one
    ][:1]
    assert "text.c:" in line


def _as_alice(path: Path) -> list[str]:
    return [one.name for one in [sampled(path, "60")]]


@root
def test_an_ordinary_user(tmp_path: Path) -> None:
    path = built(tmp_path, "own")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    assert as_user(ALICE, [ALICE], lambda: _as_alice(path)) == ["own"]


def _of_root(pid: int) -> tuple[str, int]:
    functions = NativeFunctions()
    for _ in range(2):
        time.sleep(_EVERY_S)
        functions.read(ticks(pid))
    functions.close()
    return functions.refused, len(functions.found())


@root
def test_a_process_of_another_user_is_left_out(tmp_path: Path) -> None:
    with running(built(tmp_path, "own"), "60") as process:
        assert as_user(ALICE, [ALICE], lambda: _of_root(process.pid)) == ("", 0)
