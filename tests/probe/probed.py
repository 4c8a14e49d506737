"""Programs with the probe in them, and beside each the same without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import teho
from forks import Done, Program, forked
from support import FRAMEWORKS
from teho.model.watched import Loader, WatchedProcess
from teho.store.probe import watched_processes

INJECT = Path(teho.__file__).parent / "probe" / "inject"
WITH_FRAMEWORKS = str(FRAMEWORKS / "bin" / "python")
SPIN = """
import os, sys, time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(500))
"""

SLOW_DATA = """
import copy, pickle, sys, time, torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset
class Slow(Dataset):
    def __init__(self, samples=10): self.samples = samples
    def __len__(self): return self.samples
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.zeros(3), index
"""
"""A PyTorch data set whose samples take 20 ms each."""


class Ran(NamedTuple):
    """What programs printed, with the probe and some also without; the processes with the probe."""

    probed: Mapping[str, Done]
    plain: Mapping[str, Done | subprocess.CompletedProcess[bytes]]
    processes: list[WatchedProcess]

    def only(self, name: str) -> WatchedProcess:
        """Return the process of a program."""
        (found,) = (one for one in self.processes if one.pid == self.probed[name].pid)
        return found

    def check_same(self, name: str) -> None:
        """See that a program ended and printed the same, with the probe and without."""
        done, plain = self.probed[name], self.plain[name]
        assert done.stdout == plain.stdout, (done.stdout, plain.stdout, plain.stderr)
        assert done.stderr == plain.stderr, (done.stderr, plain.stderr)
        assert done.returncode == plain.returncode


class Probed:
    """A program that is run with the probe in it, and without."""

    def __init__(self, folder: Path) -> None:
        self.spool = folder / "above" / "probe"
        self.script = folder / "program.py"
        self.folder = folder / "programs"
        """Of the programs that run in forks, each `NAME.py`."""
        self.path = ""
        self.environment: dict[str, str] = {}

    def run(
        self,
        code: str,
        *options: str,
        python: str = sys.executable,
        probe: bool = True,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[bytes]:
        self.script.write_text(SPIN + textwrap.dedent(code))
        return subprocess.run(
            [python, *options, str(self.script)],
            env=self._environment(probe=probe),
            stdin=stdin,
            capture_output=True,
            timeout=600,
            check=False,
        )

    def _environment(self, *, probe: bool) -> dict[str, str]:
        environment = {**os.environ, "PYTHONPATH": self.path, **self.environment}
        if probe:
            environment |= {
                "TEHO_PROBE": str(self.spool),
                "PYTHONPATH": f"{INJECT}:{self.path}" if self.path else str(INJECT),
            }
        elif not self.path:
            del environment["PYTHONPATH"]
        return environment

    def forked(
        self,
        prelude: str,
        programs: Mapping[str, str],
        *options: str,
        probe: bool = True,
        is_silent: bool = True,
    ) -> dict[str, Done]:
        """Run programs in forks of one process that has imported their framework.

        Args:
            prelude: the imports.
            programs: by a name.
            options: of Python.
            probe: whether the probe is in them.
            is_silent: whether nothing is to be printed by the imports.
        """
        self.folder.mkdir(exist_ok=True)
        files = {name: Program(self.folder / f"{name}.py") for name in programs}
        for name, code in programs.items():
            files[name].path.write_text(SPIN + textwrap.dedent(code))
        python = [WITH_FRAMEWORKS, *options]
        environment = self._environment(probe=probe)
        return forked(prelude, files, self.folder, python, environment, is_silent=is_silent)

    def both(
        self, code: str, *options: str, python: str = sys.executable
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it with and without, and see that it ends and says the same."""
        without = self.run(code, *options, python=python, probe=False)
        done = self.run(code, *options, python=python)
        assert done.stdout == without.stdout, (done.stdout, without.stdout, without.stderr)
        assert done.stderr == without.stderr, (done.stderr, without.stderr)
        assert done.returncode == without.returncode
        return done

    def processes(self) -> list[list[dict]]:
        """Return the lines of each process."""
        found = [
            [json.loads(line) for line in path.read_text().splitlines()]
            for path in self.spool.glob("*.jsonl")
        ]
        return sorted(found, key=lambda lines: lines[0]["began_s"])

    def watched(self) -> list[WatchedProcess]:
        """Return the processes as Teho reads them, of probes that failed nowhere."""
        problems: list[str] = []
        found = watched_processes(self.spool.parent, problems)
        assert not problems, problems
        return found


def loaders_of(process: WatchedProcess) -> dict[str, Loader]:
    """Return the loaders of a process by the function in which they were made."""
    found = {one.made_at.function: one for one in process.loaders if one.made_at}
    assert len(found) == len(process.loaders)
    return found
