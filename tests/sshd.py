"""A server for ssh on this machine, with keys that only one test knows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

__all__ = ["Server", "lacking", "server"]

_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""
_SSH = shutil.which("ssh") or ""


def lacking() -> str:
    """Return what the tests over ssh need and do not find; empty: nothing."""
    found = {"sshd": _SSHD, "ssh": _SSH, "ssh-keygen": shutil.which("ssh-keygen"),
             "rsync": shutil.which("rsync")}  # fmt: skip
    names = [name for name, path in found.items() if not path]
    return f"there is no {', '.join(names)}: tests/debian-packages.sh" if names else ""


class Server(NamedTuple):
    """A running server. `cluster` and `locked` are names of it: `locked` refuses the key."""

    environment: dict[str, str]
    """With an `ssh` that knows the names."""
    log: Path
    folder: Path

    @property
    def logins(self) -> int:
        """Number of logins so far."""
        return self.log.read_text().count("Accepted publickey")

    def ssh(self, before: str) -> dict[str, str]:
        """Return an environment whose `ssh` runs these lines of a shell first."""
        own = self.folder / "other"
        own.mkdir(exist_ok=True)
        (own / "ssh").write_text(f'#!/bin/sh\n{before}\nexec {self.folder}/bin/ssh "$@"\n')
        (own / "ssh").chmod(0o755)
        return {"PATH": f"{own}:{self.environment['PATH']}"}


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Start a server on a free port of 127.0.0.1, and end it."""
    folder.chmod(0o700)
    for name in ("key", "other-key", "host-key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        subprocess.run(command, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host-key\n"
        f"AuthorizedKeysFile {folder}/key.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE\n"
    )
    (folder / "ssh_config").write_text(
        f"Host cluster locked\n  HostName 127.0.0.1\n  Port {port}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n  StrictHostKeyChecking accept-new\n"
        f"Host cluster\n  IdentityFile {folder}/key\n"
        f"Host locked\n  IdentityFile {folder}/other-key\n"
    )
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {_SSH} -F {folder}/ssh_config "$@"\n')
    (folder / "bin" / "ssh").chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [_SSHD, "-D", "-e", "-f", folder / "sshd_config"], stdout=output, stderr=output
        )
    try:
        until_s = time.monotonic() + 30
        while "Server listening" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until_s
            time.sleep(0.05)
        yield Server({"PATH": f"{folder}/bin:{os.environ['PATH']}"}, log, folder)
    finally:
        process.terminate()
        process.wait(10)
