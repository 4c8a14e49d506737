"""A launcher's job after its end: each rank's gradient, and what stood in its environment."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from support import check_golden

__all__ = ["PROGRAMS", "Launched", "Stage", "jax_gradient", "train_alone"]

PROGRAMS = Path(__file__).parents[1] / "launchers"
GOLDEN = Path(__file__).parents[1] / "data" / "launch" / "environments"

# What schedulers and shells set of themselves; it is theirs to test.
_NOT_OURS = re.compile(
    r"(SLURM|SLURMD|SBATCH|SRUN|OMPI|OPAL|ORTE|PMIX|PRTE|PMI|SGE|QRSH|PE|MPI|HWLOC|HFI|JOB|IPATH)_|"
    r"(_|PWD|OLDPWD|SHLVL|HOSTNAME|ENVIRONMENT|PATH|TMPDIR|TMP|TEMP|HOME|USER|LOGNAME|SHELL|MAIL|"
    r"ARC|NHOSTS|NQUEUES|NSLOTS|QUEUE|REQUEST|REQNAME|RESTARTED|PE|ORIGINAL_.*|GPU_DEVICE_ORDINAL|"
    r"ZE_AFFINITY_MASK|TORCHELASTIC_ERROR_FILE|NOTES)$"
)
_THREADS = re.compile(r"(.*_NUM_THREADS|TF_NUM_INT.*|PJRT_NPROC)$")
_RUN_IDS = re.compile(r"(PET_RDZV|TORCHELASTIC_RUN)_ID$")


class Stage:
    """Where a launcher is tried: a folder, and an environment with `teho` and a framework."""

    def __init__(self, folder: Path, python: Path) -> None:
        """Prepare it.

        Args:
            folder: an empty one with a short path, for sockets.
            python: one that has the frameworks.
        """
        self.folder = folder
        programs, home = folder / "bin", folder / "home"
        for one in (programs, home, folder / "tmp"):
            one.mkdir()
        teho = programs / "teho"
        teho.write_text(f'#!/bin/sh\nexec {sys.executable} -m teho "$@"\n')
        teho.chmod(0o755)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TEHO_", "XDG_", "COV_")) and not _THREADS.match(name)
        }
        self.environment = {
            **kept,
            "PATH": f"{programs}:{python.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "TMPDIR": str(folder / "tmp"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }

    def notes(self, name: str) -> Path:
        """Make the folder that the ranks of one launch write to."""
        folder = self.folder / name
        folder.mkdir()
        return folder

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command here, from the folder of the programs."""
        return subprocess.run(
            argv,
            env=self.environment,
            cwd=PROGRAMS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


class Launched:
    """What the ranks of one launch left behind.

    Args:
        stage: where it ran.
        name: of its notes.
        said: its output, for whoever looks for what went wrong.
    """

    def __init__(self, stage: Stage, name: str, said: str) -> None:
        self.said = said
        self.gradients = {
            int(path.stem): np.load(path) for path in (stage.folder / name).glob("*.npy")
        }
        self.environments = {
            int(path.stem): _read(path) for path in (stage.folder / name).glob("*.env")
        }
        self._stage = stage

    def check_gradients(self, ranks: int, expected: np.ndarray) -> None:
        """Every rank has the gradient of the single process."""
        assert sorted(self.gradients) == list(range(ranks)), self.said
        for gradient in self.gradients.values():
            difference = np.linalg.norm(gradient - expected) / np.linalg.norm(expected)
            assert difference < 1e-5, self.said

    def check_ranks(self, nodes: int, each: int) -> None:
        """The ranks are numbered through node by node, and all meet at one place."""
        seen = self.environments
        assert sorted(seen) == list(range(nodes * each)), self.said
        for rank, env in seen.items():
            assert env["RANK"] == str(rank)
            assert env["LOCAL_RANK"] == str(rank % each)
            assert env["LOCAL_WORLD_SIZE"] == str(each)
            assert env["WORLD_SIZE"] == str(nodes * each)
            assert env["GROUP_RANK"] == str(rank // each)
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            assert len({env[name] for env in seen.values()}) == 1

    def check_golden(self, name: str) -> None:
        """The ranks' environments are those of the golden file: what all have, then two ranks."""
        first, last = min(self.environments), max(self.environments)
        masked = {rank: self._masked(env) for rank, env in self.environments.items()}
        alike = set.intersection(*(set(env.items()) for env in masked.values()))
        parts = [("Every rank", alike)]
        parts += [
            (f"Rank {rank}", masked[rank].items() - alike) for rank in dict.fromkeys((first, last))
        ]
        text = "\n".join(
            f"{title}\n" + "".join(f"  {name}={value}\n" for name, value in sorted(pairs))
            for title, pairs in parts
            if pairs
        )
        check_golden(GOLDEN / f"{name}.txt", text)

    def _masked(self, env: Mapping[str, str]) -> dict[str, str]:
        """Leave out what was there before, and name what differs from run to run."""
        before = {**os.environ, **self._stage.environment}
        kept = {
            name: value
            for name, value in env.items()
            if before.get(name) != value and not _NOT_OURS.match(name)
        }
        port = env["MASTER_PORT"]
        for name, value in kept.items():
            text = "<cores>" if _THREADS.match(name) else value
            for pattern, mask in (
                (rf"\b{port}\b", "<port>"),
                (r":\d{4,5}\b", ":<port>"),
                (re.escape(str(self._stage.folder)), "<folder>"),
                (r"teho-cache-[^/]+", "teho-cache-<user>"),
                (r"(slurm-\w+)-\d+", r"\1-<job>"),
                # What torchrun calls the machine, where it is none of a twin's.
                (rf"^({re.escape(socket.getfqdn())}|localhost)$", "<host>"),
            ):
                text = re.sub(pattern, mask, text)
            if _RUN_IDS.match(name):
                text = re.sub(r"^(open-)?[\d-]+$", r"\1<job>", text)
            kept[name] = text
        return kept


def train_alone(stage: Stage) -> Launched:
    """Train in a single process, which `teho launch` starts outside of any job."""
    notes = stage.notes("alone")
    done = stage.run("teho", "launch", "--", "python", "ddp.py", str(notes))
    assert done.returncode == 0, done.stderr
    return Launched(stage, "alone", done.stderr)


def jax_gradient() -> np.ndarray:
    """Return what JAX's processes are to find together: of a mean of squares, by hand."""
    random = np.random.default_rng(0)
    inputs, targets = random.random((64, 8)), random.random(64)
    return -2 * inputs.T @ targets / 64


def _read(path: Path) -> dict[str, str]:
    # Grid Engine separates words with bytes that are no text.
    pairs = path.read_text(errors="surrogateescape").split("\0")[:-1]
    return dict(pair.split("=", 1) for pair in pairs)
