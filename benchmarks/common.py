"""Code for all benchmarks: rows of the table, measured processes, facts about the machine."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "stubs"))

import nvml_stub  # noqa: E402 - the path above leads to it

SCRIPTS = Path(sys.executable).parent
"""The folder with the commands of this Python's environment."""
CACHE = Path(tempfile.gettempdir()) / f"teho-bench-{os.getuid()}"
"""The folder with generated recordings, which later calls use again."""
_BOOTSTRAPS = 2000


_T = TypeVar("_T")
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Figures:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, *values: float) -> Figures:
        """Return the figures of one or more values."""
        return cls(tuple(values))

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        if len(self.values) == 1:
            return digits(self.median)
        low, high = digits(min(self.values)), digits(max(self.values))
        return f"{digits(self.median)} ({low} to {high})"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    unit: str
    ours: Figures
    peer: str = ""
    theirs: Figures | None = None
    budget: float | None = None
    below_peer: bool = False
    """Whether the figure must also be at most the peer's figure."""
    ours_text: str = ""
    """The text for `ours` in the table, if median and range do not show everything."""
    theirs_text: str = ""
    """The text for `theirs` in the table. If it is given, the row has no ratio."""
    verdict: str = ""
    """The text in the column *Budget kept*, instead of yes or no."""

    @property
    def holds(self) -> bool | None:
        """Whether the median is within the budget; None if the row has no budget."""
        if self.budget is None and not self.below_peer:
            return None
        within = self.budget is None or self.ours.median <= self.budget
        peer = self.theirs.median if self.below_peer and self.theirs else None
        return within and (peer is None or self.ours.median <= peer)

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the row: what, unit, ours, peer, ratio, budget, holds."""
        limits = [] if self.budget is None else [f"≤ {self.budget:g}"]
        limits += ["≤ other tool"] if self.below_peer else []
        ratio = ""
        if self.theirs and self.theirs.median > 0 and not self.theirs_text:
            quotient = self.ours.median / self.theirs.median
            ratio = f"{quotient:.2f}" if quotient >= 0.1 else digits(quotient)
        return (
            self.what,
            self.unit,
            self.ours_text or str(self.ours),
            f"{self.peer}: {self.theirs_text or self.theirs}" if self.theirs else "",
            ratio,
            ", ".join(limits),
            self.verdict or {None: "", True: "yes", False: "**no**"}[self.holds],
        )


def digits(value: float) -> str:
    """Write a number with three significant digits."""
    return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:#.3g}"


def say(text: str) -> None:
    """Print a message about the progress."""
    print(f"  {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Ended:
    """The time and memory that one process used."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    """Largest resident set of the process, or of a child that it waited for (wait4)."""
    output: str


def measure_process(argv: Sequence[str | Path], env: Mapping[str, str]) -> Ended:
    """Run a program to its end and measure it from outside.

    The Linux kernel counts `peak_bytes` from before exec, so the caller must use little memory.

    Raises:
        RuntimeError: the program failed.
    """
    with tempfile.TemporaryFile() as output:
        began_s = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in argv],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{argv} ended with {process.returncode}: {text[-2000:]}")
    return Ended(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text)


def interleave(calls: Mapping[str, Callable[[], _T]], rounds: int) -> dict[str, list[_T]]:
    """Call all functions in alternating order (A B, B A, A B, …), so that slow drifts cancel."""
    results: dict[str, list[_T]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name in calls if turn % 2 == 0 else reversed(calls):
            results[name].append(calls[name]())
    return results


def wall_ms_of(ended: Mapping[_Key, Sequence[Ended]]) -> dict[_Key, Figures]:
    """Return the wall times of processes in ms. The keys stay the same."""
    return {
        key: Figures.of(*(one.wall_s * 1000 for one in several)) for key, several in ended.items()
    }


def slower_by(
    program: str, ours: Sequence[float], itself: Sequence[float], budget_percent: float
) -> Row:
    """Return the row of the loss in time windows [%]: with Teho (`ours`), and without (`itself`).

    The true loss without Teho is 0. The row says neither yes nor no if the interval of the loss
    without Teho reaches the budget, or if the budget is inside the interval of the loss with Teho.
    """
    (low, high), (own_low, own_high) = _interval(ours), _interval(itself)
    clear = max(-own_low, own_high) < budget_percent and not low <= budget_percent < high
    return Row(
        what=f"program *{program}*: slower by",
        unit="%",
        ours=Figures.of(_middle(ours)),
        ours_text=f"{_middle(ours):+.2f} "
        f"(95 % interval: {low:+.2f} to {high:+.2f}; {len(ours)} windows)",
        peer="stopped again",
        theirs=Figures.of(_middle(itself)),
        theirs_text=f"{_middle(itself):+.2f} (95 % interval: {own_low:+.2f} to {own_high:+.2f})",
        budget=budget_percent,
        verdict="" if clear else "too noisy to tell",
    )


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the middle."""
    chance = random.Random(1)
    middles = sorted(_middle(chance.choices(values, k=len(values))) for _ in range(_BOOTSTRAPS))
    return middles[round(0.025 * _BOOTSTRAPS)], middles[round(0.975 * _BOOTSTRAPS) - 1]


def _middle(values: Sequence[float]) -> float:
    """Return the interquartile mean: nearly as robust as the median, and narrower."""
    quarter = len(values) // 4
    return statistics.fmean(sorted(values)[quarter : len(values) - quarter])


@contextmanager
def stub_environment() -> Iterator[dict[str, str]]:
    """Make an environment with 8 stub GPUs, and separate recordings, settings and cache."""
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        stub = nvml_stub.build(folder / "lib")
        # codecarbon asks the command whether there is an NVIDIA GPU, and then the library.
        smi = folder / "bin" / "nvidia-smi"
        smi.parent.mkdir()
        smi.write_text("#!/bin/sh\nexit 0\n")
        smi.chmod(0o700)
        yield {
            **environment(folder),
            **nvml_stub.environment(stub, nvml_stub.SCENARIOS / "h100x8_busy.txt"),
            "PATH": f"{smi.parent}:{os.environ['PATH']}",
        }


def environment(folder: Path) -> dict[str, str]:
    """Return an environment outside a job; recordings, settings and caches are in `folder`."""
    # With PYTHONDONTWRITEBYTECODE, which users do not set, each start would compile our sources.
    of_a_job = ("SLURM_", "SGE_", "JOB_", "TEHO_", "CUDA_VISIBLE", "XDG_", "CODECARBON_", "PYTHON")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(of_a_job)}
    return {
        **kept,
        "HOME": str(folder),
        "TEHO_HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def installed(package: str) -> str | None:
    """Return a peer's version; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def machine() -> list[str]:
    """Return facts about the machine and the programs, one per line."""
    import platform
    from datetime import datetime, timezone

    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    memory_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    virtual = "hypervisor" in Path("/proc/cpuinfo").read_text()
    packages = ("teho", "pyarrow", "nvidia-ml-py", "nvitop", "codecarbon", "gpustat", "numpy")
    return [
        f"{datetime.now(timezone.utc):%Y-%m-%d}",
        f"{model}, {os.cpu_count()} cores, {memory_gib:.0f} GiB"
        + (", a virtual machine" if virtual else ""),
        f"kernel {platform.release()}, Python {platform.python_version()}",
        ", ".join(f"{name} {installed(name) or 'not installed'}" for name in packages),
        "GPUs: a stand-in for NVIDIA's library with eight H100"
        + ("" if compiler else " (no compiler: none)"),
        f"load average at the start: {os.getloadavg()[0]:.2f}",
    ]
