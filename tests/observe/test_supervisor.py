"""`teho run` never hurts the program: exit codes, signals, terminal, streams, orphans."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from support import TEHO
from teho.cli import say

RUN = [*TEHO, "run", "--quiet", "--every", "100ms", "--"]

# Prints each signal that it gets, one line each, and ends on SIGQUIT or after 20 s.
LISTENER = textwrap.dedent(
    """
    import os, signal, sys, time
    def hear(number, frame):
        os.write(1, (signal.Signals(number).name + "\\n").encode())
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGCONT", "SIGWINCH"):
        signal.signal(getattr(signal, name), hear)
    signal.signal(signal.SIGQUIT, lambda *_: sys.exit(7))
    os.write(1, f"ready {os.getpid()}\\n".encode())
    end = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.02)
    """
)


def run(*command: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *command], capture_output=True, text=True, timeout=60, check=False, **options
    )


@pytest.mark.drawn(2, always=("0", "127"))
@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 128, 255])
def test_the_exit_code_is_the_programs(code: int) -> None:
    assert run("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.drawn(2, always=("SIGKILL",))
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT", "SIGSEGV", "SIGUSR1", "SIGPIPE"])
def test_death_by_a_signal_is_passed_on(name: str) -> None:
    number = getattr(signal, name)
    assert run("sh", "-c", f"kill -{name[3:]} $$").returncode == -number


def test_a_command_that_is_not_there_is_127() -> None:
    result = run("no-such-program-here")
    assert result.returncode == 127
    assert result.stderr == "teho: no-such-program-here: command not found\n"


def test_a_file_that_does_not_execute_is_126(tmp_path: Path) -> None:
    script = tmp_path / "plain.txt"
    script.write_text("hello")
    result = run(str(script))
    assert result.returncode == 126
    assert result.stderr == f"teho: {script}: not executable\n"
    assert run(str(tmp_path)).returncode == 126


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    result = run(str(script))
    assert result.returncode == 126
    assert "interpreter" in result.stderr


def test_a_script_without_a_first_line_runs_as_in_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "got $1"; exit 3\n')
    script.chmod(0o755)
    result = run(str(script), "a b")
    assert (result.returncode, result.stdout) == (3, "got a b\n")


def test_without_descriptors_for_a_recorder_the_program_runs() -> None:
    code = textwrap.dedent(
        """
        import errno, os
        from teho.observe.supervisor import Supervisor
        supervisor = Supervisor()
        supervisor.start(["sh", "-c", "exit 3"], dict(os.environ))
        whole, left = os.pipe, [1]
        def pipe():
            if not left:
                raise OSError(errno.EMFILE, "Too many open files")
            return left.pop() and whole()
        os.pipe = pipe
        supervisor.start_recorder(lambda *_: None)
        outcome = supervisor.wait()
        supervisor.finish_recording(lambda: None)
        print(outcome.exit_code, outcome.troubles[0][1])
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout == "3 no recorder could be started: Too many open files\n", result.stderr


def test_a_terminal_that_is_gone_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = pty.openpty()
    os.close(master)
    gone = open(terminal, "w")  # noqa: PTH123, SIM115 - a descriptor, which cannot be flushed
    monkeypatch.setattr(sys, "stderr", gone)
    say("recording")
    # It really cannot be written.
    with pytest.raises(OSError, match="Input/output error"):
        os.write(gone.fileno(), b"recording")
    with contextlib.suppress(OSError):
        gone.close()


def test_streams_pass_through_byte_for_byte() -> None:
    content = bytes(range(256)) * 500
    result = subprocess.run(
        [*RUN, "sh", "-c", "cat; echo oops >&2"],
        input=content, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert result.stdout == content
    assert result.stderr == b"oops\n"


def test_the_output_pipe_closes_with_the_program() -> None:
    # `teho run … | head` must end when the program has ended, whatever the recorder does.
    with subprocess.Popen([*RUN, "echo", "one"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "one\n"
        assert process.wait(30) == 0


def test_extra_descriptors_are_inherited_and_no_others() -> None:
    read, write = os.pipe()
    result = subprocess.run(
        [*RUN, "bash", "-c", f"echo through >&{write}; ls /proc/self/fd | wc -l"],
        pass_fds=[write], capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    os.close(write)
    assert os.read(read, 100) == b"through\n"
    os.close(read)
    assert int(result.stdout) == 5  # 0, 1, 2, the passed one, and the one of ls itself


def test_dispositions_are_as_they_were() -> None:
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    # Signals 32 and 33 are the C library's own; some ways to start a process leave them ignored.
    internal = 0b11 << 31

    def masks(text: str) -> list[int]:
        return [int(line.split()[1], 16) & ~internal for line in text.splitlines()]

    plain = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True)
    assert masks(run("sh", "-c", show).stdout) == masks(plain.stdout)


def test_an_ignored_signal_stays_ignored() -> None:
    script = "trap '' HUP INT; exec " + " ".join(RUN) + " grep SigIgn /proc/self/status"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    ignored = int(result.stdout.split()[1], 16)
    assert ignored & (1 << (signal.SIGHUP - 1))
    assert ignored & (1 << (signal.SIGINT - 1))


class Listening:
    """The listener under `teho run`, in a process group of its own."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [*RUN, sys.executable, "-u", "-c", LISTENER],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, preexec_fn=os.setpgrp,  # noqa: PLW1509 - process_group= needs 3.11; no threads here
        )  # fmt: skip
        self.program = int(self.line().split()[1])
        # Until the recorder listens for signals, in a second thread, the supervisor cannot know
        # whether the whole group got one.
        end = time.monotonic() + 30
        while not self.recorder_listens() and time.monotonic() < end:
            time.sleep(0.05)
        return self

    def recorder_listens(self) -> bool:
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                lines = status.read_text().splitlines()
                is_child = f"PPid:\t{self.process.pid}" in lines
                if is_child and f"Pid:\t{self.program}" not in lines and "Threads:\t1" not in lines:
                    return True
        return False

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def line(self, timeout_s: float = 10.0) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        return self.process.stdout.readline().decode().strip() if ready else ""


@pytest.mark.drawn(2, always=("SIGINT", "SIGTERM"))
@pytest.mark.parametrize(
    "name", ["SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGCONT", "SIGWINCH"]
)
def test_a_signal_to_only_teho_reaches_the_program_once(name: str) -> None:
    with Listening() as listening:
        os.kill(listening.process.pid, getattr(signal, name))
        assert listening.line() == name
        assert listening.line(0.4) == ""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1", "SIGCONT"])
def test_a_signal_to_the_whole_group_reaches_the_program_once(name: str) -> None:
    with Listening() as listening:
        for _ in range(3):
            os.killpg(listening.process.pid, getattr(signal, name))
            assert listening.line() == name
            assert listening.line(0.4) == ""


def test_the_program_may_outlive_a_signal_and_choose_its_end() -> None:
    with Listening() as listening:
        os.kill(listening.process.pid, signal.SIGTERM)
        assert listening.line() == "SIGTERM"
        os.kill(listening.process.pid, signal.SIGQUIT)
        assert listening.process.wait(30) == 7


def test_stop_and_continue() -> None:
    with Listening() as listening:
        os.kill(listening.process.pid, signal.SIGTSTP)
        end = time.monotonic() + 10
        while state_of(listening.program) != "T" and time.monotonic() < end:
            time.sleep(0.02)
        assert state_of(listening.program) == "T"
        # No terminal, no job control: nobody would wake the supervisor if it stopped too.
        assert state_of(listening.process.pid) != "T"
        os.killpg(listening.process.pid, signal.SIGCONT)
        assert listening.line() == "SIGCONT"
        assert state_of(listening.program) != "T"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Terminal:
    """`teho run` as the foreground job of a real terminal."""

    def __init__(self, *command: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        self.seen = ""

    def until(self, text: str, timeout_s: float = 20.0) -> str:
        end = time.monotonic() + timeout_s
        while text not in self.seen and time.monotonic() < end:
            ready, _, _ = select.select([self.descriptor], [], [], 0.2)
            if ready:
                try:
                    self.seen += os.read(self.descriptor, 65536).decode(errors="replace")
                except OSError:
                    break
        assert text in self.seen, self.seen
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)


def test_ctrl_c_reaches_the_program_once() -> None:
    terminal = Terminal(*RUN, sys.executable, "-u", "-c", LISTENER)
    terminal.until("ready")
    time.sleep(0.5)
    for count in (1, 2):
        terminal.type("\x03")
        terminal.until("SIGINT\r\n" * 1)
        time.sleep(0.3)
        assert terminal.seen.count("SIGINT") <= count
    terminal.type("\x1c")  # Ctrl-backslash: SIGQUIT
    assert terminal.end() == 7


def test_the_program_owns_the_terminal() -> None:
    program = (
        "import os, sys, termios, tty; print(os.isatty(0), os.tcgetpgrp(0) == os.getpgrp());"
        "tty.setraw(0); os.write(1, b'raw'); c = os.read(0, 1);"
        "os.write(1, b'key ' + c + b'\\r\\n')"
    )
    terminal = Terminal(*RUN, sys.executable, "-c", program)
    assert "True True" in terminal.until("raw")
    terminal.type("q")
    terminal.until("key q")
    assert terminal.end() == 0


def test_job_control_of_an_interactive_shell() -> None:
    terminal = Terminal("bash", "--norc", "--noprofile", "-i")
    terminal.type("PS1='> '\n")
    terminal.type(" ".join(RUN) + f" {sys.executable} -uc 'import time; print(\"be\" + \"gun\");"
                  " time.sleep(3); print(\"do\" + \"ne\")'\n")  # fmt: skip
    terminal.until("begun")
    terminal.type("\x1a")  # Ctrl-Z
    terminal.until("Stopped")
    terminal.type("fg\n")
    terminal.until("done")
    terminal.type("echo code $?; exit\n")
    terminal.until("code 0")
    assert terminal.end() == 0


def test_orphans_are_adopted_and_do_not_delay_the_prompt() -> None:
    # The inner sleep is orphaned at once; `teho` ends with the program, not with the orphan.
    began = time.monotonic()
    result = run("sh", "-c", "(sleep 30 > /dev/null 2>&1 & echo $!) ; exit 5")
    orphan = int(result.stdout)
    assert result.returncode == 5
    assert time.monotonic() - began < 25
    os.kill(orphan, signal.SIGKILL)


def test_a_debugger_works() -> None:
    terminal = Terminal(*RUN, sys.executable, "-m", "pdb", "-c", "next", __file__)
    terminal.until("(Pdb)")
    terminal.type("p 6 * 7\n")
    terminal.until("42")
    terminal.type("q\n")
    assert terminal.end() in {0, 1}


def test_a_full_screen_program_works(monkeypatch: pytest.MonkeyPatch) -> None:
    program = textwrap.dedent(
        """
        import curses
        def screen(window):
            window.addstr(2, 3, f"size {curses.LINES} x {curses.COLS}")
            window.refresh()
            key = window.getkey()
            window.addstr(3, 3, f"pressed {key}")
            window.refresh()
            curses.napms(200)
        curses.wrapper(screen)
        """
    )
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(*RUN, sys.executable, "-c", program)
    terminal.until("size")
    terminal.type("x")
    terminal.until("pressed")
    terminal.until("\x1b[?1049l")  # it gave the ordinary screen back
    assert terminal.end() == 0


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", ">&-", "<&-", "> /dev/full"])
def test_streams_that_cannot_be_written_do_not_change_the_exit_code(redirection: str) -> None:
    words = " ".join(RUN).replace("--quiet", "--report full")
    script = f"{words} sh -c 'exit 3' {redirection}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=False)
    assert result.returncode == 3


def test_a_watchdogs_abort_and_an_alarm_reach_the_program() -> None:
    with Listening() as listening:
        os.kill(listening.process.pid, signal.SIGABRT)
        assert listening.process.wait(30) == -signal.SIGABRT
    alarm = "import os, signal, sys; signal.alarm(1); os.execvp(sys.argv[1], sys.argv[1:])"
    began = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", alarm, *RUN, "sleep", "20"], check=False, timeout=60
    )
    assert result.returncode == -signal.SIGALRM
    assert time.monotonic() - began < 15


def test_a_stopped_program_that_is_killed_ends_the_run() -> None:
    with Listening() as listening:
        os.kill(listening.program, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(listening.program, signal.SIGKILL)
        assert listening.process.wait(30) == -signal.SIGKILL
