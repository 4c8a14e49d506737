"""Starts the ranks of `teho launch --check` by hand, as a launcher would."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import teho.launch

CHECK = Path(teho.launch.__path__[0]) / "check.py"
NODES = ("r01g01", "r01g02")


def free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


class Step:
    """Ranks in blocks on two nodes that are both this machine."""

    def __init__(
        self,
        size: int,
        *arguments: str,
        path: Sequence[Path] = (),
        python: Sequence[str] = (sys.executable,),
    ) -> None:
        self.size = size
        self.path = path
        self.command = [*python, str(CHECK), *arguments]
        self.port = free_port()
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, rank: int, changes: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        per_node = self.size // 2
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(rank % per_node),
            "LOCAL_WORLD_SIZE": str(per_node),
            "NODE_RANK": str(rank // per_node),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.port),
            "TEHO_HOSTS": ",".join(NODES),
            "TEHO_STEP": "slurm-test-1.0",
            "PYTHONPATH": os.pathsep.join(map(str, self.path)),
            "OMP_NUM_THREADS": "1",
            **(changes or {}),
        }
        process = subprocess.Popen(
            self.command,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def start_all(self) -> list[subprocess.Popen[str]]:
        return [self.start(rank) for rank in range(self.size)]

    def wait_until_listening(self) -> None:
        """Wait until rank 0 lets others in; who only looks leaves no trace in the report."""
        end = time.monotonic() + 30
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.05)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


def results(
    processes: Sequence[subprocess.Popen[str]],
) -> Iterator[tuple[int, str, str]]:
    """Yield exit code, output and errors of each, once it has ended."""
    for process in processes:
        output, errors = process.communicate(timeout=120)
        yield process.returncode, output, errors
