"""Daemons of a throw-away scheduler: started in a folder of their own, ended by process id."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["Daemon", "TwinError", "ask", "free_ports", "wait_until", "why_not"]

_PROGRAMS = (
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "slurmdbd",
    "slurmctld",
    "slurmd",
    "sbatch",
)


_kept: list[socket.socket] = []


class TwinError(Exception):
    """A twin did not start, or its scheduler did not answer."""


def why_not() -> str:
    """Return why a Slurm twin cannot start on this machine; empty where it can."""
    if os.geteuid() != 0:
        return "a Slurm twin starts as root alone"
    lacking = [name for name in _PROGRAMS if shutil.which(name) is None]
    if lacking:
        return f"no {', '.join(lacking)} here; tests/debian-packages.sh installs them"
    tried = subprocess.run(
        ["unshare", "--uts", "--mount", "true"], check=False, capture_output=True
    )
    if tried.returncode:
        return "nodes need names of their own, and namespaces are not granted here"
    return ""


class Daemon:
    """One process in the foreground, which ends with us even if we are killed."""

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None):
        self.log = log
        self.name = Path(argv[0]).name
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *argv],
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C is ours to pass on, in order
            )
        self.pid = self._process.pid

    def stop(self) -> None:
        # At once: nothing of a twin is worth saving.
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """Raise TwinError if the process has ended."""
        if self._process.poll() is not None:
            raise TwinError(f"{self.name} ended with {self._process.returncode}:\n{self.tail()}")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


def wait_until(
    ready: Callable[[], bool], daemons: Sequence[Daemon], what: str, patience_s: float = 60.0
) -> None:
    """Wait for a condition, and fail at once with its log if one of the daemons ends.

    Raises:
        TwinError: a daemon ended, or the time is up.
    """
    end_s = time.monotonic() + patience_s
    while not ready():
        for daemon in daemons:
            daemon.check()
        if time.monotonic() > end_s:
            raise TwinError(f"{what} did not come within {patience_s:g} s:\n{daemons[-1].tail()}")
        time.sleep(0.05)


def ask(
    argv: Sequence[str], env: Mapping[str, str], stdin: str = "", patience_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a command of the scheduler."""
    return subprocess.run(
        argv,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=patience_s,
        check=False,
    )


def free_ports(count: int) -> range:
    """Return up to 64 ports in a row on which no one listens, kept for this process.

    They lie below those that the system hands out by itself, and outside of 10000 to 30000, where
    the ranks of jobs meet (`teho.schedulers.task`). A name in the system's own space keeps them
    from other twins until this process ends: daemons listen only later.
    """
    blocks = [*range(2048, 9984, 64), *range(30016, 32704, 64)]
    for number in range(len(blocks)):
        first = blocks[(os.getpid() + number) % len(blocks)]
        keeper = socket.socket(socket.AF_UNIX)
        try:
            keeper.bind(f"\0teho-twin-ports-{first}")
        except OSError:
            keeper.close()
            continue
        ports = range(first, first + count)
        if all(map(_is_free, ports)):
            _kept.append(keeper)
            return ports
        keeper.close()
    raise TwinError(f"no {count} free ports in a row in {len(blocks)} blocks of 64")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
