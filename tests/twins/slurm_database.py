"""What a Slurm twin stands on: munge, MariaDB and slurmdbd, none of them the machine's own."""

from __future__ import annotations

import atexit
import secrets
import shutil
import socket
import tempfile
import threading
from pathlib import Path

from slurm_daemons import Daemon, TwinError, ask, free_ports, wait_until

__all__ = ["SlurmDatabase"]

_LOG = "--innodb-log-file-size=8M"
"""Its default is 96 MiB, which every twin would write."""
_lock = threading.Lock()
_made: list[Path] = []
"""The data of a new server, which takes a second to make: once in this process."""


def _new_data() -> Path:
    with _lock:
        if not _made:
            folder = Path(tempfile.mkdtemp(prefix="twin-data-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            argv = ["mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}", _LOG]
            argv += ["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]
            made = ask(argv, {"TMPDIR": str(folder)})
            if made.returncode:
                raise TwinError(f"mariadb-install-db: {made.stdout}{made.stderr}")
            _made.append(folder / "data")
    return _made[0]


class SlurmDatabase:
    """A munged, mariadbd and slurmdbd.

    The directory's path is to be short: sockets lie in it, whose paths end at 107 bytes.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.munge_socket = directory / "munge"
        self.port = 0
        self._daemons: list[Daemon] = []

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._start_munge()
        self._start_mariadb()
        self._start_slurmdbd()

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.stop()
        self._daemons.clear()

    def _start(self, name: str, argv: list[str], env: dict[str, str] | None = None) -> None:
        self._daemons.append(Daemon(argv, self.directory / f"{name}.log", env))

    def _start_munge(self) -> None:
        key = self.directory / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        files = {"pid-file": "munge.pid", "log-file": "munged.log", "seed-file": "munge.seed"}
        argv = ["munged", "--foreground", "--force", f"--socket={self.munge_socket}"]
        argv += [f"--key-file={key}"]
        argv += [f"--{option}={self.directory / name}" for option, name in files.items()]
        self._start("munge", argv)
        wait_until(self.munge_socket.exists, self._daemons, "munged's socket")

    def _start_mariadb(self) -> None:
        data, path = self.directory / "data", self.directory / "mysql"
        shutil.copytree(_new_data(), data)
        argv = ["mariadbd", "--no-defaults", "--user=root", "--skip-networking"]
        argv += [f"--datadir={data}", f"--socket={path}", f"--pid-file={path}.pid"]
        argv.append(f"--tmpdir={self.directory}")
        # Nothing here has to outlive a crash.
        argv += ["--innodb-flush-method=nosync", "--skip-log-bin", _LOG]
        self._start("mariadbd", argv)
        wait_until(path.exists, self._daemons, "mariadbd's socket")

    def _start_slurmdbd(self) -> None:
        self.port = free_ports(1)[0]
        conf = self.directory / "slurmdbd.conf"
        conf.write_text(
            f"""\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={self.port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.munge_socket}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
PidFile={self.directory / "slurmdbd.pid"}
LogFile={self.directory / "slurmdbd.log"}
"""
        )
        conf.chmod(0o600)
        env = {"SLURM_CONF": str(conf), "MYSQL_UNIX_PORT": str(self.directory / "mysql")}
        self._start("slurmdbd", ["slurmdbd", "-D"], env)
        wait_until(self._answers, self._daemons, "slurmdbd")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True
