"""Asks one side of a copy, this machine or another one over ssh, with the program `side.py`."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from teho.errors import InputError, TehoError
from teho.patterns import lazy_pattern
from teho.stage.side import READY

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Machine", "Place", "as_bytes", "read_place", "shown"]

_PROGRAM = Path(__file__).with_name("side.py").read_bytes()
_START = "import sys;exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
_NO_PYTHON = 126
# No quote, no `!` and no line end inside: csh and fish understand it too.
_REMOTE = (
    "exec sh -c 'for p in python3 /usr/libexec/platform-python python; do "
    f'if command -v $p >/dev/null 2>&1; then exec $p -c "{_START}"; fi; done; exit {_NO_PYTHON}\''
)
_HOST = lazy_pattern(
    r"(?P<host>(?:[^/:@\s]+@)?(?:\[[0-9A-Fa-f:.%]+\]|[^/:@\s]+)):(?P<path>.*)", re.DOTALL
)
_CONNECT_S = 15
_SSH_FAILED = 255


class Place(NamedTuple):
    """A path on a machine."""

    host: str
    """As ssh takes it; empty: this machine."""
    path: str

    def __str__(self) -> str:
        return shown(f"{self.host}:{self.path}" if self.host else self.path)


def read_place(text: str, option: str) -> Place:
    """Read `PATH` or `HOST:PATH`; a colon after a slash belongs to the path.

    Raises:
        InputError: it is empty, or of a kind that ssh cannot reach.
    """
    if not text:
        raise InputError(f"{option} is empty", "a path, or HOST:PATH")
    if "\0" in text:
        raise InputError(f"{option} contains a NUL character", "a path, or HOST:PATH")
    if re.match(r"[a-z0-9+.-]+://", text):
        raise InputError(f"{shown(text)}: a URL", "a path, or HOST:PATH")
    remote = _HOST.fullmatch(text)
    if remote is None:
        return Place("", text)
    host, path = remote["host"], remote["path"]
    if path.startswith(":"):
        raise InputError(f"{shown(text)} is a module of an rsync server", "a path, or HOST:PATH")
    if host.startswith("-"):
        raise InputError(
            f"{shown(text)}: the name of a host cannot begin with -", "a path, or HOST:PATH"
        )
    return Place(host, path)


def shown(name: str) -> str:
    """Return a name as text on one line; other bytes and control characters are escaped."""
    text = as_bytes(name).decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def as_bytes(name: str) -> bytes:
    """Return the bytes of a name."""
    return name.encode("utf-8", "surrogateescape")


class Machine:
    """One side of a copy. Use it in a `with` block, which ends its connection.

    Args:
        host: as ssh takes it; empty: this machine.
    """

    def __init__(self, host: str = "") -> None:
        self.host = host
        self._folder = ""
        self._ssh: list[str] = []

    def __enter__(self) -> Self:
        """Prepare the connection; ssh opens it with the first request.

        Raises:
            InputError: there is no ssh.
        """
        if not self.host:
            return self
        if shutil.which("ssh") is None:
            raise InputError(
                f"{self.host}: this machine has no command ssh", "", "install an OpenSSH client"
            )
        self._ssh = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_S}"]
        if not self._is_connected():
            # All requests and rsync then share one connection. The path of a socket must be short.
            self._folder = tempfile.mkdtemp(prefix="teho-", dir="/tmp")
            self._ssh += ["-o", "ControlMaster=auto", "-o", f"ControlPath={self._folder}/%C"]
            self._ssh += ["-o", "ControlPersist=60"]
        return self

    def _is_connected(self) -> bool:
        """Return whether the user keeps a connection open, such as one with a second factor."""
        command = [*self._ssh, "-O", "check", "--", self._name]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    @property
    def _name(self) -> str:
        """The host without the brackets that a path needs."""
        return self.host.replace("[", "").replace("]", "")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._folder:
            command = [*self._ssh, "-O", "exit", "--", self._name]
            subprocess.run(command, capture_output=True, check=False)
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def remote_shell(self) -> str:
        """The value of rsync's option `-e`."""
        return shlex.join(self._ssh)

    def ask(self, do: str, path: str, **request: Any) -> list[Any]:
        """Do one request of `side.py`, and return its answers.

        Raises:
            TehoError: it failed, or the machine cannot be reached.
        """
        with self.talk(do, path, **request) as talk:
            return list(talk.answers())

    @contextmanager
    def talk(self, do: str, path: str, **request: Any) -> Iterator[_Talk]:
        """Begin a request of `side.py` that also reads data.

        Raises:
            TehoError: the machine cannot be reached.
        """
        argv = [*self._ssh, "--", self._name, _REMOTE] if self.host else None
        argv = argv or [sys.executable, "-I", "-c", _START]
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            talk = _Talk(self, process, errors)
            try:
                talk.send(b"%d\n" % len(_PROGRAM) + _PROGRAM)
                talk.send(json.dumps({"do": do, "path": path, **request}).encode() + b"\n")
                yield talk
            except BaseException:
                process.kill()
                raise


class _Talk:
    """One request to a machine, until it ends."""

    def __init__(
        self, machine: Machine, process: subprocess.Popen[bytes], errors: IO[bytes]
    ) -> None:
        self._machine = machine
        self._process = process
        self._input = cast("IO[bytes]", process.stdin)
        self._errors = errors
        self._is_ready = False

    def send(self, data: bytes) -> None:
        """Send data.

        Raises:
            TehoError: the other end has closed.
        """
        try:
            self._input.write(data)
            self._input.flush()
        except BrokenPipeError:
            with contextlib.suppress(OSError):
                self._input.close()
            for _ in self.answers():  # it raises why the other end has closed
                continue
            raise self._problem() from None

    def answers(self) -> Iterator[Any]:
        """Yield the answers until the request is done.

        Raises:
            TehoError: it failed.
        """
        for line in cast("IO[bytes]", self._process.stdout):
            if not self._is_ready:
                self._is_ready = line.rstrip() == READY
                continue
            answer = json.loads(line)
            if answer == "done":
                return
            if isinstance(answer, dict) and "failed" in answer:
                where = f"{self._machine.host}: " if self._machine.host else ""
                raise InputError(f"{where}{answer['failed']}")
            yield answer
        raise self._problem()

    def _problem(self) -> TehoError:
        """Return why the request ended too early."""
        code = self._process.wait()
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip().splitlines()
        return problem_of(self._machine.host, code, errors)


def problem_of(host: str, code: int, errors: Sequence[str]) -> TehoError:
    """Return why a command on a machine failed.

    Args:
        host: the machine; empty: this one.
        code: the exit code of the command.
        errors: lines that it printed on standard error.
    """
    last = errors[-1].strip().rstrip(".") if errors else f"exit code {code}"
    if host and code == _NO_PYTHON:
        return TehoError(
            f"{host} has no python3",
            "Python 3.6 or newer on the PATH when ssh runs a command",
            f"in the ~/.bashrc of {host}, load a module with Python",
        )
    text = " ".join(errors)
    if not host or code != _SSH_FAILED:
        return TehoError(f"a command failed on {host or 'this machine'}: {last}")
    next_step = f"`ssh {shlex.quote(host)}` shows what is wrong"
    if "Permission denied" in text:
        return TehoError(
            f"{host} asks for a password or a second factor: {last}",
            "a login without a password or a second factor",
            f"run `ssh-copy-id {shlex.quote(host)}`, or keep a connection open with "
            "`ControlMaster` and `ControlPath` in ~/.ssh/config",
        )
    if "Host key verification failed" in text:
        next_step = f"run `ssh {shlex.quote(host)}` once, and check the key of the host"
    return TehoError(f"no connection to {host}: {last}", "", next_step)
