"""What a main thread waits for is read from the kernel."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from teho.model.stack import State
from teho.unwind.memory import Memory, UnwindError
from teho.unwind.waits import Waits, _row
from unwind.programs import LIMIT_S, Program, closing, wait_for


def test_the_row_of_a_socket_is_found_by_its_column(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    rows = ["sl local rem inode", "0: 4711 0100007F:1F90 99", "1: 5 0200000A:0050 4711"]
    table.write_text("".join(f"{row}\n" for row in rows))
    assert _row(str(table), 3, "4711") == ["1:", "5", "0200000A:0050", "4711"]
    assert _row(str(table), 3, "471") == []
    assert _row(str(tmp_path / "udp"), 3, "4711") == []


SLEEPING_THREAD = """
import threading
thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)
thread.start()
"""
COMPUTING_THREAD = """
import hashlib, threading
def compute():
    data = bytes(1 << 24)
    while True: hashlib.sha256(data)
thread = threading.Thread(target=compute, daemon=True)
thread.start()
"""
LOOPBACK = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listening.getsockname())
server = listening.accept()[0]
"""
WAITING = {
    "sleep": ("time.sleep(600)", State.SLEEPING),
    "asyncio.sleep": ("import asyncio; asyncio.run(asyncio.sleep(600))", State.SLEEPING),
    "select without descriptors": (
        "import select; select.select([], [], [], 600)",
        State.SLEEPING,
    ),
    "poll without descriptors": ("import select; select.poll().poll(600_000)", State.SLEEPING),
    "a pipe": ("os.read(os.pipe()[0], 1)", State.PROCESS),
    "a full pipe": ("os.write(os.pipe()[1], bytes(1 << 24))", State.PROCESS),
    "its standard input": ("sys.stdin.readline()", State.PROCESS),
    "select of a pipe": ("import select; select.select([0], [], [], 600)", State.PROCESS),
    "poll of a pipe": (
        "import select; p = select.poll(); p.register(0, 1); p.poll(600_000)",
        State.PROCESS,
    ),
    "recv": (LOOPBACK + "client.recv(1)", State.PROCESS),
    "recv with a time limit": (
        LOOPBACK + "client.settimeout(600); client.recv(1)",
        State.PROCESS,
    ),
    "recv of IPv6": (
        """
import socket
listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
client = socket.create_connection(listening.getsockname()[:2])
server = listening.accept()[0]
client.recv(1)
""",
        State.PROCESS,
    ),
    "a socket of this machine": (
        "import socket; pair = socket.socketpair(); pair[0].recv(1)",
        State.PROCESS,
    ),
    "epoll of a socket": (
        LOOPBACK + "import select; e = select.epoll(); e.register(client, 1); e.poll(600)",
        State.PROCESS,
    ),
    "asyncio with a socket": (
        LOOPBACK
        + """
import asyncio
client.setblocking(False)
async def main(): await asyncio.get_running_loop().sock_recv(client, 1)
asyncio.run(main())
""",
        State.PROCESS,
    ),
    "asyncio with an idle thread": (
        """
import asyncio
async def main(): await asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
asyncio.run(main())
""",
        State.LOCK,
    ),
    "subprocess.wait": (
        "import subprocess; subprocess.Popen(['sleep', '600']).wait()",
        State.PROCESS,
    ),
    "subprocess.run with output": (
        "import subprocess; subprocess.run(['sleep', '600'], capture_output=True)",
        State.PROCESS,
    ),
    "os.wait": ("os.fork() or time.sleep(600); os.wait()", State.PROCESS),
    "a shared lock": (
        "import multiprocessing; lock = multiprocessing.Lock(); lock.acquire(); lock.acquire()",
        State.PROCESS,
    ),
    "a lock": (
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        State.LOCK,
    ),
    "a lock with a time limit": (
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire(timeout=600)",
        State.LOCK,
    ),
    "a condition": ("import threading; threading.Event().wait()", State.LOCK),
    "a queue": ("import queue; queue.Queue().get()", State.LOCK),
    "an idle thread": (SLEEPING_THREAD + "thread.join()", State.LOCK),
    "a computing thread": (COMPUTING_THREAD + "thread.join()", State.THREADS),
    "a signal": ("import signal; signal.pause()", State.PROCESS),
}


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("name", WAITING)
def test_what_is_waited_for(program: Callable[..., Program], name: str) -> None:
    code, wanted = WAITING[name]
    if "IPv6" in name and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    running = program("say('')\n" + code)
    running.line()

    def sample() -> State | str:
        call = waits.call()
        return waits.state(call) if call else "running"

    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:
        # Ten looks in a row: on its way there the program may wait for other things.
        found = wait_for(
            lambda: [sample() for _ in range(10)], lambda states: set(states) == {wanted}
        )
        assert found == [wanted] * 10
        assert waits.core() in os.sched_getaffinity(running.pid)


def test_a_computing_program_runs(program: Callable[..., Program]) -> None:
    running = program("say('')\nwhile True: pass")
    running.line()
    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:
        found = wait_for(
            lambda: [waits.call() for _ in range(10)], lambda calls: set(calls) == {b""}
        )
        assert found == [b""] * 10
        core = wait_for(waits.core, lambda core: core is not None)
        assert core is not None
        assert core >= 0
        before = waits.times()
        if before is None:
            pytest.skip("the kernel of this machine does not count the time for which threads run")
        after = wait_for(waits.times, lambda times: times is None or times[0] > before[0])
        assert after is not None
        assert after[0] > before[0] > 0
        assert after[1] >= before[1] >= 0


def test_a_program_that_continues_is_recognised(program: Callable[..., Program]) -> None:
    code = """
    say("")
    sys.stdin.readline()
    say("")
    time.sleep(600)
    """
    running = program(textwrap.dedent(code))
    running.line()
    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:

        def state() -> State | None:
            call = waits.call()
            return waits.state(call) if call else None

        assert wait_for(state, lambda found: found is State.PROCESS) is State.PROCESS
        running.send()
        running.line()
        assert wait_for(state, lambda found: found is State.SLEEPING) is State.SLEEPING


def test_a_process_that_has_ended_is_refused(program: Callable[..., Program]) -> None:
    running = program("say('')\ntime.sleep(600)")
    running.line()
    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:
        call = wait_for(waits.call, bool)
        assert waits.state(call) is State.SLEEPING
        running.process.kill()
        running.process.wait()
        for function in (waits.call, waits.core):
            with pytest.raises(UnwindError, match="the process has ended"):
                function()
        assert waits.times() is None
        # What was read before can still be asked about.
        assert isinstance(waits.state(call), State)
    with pytest.raises(UnwindError, match="system calls cannot be read"):
        Waits(running.pid, memory)


@pytest.mark.parametrize(
    "code",
    [
        "os.read(os.pipe()[0], 1)",
        "import select; select.select([0], [], [], 600)",
        "import select; p = select.poll(); p.register(0, 1); p.poll(600_000)",
        "import select; e = select.epoll(); e.register(0, 1); e.poll(600)",
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "import multiprocessing; lock = multiprocessing.Lock(); lock.acquire(); lock.acquire()",
    ],
)
def test_a_process_may_end_between_two_reads(program: Callable[..., Program], code: str) -> None:
    running = program("say('')\n" + code)
    running.line()
    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:
        call = wait_for(waits.call, bool)
        running.process.kill()
        running.process.wait()
        assert isinstance(waits.state(call), State)


def test_a_process_whose_exit_status_was_not_read_yet_is_refused(
    program: Callable[..., Program],
) -> None:
    running = program("say('')\nsys.stdin.readline()")
    running.line()
    with closing(Memory(running.pid)) as memory:
        running.send()
        until = time.monotonic() + LIMIT_S
        call = b""
        while time.monotonic() < until:
            try:
                waits = Waits(running.pid, memory)
            except UnwindError:
                return
            with closing(waits):
                try:
                    call = waits.call()
                except UnwindError:
                    return
                if call:
                    assert isinstance(waits.state(call), State)
            time.sleep(0.005)
    raise AssertionError(f"a process that has ended is still read: {call.decode()!r}")


def test_the_kernels_account_changes_only_if_the_thread_ran(
    program: Callable[..., Program],
) -> None:
    running = program("say(); time.sleep(0.5); end = time.thread_time() + 0.05\n"
                      "while time.thread_time() < end: pass\nsay(); time.sleep(600)")  # fmt: skip
    running.line()
    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:
        assert wait_for(waits.call, bool)
        before = waits.account()
        assert len(before.split()) == 3
        time.sleep(0.1)
        assert waits.account() == before
        running.line()
        assert wait_for(waits.call, bool)
        ran_ns, _, times = map(int, waits.account().split())
        assert ran_ns >= int(before.split()[0]) + 20_000_000
        assert times > int(before.split()[2])


def test_it_reports_whether_the_thread_waits(
    program: Callable[..., Program],
) -> None:
    running = program(
        "say(); time.sleep(1); say(); end = time.monotonic() + 2\n"
        "while time.monotonic() < end: pass\ntime.sleep(600)"
    )
    running.line()
    with closing(Memory(running.pid)) as memory, closing(Waits(running.pid, memory)) as waits:
        if waits.sleeps() is None and wait_for(waits.call, bool) and waits.sleeps() is None:
            pytest.skip("this kernel does not name the place where a thread waits (wchan)")
        assert wait_for(waits.sleeps, lambda sleeps: sleeps is True)
        running.line()
        assert wait_for(waits.sleeps, lambda sleeps: sleeps is False) is False
        assert wait_for(waits.sleeps, lambda sleeps: sleeps is True)


class StandIn:
    """A thread whose files in /proc are made: no file system here stops to answer."""

    def __init__(self, folder: Path, state: str, call: str) -> None:
        self.waits = Waits(os.getpid(), Memory(os.getpid()))
        for name, text in (("_stat", f"7 (a) b) {state} 1 2"), ("_call", call)):
            path = folder / name
            path.write_text(text)
            setattr(self.waits, name, os.open(path, os.O_RDONLY))

    def blocked_on(self) -> str | None:
        return self.waits.blocked_on()


_OPENAT, _READ, _WAIT, _VFORK = (
    ("56", "63", "260", "220") if platform.machine() == "aarch64" else ("257", "0", "61", "58")
)


def test_a_file_system_that_does_not_answer_is_named_with_its_path(tmp_path: Path) -> None:
    path = ctypes.create_string_buffer(b"/scratch/shard_011.npy")
    opens = f"{_OPENAT} 0xffffff9c {ctypes.addressof(path):#x} 0x80000 0x0 0x0 0x0 0x7f 0x7f"
    assert StandIn(tmp_path, "D", opens).blocked_on() == "/scratch/shard_011.npy"
    assert StandIn(tmp_path, "S", opens).blocked_on() is None  # a FIFO: a signal can interrupt it


def test_a_read_that_does_not_end_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "part-00013.bin"
    file.write_bytes(b"x")
    with file.open("rb") as opened, Path(os.devnull).open("rb") as device:
        reads = f"{_READ} {opened.fileno():#x} 0x7f 0x10 0x0 0x0 0x0 0x7f 0x7f"
        assert StandIn(tmp_path, "D", reads).blocked_on() == str(file)
        of_device = reads.replace(f"{opened.fileno():#x}", f"{device.fileno():#x}", 1)
        assert StandIn(tmp_path, "D", of_device).blocked_on() is None


def test_a_page_of_a_file_that_does_not_come_has_no_path(tmp_path: Path) -> None:
    assert StandIn(tmp_path, "D", "-1 0x7f 0x7f").blocked_on() == ""


@pytest.mark.parametrize("number", [_WAIT, _VFORK])
def test_another_wait_that_no_signal_interrupts_is_no_file_system(
    tmp_path: Path, number: str
) -> None:
    call = f"{number} 0x0 0x0 0x0 0x0 0x0 0x0 0x7f 0x7f"
    assert StandIn(tmp_path, "D", call).blocked_on() is None


def test_a_thread_that_runs_is_not_blocked(tmp_path: Path) -> None:
    assert StandIn(tmp_path, "D", "running").blocked_on() is None
