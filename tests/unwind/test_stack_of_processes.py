"""Processes that fork, end, become another program, or may not be read."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from teho.unwind.memory import UnwindError
from teho.unwind.stack import Unwinder
from unwind.programs import (
    STOP,
    THIS,
    Program,
    await_stack,
    closing,
    each_python,
    sample,
    wait_for,
)


@pytest.mark.parametrize("thread", ["main", "other"])
@each_python
def test_a_forked_child_is_read_by_itself(
    program: Callable[..., Program], python: str, version: tuple[int, int], thread: str
) -> None:
    code = f"""
    import threading
    def stays(): {STOP}
    def goes_on(): tell(os.getpid()); time.sleep(600)
    def fork():
        if os.fork(): return
        goes_on()
    if {thread == "main"}: fork()
    else:
        threading.Thread(target=lambda: time.sleep(600), daemon=True).start()
        forking = threading.Thread(target=fork)
        forking.start()
        forking.join()
    time.sleep(0.3)
    stays()
    """
    running = program(textwrap.dedent(code), python=python)
    printed = [running.line(), running.line()]
    printed.sort(key=len)
    (parent,), (child, pid) = printed
    assert (parent[0][1], child[0][1]) == ("stays", "goes_on")
    for number, wanted in ((running.pid, parent), (pid, child)):
        with closing(Unwinder(number, version)) as unwinder:
            await_stack(unwinder, [tuple(one) for one in wanted])


def is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@each_python
def test_a_process_that_has_ended_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program(STOP, python=python)
    running.line()
    with closing(Unwinder(running.pid, version)) as unwinder:
        unwinder.sample()
        running.process.kill()
        # Its parent has not asked for its exit status yet; then it has.
        assert wait_for(lambda: is_zombie(running.pid), bool)
        for _ in range(2):
            for function in (unwinder.sample, unwinder.innermost):
                with pytest.raises(UnwindError):
                    function()
            with pytest.raises(UnwindError):
                Unwinder(running.pid, version)
            running.process.wait()


@pytest.mark.parametrize("other", ["this Python", "sleep"])
@each_python
def test_a_process_that_became_another_program_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int], other: str
) -> None:
    code = f"""
    def before(): tell(); sys.stdin.readline()
    def after(): {STOP}
    if len(sys.argv) > 1: after()
    before()
    if {other == "sleep"}:
        os.execv("/bin/sleep", ["sleep", "600"])
    os.execv(sys.executable, [sys.executable, __file__, "again"])
    """
    running = program(textwrap.dedent(code), python=python)
    wanted = running.stack()
    with closing(Unwinder(running.pid, version)) as unwinder:
        await_stack(unwinder, wanted)
        running.send()
        if other == "sleep":
            name = Path(f"/proc/{running.pid}/comm")
            assert wait_for(name.read_text, lambda text: text == "sleep\n") == "sleep\n"
            with pytest.raises(UnwindError, match="_PyRuntime"):
                Unwinder(running.pid, version)
        else:
            wanted = running.stack()
            assert wanted[0][1] == "after"
            with closing(Unwinder(running.pid, version)) as again:
                await_stack(again, wanted)
        with pytest.raises(UnwindError):
            unwinder.sample()


@each_python
def test_a_process_that_does_not_exist_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program("", python=python)
    running.process.wait()
    with pytest.raises(UnwindError, match="cannot be read: No such file"):
        Unwinder(running.pid, version)


@each_python
def test_a_python_of_an_unknown_version_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program(STOP, python=python)
    running.line()
    with pytest.raises(UnwindError, match=r"3\.7"):
        Unwinder(running.pid, (3, 7))


@each_python
def test_a_python_that_is_of_another_version_raises_no_other_error(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    """The version comes from the program: it may be wrong."""
    running = program(STOP, python=python)
    files = {file for file, _, _ in running.stack()}
    for minor in range(8, 15):
        if minor == version[1]:
            continue
        try:
            unwinder = Unwinder(running.pid, (3, minor))
        except UnwindError as error:
            found = str(error)
        else:
            with closing(unwinder):
                found = sample(unwinder)
        assert found, "it is an error's text, or a stack"
        if not isinstance(found, str):
            # The layouts of two versions may be alike: then the stack is the true one.
            assert {file for file, _, _ in found} <= files


# Reads another process as a user without rights.
READ = """
import os, sys
from teho.unwind.memory import Memory, UnwindError
from teho.unwind.stack import Unwinder
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
pid = int(sys.argv[1])
try:
    Memory(pid).close()
    print("allowed")
except UnwindError as error:
    print(error)
try:
    Unwinder(pid, sys.version_info[:2])
except UnwindError as error:
    print(error)
"""


@pytest.mark.parametrize("readable", [False, True], ids=["unreadable", "readable"])
def test_a_process_that_may_not_be_read_is_refused(
    program: Callable[..., Program], readable: bool
) -> None:
    code = f"""
    import ctypes
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
    except OSError:
        say("this machine does not let root become another user")
    else:
        PR_SET_DUMPABLE = 4
        failed = ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, {int(readable)}, 0, 0, 0)
        say("prctl failed" if failed else "")
    time.sleep(600)
    """
    running = program(textwrap.dedent(code))
    if reason := running.line()[0]:
        pytest.skip(reason)
    if os.geteuid() != 0:
        if readable:
            pytest.skip("the other tests read processes of this user")
        with pytest.raises(
            UnwindError, match="the process's memory cannot be read: Permission denied"
        ):
            Unwinder(running.pid, THIS)
        return
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if readable and scope.exists() and scope.read_text().strip() != "0":
        pytest.skip("this machine lets a user read only processes that the reader started")
    printed = subprocess.check_output([sys.executable, "-c", READ, str(running.pid)], text=True)
    refused = "the process's memory cannot be read: Permission denied"
    assert printed.splitlines()[0] == ("allowed" if readable else refused)
    assert readable or printed.splitlines()[1] == refused


# ---- a busy program ----
