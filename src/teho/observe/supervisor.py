"""Runs the user's program as if Teho were not there, with a recorder beside it.

Three processes: this supervisor, the program (its child), and the recorder (another
child). All three share one process group, so the terminal, the shell's job control
and the scheduler treat them as the one program that the user started. The
supervisor does nothing but wait, pass on what reached it alone, and end as the
program ended. Only the standard library is loaded before the program runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from teho.observe.program import Outcome
from teho.process.child import detach_streams, fork_child
from teho.process.exec_program import CannotStart, exec_program, restore_signals
from teho.process.json_lines import LineReader, send

if TYPE_CHECKING:
    from teho.observe.remote_recorders import RemoteRecorders
    from teho.observe.stdout_capture import StdoutCapture

__all__ = ["RECORDER_CORES", "Supervisor"]

RECORDER_CORES = "TEHO_RECORDER_CORES"
"""Variable with the logical CPUs, such as `0,3`, that supervisor and recorder move to once the
program runs. `teho compare` sets it: they would slow a program that has one core."""

_PR_SET_CHILD_SUBREAPER = 36
# si_code of a signal that the kernel or a terminal sent (Linux, asm-generic/siginfo.h).
_SI_KERNEL = 0x80
# What a terminal sends to its whole foreground group. SIGHUP is none: on a hangup the kernel
# tells the session's leader alone; and a SIGALRM of the kernel's is this process's own timer.
_FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH})

# Everything that can be caught and that another process may send; not the ones that a
# process causes itself, and not SIGTTIN and SIGTTOU, by which the kernel stops
# whoever touches the terminal from the background.
_PASSED_ON = frozenset(signal.valid_signals()) - {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE,
    signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE, signal.SIGTTIN,
    signal.SIGTTOU, signal.SIGPROF, signal.SIGVTALRM, signal.SIGURG,
}  # fmt: skip

# A signal to the whole group reaches supervisor and recorder within the same instant;
# the recorder's word of it takes a moment, longer where one core is shared by all.
_WITNESS_WAIT_S = 0.05
_WITNESS_VALID_S = 0.25

# Sealing takes seconds at most, and what is not sealed reads as well; a driver that hangs
# must not hold the prompt.
_SEAL_WAIT_S = 10.0
_TEND_S = 0.5
_FAILURE_BYTES = 4096
_SHARED_WAIT_S = 0.01
"""How often to look whether a recorder that serves others too has let us go."""


class Supervisor:
    """One run of a program."""

    def __init__(self) -> None:
        """Hold back signals from now on; they are handled in `wait`."""
        self._inherited_mask = signal.pthread_sigmask(
            signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD}
        )
        self._inherited_chld = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.program_pid = 0
        """The program's own process."""
        self._recorder = 0
        self._recorder_status: int | None = None
        self._to_recorder: int | None = None
        self._from_recorder: LineReader | None = None
        self._witnessed: dict[int, float] = {}
        self._owed: dict[int, int] = {}
        self._troubles: list[tuple[float, str]] = []
        self._status: int | None = None
        self._usage: resource.struct_rusage | None = None
        self.started_s = 0.0
        """Monotonic time of the program's start."""
        self.program_cores: tuple[int, ...] = ()
        """Logical CPUs that were the program's, if this process has left them."""
        self._ended_s = 0.0
        self._is_shared = False
        self._released = False
        self._passed_on: StdoutCapture | None = None

    def keep_output(self) -> None:
        """Before `start`: keep the beginning of what the program prints, and pass it on.

        Raises:
            OSError: it cannot be kept; the program then prints as without us.
        """
        from teho.observe.stdout_capture import StdoutCapture

        self._passed_on = StdoutCapture()

    @property
    def own_pids(self) -> tuple[int, ...]:
        """Processes of ours beside the program, but for the recorder."""
        return (self._passed_on.pid,) if self._passed_on else ()

    def kept_output(self) -> bytes | None:
        """After `wait`: return what `keep_output` kept; None if nothing was to be kept."""
        if self._passed_on is None:
            return None
        printed = self._passed_on.kept(self._reap)
        if why := self._passed_on.error:
            self.trouble(f"what it prints could not be written, and its pipe was closed: {why}")
        return printed

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the program and return its pid.

        Raises:
            CannotStart: there is no such command, or it does not execute.
        """
        # Orphans of the program come back to us, so that they are still counted.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        environment = dict(environment)
        recorder_cores = environment.pop(RECORDER_CORES, "")
        failure_read, failure_write = os.pipe()
        self.started_s = time.monotonic()
        self.program_pid = os.fork()
        if self.program_pid == 0:
            self._become(command, environment, failure_write)
        if recorder_cores:
            self._move_to(recorder_cores)
        os.close(failure_write)
        if self._passed_on:
            self._passed_on.let_go()
        failure = os.read(failure_read, _FAILURE_BYTES)
        os.close(failure_read)
        if failure:
            _, ended = os.waitpid(self.program_pid, 0)
            raise CannotStart(os.waitstatus_to_exitcode(ended), os.fsdecode(failure))
        return self.program_pid

    def _move_to(self, cores: str) -> None:
        own = tuple(sorted(os.sched_getaffinity(0)))
        try:
            os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
        except (OSError, ValueError) as error:
            self.trouble(f"the recorder stays on the program's cores: {error}")
        else:
            self.program_cores = own

    def _become(self, command: Sequence[str], environment: Mapping[str, str], failure: int) -> None:
        """In the child: undo what we did to signals, and become the program."""
        exit_code = 127
        try:
            if self._passed_on:
                self._passed_on.become_output()
            restore_signals()
            signal.signal(signal.SIGCHLD, self._inherited_chld or signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._inherited_mask)
            exec_program(command, environment)
        except CannotStart as error:
            exit_code = error.exit_code
            os.write(failure, os.fsencode(str(error))[:_FAILURE_BYTES])
        finally:
            os._exit(exit_code)

    def start_recorder(
        self,
        record: Callable[[int, int, int], None],
        keep: Sequence[int] = (),
        *,
        shared: bool = False,
    ) -> None:
        """Fork the recorder, in which `record(read_end, write_end, program_pid)` runs.

        It bears witness of signals from its first moment, and records once it has a plan.

        Args:
            record: what it does.
            keep: descriptors that it needs; all others are closed in it.
            shared: it is, or speaks to, the recorder of all tasks of this node, which no one
                task may end.
        """
        self._is_shared = shared
        pipes: list[int] = []
        try:
            for _ in range(2):
                pipes += os.pipe()
            self._recorder = fork_child(partial(self._record, record, pipes, keep))
        except OSError as error:
            self.trouble(f"no recorder could be started: {error.strerror}")
            for descriptor in pipes:
                os.close(descriptor)
            return
        to_read, to_write, from_read, from_write = pipes
        os.close(to_read)
        os.close(from_write)
        self._to_recorder = to_write
        self._from_recorder = LineReader(from_read)

    def _record(
        self, record: Callable[[int, int, int], None], pipes: Sequence[int], keep: Sequence[int]
    ) -> None:
        """In the recorder's process: let go of everything else, and record."""
        to_read, to_write, from_read, from_write = pipes
        try:
            os.close(to_write)
            os.close(from_read)
            detach_streams(keep=(to_read, from_write, *keep))
            _witness_signals(from_write)
            record(to_read, from_write, self.program_pid)
        except BaseException as error:
            send(from_write, trouble=f"the recorder failed: {type(error).__name__}: {error}")
            raise

    def send_plan(self, plan: Mapping[str, object]) -> None:
        """Tell the recorder what to do."""
        if self._to_recorder is not None:
            send(self._to_recorder, plan=plan)

    def trouble(self, sentence: str) -> None:
        """Keep a sentence for the report."""
        elapsed_s = time.monotonic() - self.started_s if self.started_s else 0.0
        self._troubles.append((elapsed_s, sentence))

    def wait(self, remote: RemoteRecorders | None = None) -> Outcome:
        """Wait for the program's end, passing on every signal that came to us alone.

        Args:
            remote: the recorders of the job's other nodes, looked after while they come up.
        """
        expected = _PASSED_ON | {signal.SIGCHLD}
        while self._status is None:
            if remote and remote.tend():
                info = signal.sigtimedwait(expected, _TEND_S)
            else:
                info = signal.sigwaitinfo(expected)
            if info is None:
                continue
            if info.si_signo == signal.SIGCHLD:
                self._reap()
            elif (
                info.si_code == _SI_KERNEL and info.si_signo in _FROM_TERMINAL
            ) or self._went_to_all(info.si_signo):
                # The program has it already: the terminal or a kill of the whole group.
                self._witnessed.pop(info.si_signo, None)
            else:
                self._signal_program(info.si_signo)
        usage = self._usage
        code = os.waitstatus_to_exitcode(self._status)
        return Outcome(
            elapsed_s=self._ended_s - self.started_s,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cpu_s=usage.ru_utime + usage.ru_stime if usage else 0.0,
            peak_process_bytes=usage.ru_maxrss * 1024 if usage else 0,
            troubles=self._troubles,
        )

    def finish_recording(
        self, on_wait: Callable[[], None], remote: RemoteRecorders | None = None
    ) -> None:
        """Let the recorders take their last sample and seal; `on_wait` is called every 0.1 s.

        A second Ctrl-C, or any deadly signal, ends the waiting; but a job that is cancelled hears
        of it more than once, and what its tasks or its nodes share is finished first.
        A recorder that goes on for other tasks of this node lets us go.

        Args:
            on_wait: called while there is nothing else to do.
            remote: the recorders of the job's other nodes.
        """
        elapsed_s = self._ended_s - self.started_s
        if self._to_recorder is not None:
            send(self._to_recorder, end=elapsed_s)
            os.close(self._to_recorder)
        if remote:
            remote.end(elapsed_s)
        enough = {signal.SIGTERM, signal.SIGHUP} if not (self._is_shared or remote) else set()
        enough |= {signal.SIGINT} if not self._is_shared else set()
        deadline = time.monotonic() + _SEAL_WAIT_S
        while time.monotonic() < deadline:
            self._hear()
            if self._is_let_go and (remote is None or remote.is_over):
                return
            info = signal.sigtimedwait(
                {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP},
                _SHARED_WAIT_S if self._is_shared else 0.1,
            )
            if info is None:
                on_wait()
            self._reap()
            if info is not None and info.si_signo in enough:
                break
        if remote:
            remote.give_up()
        if not self._is_let_go and not self._is_shared:
            os.kill(self._recorder, signal.SIGKILL)
            self.trouble("the recorder did not finish in time and was ended")
        self._hear()

    @property
    def _is_let_go(self) -> bool:
        """Whether the recorder has ended, or goes on without us."""
        return not self._recorder or self._recorder_status is not None or self._released

    def _went_to_all(self, number: int) -> bool:
        """Return whether the recorder got this signal too, which means that the program did."""
        if self._from_recorder is None or self._recorder_status is not None:
            return False
        deadline = time.monotonic() + _WITNESS_WAIT_S
        while True:
            if self._is_pending_in_recorder(number):
                # On a busy machine it has not come to say so; its word follows, and is owed.
                self._owed[number] = self._owed.get(number, 0) + 1
                return True
            self._hear()
            heard = self._witnessed.pop(number, None)
            now = time.monotonic()
            if heard is not None and now - heard < _WITNESS_VALID_S:
                return True
            if now >= deadline or self._from_recorder.closed:
                return False
            self._from_recorder.wait(deadline - now)

    def _is_pending_in_recorder(self, number: int) -> bool:
        """Return whether a signal waits for the recorder, which blocks and collects them all."""
        try:
            with open(f"/proc/{self._recorder}/status", "rb") as file:  # noqa: PTH123 - loads late
                pending = next(line for line in file if line.startswith(b"ShdPnd:"))
        except (OSError, StopIteration):
            return False
        return bool(int(pending.split()[1], 16) >> (number - 1) & 1)

    def _hear(self) -> None:
        if self._from_recorder is None:
            return
        for message in self._from_recorder.messages():
            if "signal" in message:
                number = message["signal"]
                if self._owed.get(number):
                    self._owed[number] -= 1
                else:
                    self._witnessed[number] = time.monotonic()
            elif "released" in message:
                self._released = True
            elif "trouble" in message:
                elapsed = message.get("elapsed_s", time.monotonic() - self.started_s)
                self._troubles.append((elapsed, message["trouble"]))

    def _signal_program(self, number: int) -> None:
        # It may be gone, or have become another user (sudo): as without us, the signal is lost.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.program_pid, number)

    def _reap(self) -> None:
        """Collect every child that changed: the program, the recorder, adopted orphans."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.program_pid:
                if not os.WIFSTOPPED(status):
                    self._status, self._usage = status, usage
                    self._ended_s = time.monotonic()
                elif _has_terminal():
                    # Stop as well, so that the shell sees its job as stopped. SIGCONT to
                    # the job then wakes both. Without job control nobody would send us one.
                    os.kill(os.getpid(), signal.SIGSTOP)
            elif pid == self._recorder and not os.WIFSTOPPED(status):
                self._recorder_status = status
                if os.WIFSIGNALED(status):
                    name = signal.Signals(os.WTERMSIG(status)).name
                    self.trouble(f"the recorder was ended by {name}; rows after that are missing")
            elif self._passed_on and pid == self._passed_on.pid:
                self._passed_on.has_ended = not os.WIFSTOPPED(status)


def _witness_signals(back: int) -> None:
    """In the recorder: tell the supervisor of each signal that comes, without dying of it."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, []) - {signal.SIGCHLD}

    def listen() -> None:
        while True:
            send(back, signal=signal.sigwaitinfo(blocked).si_signo)

    threading.Thread(target=listen, name="witness", daemon=True).start()


def _has_terminal() -> bool:
    """Return whether there is a controlling terminal, and with it a shell that watches its jobs."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
