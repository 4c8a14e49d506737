"""Runs the user's program unchanged, and a recorder next to it.

There are three processes: this supervisor and its two children, the program and the recorder. All
of them are in one process group. So the terminal, the shell's job control and the scheduler treat
them as one program. The supervisor waits, passes on signals that only it received, and ends as
the program ended. Before the program starts, only the standard library is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from teho.observe.end_signals import ends_waiting
from teho.observe.program import Outcome
from teho.observe.recorder_signals import is_busy, is_pending, report_signals
from teho.process.child import detach_streams, fork_child, has_terminal
from teho.process.exec_program import CannotStart, exec_program, restore_signals
from teho.process.json_lines import LineReader, send

if TYPE_CHECKING:
    from teho.observe.remote_recorders import RemoteRecorders
    from teho.observe.stdout_capture import StdoutCapture

__all__ = ["RECORDER_CORES", "Supervisor"]

RECORDER_CORES = "TEHO_RECORDER_CORES"
"""Variable with the logical CPUs, such as `0,3`, to which supervisor and recorder move when the
program runs. `teho compare` sets it, because they would slow a program that has one core."""

_PR_SET_CHILD_SUBREAPER = 36
# si_code of a signal that the kernel or a terminal sent (Linux, asm-generic/siginfo.h).
_SI_KERNEL = 0x80
# Signals that a terminal sends to its whole foreground group. After a hangup, the kernel sends
# SIGHUP only to the session's leader. A SIGALRM of the kernel is from this process's timer.
_FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH})

# All signals that can be caught and that another process may send. Signals that a process causes
# itself are left out. So are SIGTTIN and SIGTTOU: with them, the kernel stops a background process
# that uses the terminal.
_PASSED_ON = frozenset(signal.valid_signals()) - {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE,
    signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE, signal.SIGTTIN,
    signal.SIGTTOU, signal.SIGPROF, signal.SIGVTALRM, signal.SIGURG,
}  # fmt: skip

# A signal to the whole group reaches supervisor and recorder at the same time. The recorder's
# message about it takes a moment, and longer if the recorder has to wait for a core.
_REPORT_WAIT_S, _BUSY_WAIT_S = 0.05, 0.5
_REPORT_VALID_S = 0.25

_LAST_SAMPLE_WAIT_S, _SEAL_WAIT_S = 10.0, 60.0
"""How long to wait for the recorder's last sample, and then for its sealing. If a driver hangs, the
user should not have to wait. Sealing needs no driver: on a busy node, it waits for cores and disk.
Rows that are not sealed can be read too."""
_SUPERVISE_S = 0.5
_FAILURE_BYTES = 4096
_WAIT_S, _SHARED_WAIT_S = 0.1, 0.01
"""Time between two checks whether the recorder has finished; and if it serves other tasks too."""


class Supervisor:
    """One run of a program."""

    def __init__(self) -> None:
        """Block signals from now on. `wait` handles them."""
        self._inherited_mask = signal.pthread_sigmask(
            signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD}
        )
        self._inherited_chld = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.program_pid = 0
        """The program's process."""
        self._recorder = 0
        self._recorder_status: int | None = None
        self._to_recorder: int | None = None
        self._from_recorder: LineReader | None = None
        self._reported: dict[int, float] = {}
        """Signal -> when the recorder reported it."""
        self._expected: dict[int, int] = {}
        """Signal -> number of reports that are still to come."""
        self._troubles: list[tuple[float, str]] = []
        self._status: int | None = None
        self._usage: resource.struct_rusage | None = None
        self.started_s = 0.0
        """Monotonic time of the program's start."""
        self.program_cores: tuple[int, ...] = ()
        """The program's logical CPUs, if this process has moved to others."""
        self.others: tuple[int, ...] = ()
        """Children that began before the recorder, and do not belong to the program."""
        self._ended_s = 0.0
        self._is_shared = False
        self._released = False
        self._seals = False
        self._capture: StdoutCapture | None = None

    def keep_output(self) -> None:
        """Keep the first part of the program's output, and pass it on. Call this before `start`.

        Raises:
            OSError: it cannot be kept; the program then prints as usual.
        """
        from teho.observe.stdout_capture import StdoutCapture

        self._capture = StdoutCapture()

    @property
    def own_pids(self) -> tuple[int, ...]:
        """Children of the supervisor, without the program and the recorder."""
        return (*((self._capture.pid,) if self._capture else ()), *self.others)

    def kept_output(self) -> bytes | None:
        """Return the output that `keep_output` kept, after `wait`; None without `keep_output`."""
        if self._capture is None:
            return None
        printed = self._capture.kept(self._reap)
        if why := self._capture.error:
            self.trouble(
                f"the program's output could not be written, and its pipe was closed: {why}"
            )
        return printed

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the program and return its pid.

        Raises:
            CannotStart: the command does not exist, or cannot be executed.
        """
        # Orphans of the program become children of this process, so that they still count.
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
        if self._capture:
            self._capture.close_write_end()
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
        """In the child: restore the signals, and execute the program."""
        exit_code = 127
        try:
            if self._capture:
                self._capture.become_output()
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

        It reports signals from its start, and records when it gets a plan.

        Args:
            record: called in the recorder.
            keep: descriptors that it needs; all others are closed in it.
            shared: whether it is, or is connected to, the recorder of all tasks of this node. No
                single task may end that recorder.
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
        """In the recorder's process: close everything else, and record."""
        to_read, to_write, from_read, from_write = pipes
        try:
            os.close(to_write)
            os.close(from_read)
            detach_streams(keep=(to_read, from_write, *keep))
            report_signals(from_write)
            record(to_read, from_write, self.program_pid)
        except BaseException as error:
            send(from_write, trouble=f"the recorder failed: {type(error).__name__}: {error}")
            raise

    def send_plan(self, plan: Mapping[str, object]) -> None:
        """Send the plan to the recorder."""
        if self._to_recorder is not None:
            send(self._to_recorder, plan=plan)

    def trouble(self, sentence: str) -> None:
        """Add a sentence to the report."""
        elapsed_s = time.monotonic() - self.started_s if self.started_s else 0.0
        self._troubles.append((elapsed_s, sentence))

    def wait(self, remote: RemoteRecorders | None = None) -> Outcome:
        """Wait for the program's end, and pass on each signal that only this process received.

        Args:
            remote: the recorders of the job's other nodes, supervised until they have started.
        """
        handled = _PASSED_ON | {signal.SIGCHLD}
        while self._status is None:
            if remote and remote.supervise():
                info = signal.sigtimedwait(handled, _SUPERVISE_S)
            else:
                info = signal.sigwaitinfo(handled)
            if info is None:
                continue
            if info.si_signo == signal.SIGCHLD:
                self._reap()
            elif (
                info.si_code == _SI_KERNEL and info.si_signo in _FROM_TERMINAL
            ) or self._reached_group(info.si_signo):
                # The program has it too: the terminal or another process sent it to the group.
                self._reported.pop(info.si_signo, None)
            else:
                # The program may have ended, or run as another user (sudo): the signal is lost.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.program_pid, info.si_signo)
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
        self,
        on_wait: Callable[[], None],
        remote: RemoteRecorders | None = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """Let the recorders take their last sample and seal; `on_wait` is called every 0.1 s.

        A second Ctrl-C, SIGTERM or SIGHUP ends the waiting, but not always: see `ends_waiting`. A
        recorder that continues for other tasks of this node releases this one.

        Args:
            on_wait: called again and again while the recorders seal.
            remote: the recorders of the job's other nodes.
            meanwhile: called once while the recorders seal; signals wait until it returns.
        """
        elapsed_s = self._ended_s - self.started_s
        if self._to_recorder is not None:
            send(self._to_recorder, end=elapsed_s)
            os.close(self._to_recorder)
        if remote:
            remote.end(elapsed_s)
        meanwhile()
        began_s = time.monotonic()
        while time.monotonic() < began_s + _LAST_SAMPLE_WAIT_S + self._seals * _SEAL_WAIT_S:
            self._read_messages()
            if self._is_released and (remote is None or remote.is_over):
                return
            info = signal.sigtimedwait(
                {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP},
                _SHARED_WAIT_S if self._is_shared else _WAIT_S,
            )
            if info is None:
                on_wait()
            self._reap()
            waited_s = time.monotonic() - began_s
            if info is not None and ends_waiting(
                info.si_signo, waited_s, is_shared=self._is_shared, has_others=remote is not None
            ):
                break
        if remote:
            remote.terminate()
        if not self._is_released and not self._is_shared:
            self.kill_recorder()
            self.trouble("the recorder did not finish in time and was killed")
        self._read_messages()

    def kill_recorder(self) -> None:
        """End the recorder at once: it need not finish if the program has not begun."""
        if self._recorder:
            os.kill(self._recorder, signal.SIGKILL)

    @property
    def _is_released(self) -> bool:
        """Whether the recorder has ended, or continues for other tasks."""
        return not self._recorder or self._recorder_status is not None or self._released

    def _reached_group(self, number: int) -> bool:
        """Return whether the recorder got this signal too. Then the program got it as well."""
        if self._from_recorder is None or self._recorder_status is not None:
            return False
        began = time.monotonic()
        while True:
            # Asked before the messages are read: if it is not busy, all its reports have come.
            wait_s = _BUSY_WAIT_S if is_busy(self._recorder) else _REPORT_WAIT_S
            if is_pending(self._recorder, number):
                # On a busy machine, the recorder has not yet reported it. The report will come.
                self._expected[number] = self._expected.get(number, 0) + 1
                return True
            self._read_messages()
            reported_s = self._reported.pop(number, None)
            now = time.monotonic()
            if reported_s is not None and now - reported_s < _REPORT_VALID_S:
                return True
            if now >= began + wait_s or self._from_recorder.closed:
                return False
            self._from_recorder.wait(min(_REPORT_WAIT_S, began + wait_s - now))

    def _read_messages(self) -> None:
        if self._from_recorder is None:
            return
        for message in self._from_recorder.messages():
            if "signal" in message:
                number = message["signal"]
                if self._expected.get(number):
                    self._expected[number] -= 1
                else:
                    self._reported[number] = time.monotonic()
            elif "released" in message:
                self._released = True
            elif "sealing" in message:
                self._seals = True
            elif "trouble" in message:
                elapsed = message.get("elapsed_s", time.monotonic() - self.started_s)
                self._troubles.append((elapsed, message["trouble"]))

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
                elif has_terminal():
                    # Stop too, so that the shell sees its job as stopped. Later, SIGCONT to the
                    # job wakes both. Without job control, this process would never get SIGCONT.
                    os.kill(os.getpid(), signal.SIGSTOP)
            elif pid == self._recorder and not os.WIFSTOPPED(status):
                self._recorder_status = status
                if os.WIFSIGNALED(status):
                    name = signal.Signals(os.WTERMSIG(status)).name
                    self.trouble(f"the recorder was killed by {name}; later samples are missing")
            elif self._capture and pid == self._capture.pid:
                self._capture.has_ended = not os.WIFSTOPPED(status)
