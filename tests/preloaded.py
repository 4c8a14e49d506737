"""`teho` in a fork of a process that has loaded its modules.

To start Python and to import Teho takes five times as long as most commands. The forked process has
its own arguments, environment, directory and files, and ends as any other. The command really
starts if a fork would not be the same: if it starts the user's program, or if a variable changed
that Python or the loader of libraries reads at the start. Where many tests have the same other
LD_LIBRARY_PATH, they have a process of their own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock

__all__ = ["Preloaded"]

_COMMANDS = frozenset(
    ("--help", "--version", "cancel", "clusters", "completion", "diff", "digest", "env", "export",
     "import", "jobs", "list", "merge", "pack", "plan", "report", "rm", "share", "show", "stage",
     "status", "submit", "tag", "unshare")
)  # fmt: skip
"""Commands that start no program whose process is part of what a test is about."""
_WITHOUT_PROGRAM = frozenset(("compare", "devices", "doctor", "energy", "profile"))
"""The same for these, if no program is named."""
_LIBRARIES = "LD_LIBRARY_PATH"
_READ_AT_START = ("LANG", "LC_", "LD_", "PYTHON", "TZ", "MALLOC_", "OMP_", "COV_")


class Preloaded:
    """The client; its server is started by the first call, and ends with this process.

    Args:
        environment: in which the server starts; this process's own, if it is not given.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._control, self._of_server = socket.socketpair()
        """Each request sends the server one end of a connection of its own."""
        self._began_with = dict(os.environ if environment is None else environment)
        self._others: dict[str, Preloaded | None] = {}
        """By the folders of libraries; None after the first call with such folders."""
        self._server: subprocess.Popen[bytes] | None = None
        self._starting = Lock()

    def close(self) -> None:
        """End the server, and those for other libraries."""
        for other in self._others.values():
            if other:
                other.close()
        self._control.close()
        self._of_server.close()
        if self._server is not None:
            with self._server:
                pass

    def can_run(self, words: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Return whether a fork is the same as a new process."""
        before = self._began_with
        names = environment.keys() | before.keys()
        changed = {name for name in names if environment.get(name) != before.get(name)}
        is_same = not any(name.startswith(_READ_AT_START) for name in changed)
        starts_nothing = words[:1] and (
            words[0] in _COMMANDS or (words[0] in _WITHOUT_PROGRAM and "--" not in words)
        )
        return is_same and bool(starts_nothing)

    def of_libraries(self, environment: Mapping[str, str]) -> Preloaded:
        """Return the one that has started with the folders of libraries of an environment.

        A server costs as much as some commands, so the first command has none.
        """
        folders = environment.get(_LIBRARIES, "")
        with self._starting:
            if folders == self._began_with.get(_LIBRARIES, ""):
                return self
            if folders not in self._others:
                self._others[folders] = None
            elif self._others[folders] is None:
                self._others[folders] = Preloaded({**self._began_with, _LIBRARIES: folders})
            return self._others[folders] or self

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], cwd: str, stdin: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with self._starting:
            self._server = self._server or self._started()
        request = {"words": words, "environment": dict(environment), "cwd": cwd}
        asked, other_end = socket.socketpair()
        with (
            tempfile.TemporaryFile() as given,
            asked,
            ThreadPoolExecutor(2) as readers,
        ):
            with other_end:
                socket.send_fds(self._control, [b"\0"], [other_end.fileno()])
            given.write(stdin.encode())
            given.seek(0)
            asked.settimeout(120)
            pipes = [os.pipe() for _ in ("stdout", "stderr")]
            # As with `subprocess`, they end when the last process that has them ends.
            said = [readers.submit(_read, one) for one, _ in pipes]
            socket.send_fds(asked, [b"\0"], [given.fileno(), *(other for _, other in pipes)])
            for _, other in pipes:
                os.close(other)
            asked.sendall(json.dumps(request).encode("ascii") + b"\n")
            with asked.makefile() as answer:
                code = answer.readline()
            assert code, f"the server ended: {self._server.communicate()[0].decode()}"
            output, errors = (one.result(120) for one in said)
        return subprocess.CompletedProcess(list(words), int(code), output, errors)

    def _started(self) -> subprocess.Popen[bytes]:
        # Pipes for all: a stream of Python notes at the start whether its file can be sought.
        server = subprocess.Popen(
            [sys.executable, __file__, str(self._of_server.fileno())], env=self._began_with,
            pass_fds=[self._of_server.fileno()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        self._of_server.close()
        return server


def _read(pipe: int) -> str:
    with open(pipe) as text:
        return text.read()


# ---- the server ----


class _Server:
    """Forks for each request until its client ends."""

    def __init__(self, control: int) -> None:
        self._told, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        signal.set_wakeup_fd(self._tell)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._commands: dict[int, tuple[socket.socket, int]] = {}
        """By process: who waits for its end, and the pipe of what it imported."""
        self._control = socket.socket(fileno=control)
        print("ready", flush=True)

    def serve(self) -> None:
        """Answer requests. Returns only in a fork, which is to run its words."""
        while True:
            ready, _, _ = select.select([self._control, self._told], [], [])
            if self._told in ready:
                os.read(self._told, 1000)
                self._answer_ended()
            if self._control in ready and self._is_fork():
                return

    def _is_fork(self) -> bool:
        _, connections, _, _ = socket.recv_fds(self._control, 1, 1)
        if not connections:
            os._exit(0)  # the client has ended
        client = socket.socket(fileno=connections[0])
        _, files, _, _ = socket.recv_fds(client, 1, 3)
        with client.makefile() as asked:
            request = json.loads(asked.readline())
        threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
        # jemalloc, in pyarrow, knows of forks. What another thread does would be cut off.
        assert len([name for name in threads if name != "jemalloc_bg_thd"]) == 1, threads
        news, tell_news = os.pipe()
        os.set_blocking(news, False)
        gc.freeze()  # a fork would look through all that is imported, and copy it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 counts jemalloc's thread too
            pid = os.fork()
        if pid:
            for file in (*files, tell_news):
                os.close(file)
            self._commands[pid] = client, news
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        for other in (self._control, client, *(one for one, _ in self._commands.values())):
            other.close()
        for pipe in (self._told, self._tell, news, *(one for _, one in self._commands.values())):
            os.close(pipe)
        atexit.register(_tell, tell_news, {*sys.modules})
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["cwd"])
        sys.path.insert(0, request["cwd"])  # as for `python -m teho`
        sys.argv[1:] = request["words"]
        return True

    def _answer_ended(self) -> None:
        """Send the exit codes of commands that have ended, and import what they have imported."""
        while self._commands:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            client, news = self._commands.pop(pid)
            with client, open(news, "rb", 0) as told:  # noqa: PTH123 - it has no path
                client.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
                # Without waiting: the command may have left a process that has the pipe.
                names = (told.read() or b"").decode().split()
            for name in names:
                with suppress(ImportError):
                    __import__(name)


def _tell(pipe: int, before: set[str]) -> None:
    """Write which modules were imported: the server imports them for the next commands."""
    os.write(pipe, " ".join(sys.modules.keys() - before).encode()[:60_000])


if __name__ == "__main__":
    del sys.path[0]  # the folder of the tests
    from teho import cli
    from teho.cli import group

    sys.argv[0] = str(Path(cli.__file__).parents[1] / "__main__.py")
    for name in group._UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type] # as `teho` does
    _Server(int(sys.argv.pop(1))).serve()
    cli.main()
