"""Builds the stand-in for NVIDIA's library, and knows what its scenarios truly say.

`environment(build(folder), scenario)` is what a program needs to see the scenario's GPUs
through any tool that reads NVML. The figures computed here are independent of the C code.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "GPM_PER_PERCENT",
    "RECEIVE_PER_PERCENT",
    "SCENARIOS",
    "SEND_PER_PERCENT",
    "NoCompilerError",
    "Scenario",
    "Step",
    "build",
    "environment",
    "gpu_uuid",
    "mig_uuid",
]

SCENARIOS = Path(__file__).parents[1] / "data" / "nvml"
"""The ready scenarios."""

_SOURCE = Path(__file__).with_name("nvml") / "stub.c"
_MIB = 1024**2

RECEIVE_PER_PERCENT, SEND_PER_PERCENT = 10e6, 2e6
"""PCIe traffic of a stub GPU: bytes/s for each percent of its load."""
GPM_PER_PERCENT = {
    2: 0.8,
    3: 0.4,
    4: 0.2,
    5: 0.5,
    10: 0.45,
    11: 0.01,
    12: 0.1,
    13: 0.05,
    20: SEND_PER_PERCENT / _MIB,
    21: RECEIVE_PER_PERCENT / _MIB,
    60: 40.0,
    61: 30.0,
}
"""GPM's metrics by NVML's number (pynvml's NVML_GPM_METRIC_*): what each is for each percent of
load where the trace does not tell; in %, and in MiB/s from 20 on."""


class NoCompilerError(Exception):
    """This machine has no C compiler; a test that needs the stub is skipped."""


def build(folder: Path) -> Path:
    """Compile the stub into `folder` and return that folder, as LD_LIBRARY_PATH wants it.

    Raises:
        NoCompilerError: there is no `cc`, `gcc` or `clang`.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise NoCompilerError("no C compiler (cc, gcc or clang) to build the NVML stub with")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "libnvidia-ml.so.1"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(target), str(_SOURCE)], check=True)
    return folder


def environment(folder: Path, scenario: Path, epoch_s: float | None = None) -> dict[str, str]:
    """Return the variables that put the stub in front of a real library.

    Args:
        folder: what `build` returned.
        scenario: a scenario file.
        epoch_s: value of CLOCK_MONOTONIC (`time.monotonic()`) at which the trace begins,
            for several processes to agree; None: when each of them starts the library.
    """
    variables = {"LD_LIBRARY_PATH": str(folder), "TEHO_STUB_NVML": str(scenario)}
    if epoch_s is not None:
        variables["TEHO_STUB_NVML_EPOCH"] = repr(epoch_s)
    return variables


def gpu_uuid(gpu: int) -> str:
    """Return the id of a GPU of any scenario."""
    return _uuid("GPU", gpu, 0)


def mig_uuid(gpu: int, instance: int) -> str:
    """Return the id of a MIG instance of any scenario."""
    return _uuid("MIG", gpu, instance + 1)


def _uuid(kind: str, gpu: int, instance: int) -> str:
    mixed = (gpu * 16 + instance + 1) * 2654435761 % 2**32
    return f"{kind}-{mixed:08x}-7465-686f-{0x8000 + gpu:04x}-{instance:012x}"


class Step(NamedTuple):
    """One line of a trace; it holds until the GPU's next one."""

    at_s: float
    gpu: int | None
    """None: all of them."""
    busy_percent: float
    used_mib: float
    power_w: float
    clock_mhz: float = 1980.0
    temperature_c: float = 45.0
    throttle: int = 0
    gpm: Mapping[int, float] = MappingProxyType({})
    """What the trace itself says of GPM's metrics."""

    @property
    def used_bytes(self) -> int:
        """Device memory in use."""
        return int(self.used_mib * _MIB)


@dataclass(frozen=True)
class Scenario:
    """A scenario file in memory, and the figures that follow from it."""

    lines: tuple[str, ...] = ()

    @classmethod
    def load(cls, name: str) -> Scenario:
        """Read one of the ready scenarios, such as `h100x8_busy`."""
        return cls(tuple((SCENARIOS / f"{name}.txt").read_text(encoding="utf-8").splitlines()))

    def plus(self, *lines: str) -> Scenario:
        """Return the scenario with more lines; the first refusal that fits an answer wins."""
        return replace(self, lines=(*self.lines, *lines))

    def write(self, path: Path) -> Path:
        """Write the scenario as the stub reads it."""
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return path

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return int(self._last("gpus", "1"))

    @property
    def end_s(self) -> float:
        """Length of the trace."""
        return float(self._last("end", "0"))

    @property
    def loops(self) -> bool:
        """Whether the trace starts anew at its end."""
        return self._last("replay", "once") == "loop"

    def steps(self, gpu: int) -> list[Step]:
        """Return the trace of one GPU."""
        found = []
        for line in self.lines:
            words = line.partition("#")[0].split()
            if words and words[0][0].isdigit() and words[1] in {"*", str(gpu)}:
                plain = [word for word in words if "=" not in word]
                numbers = [float(word) for word in plain[2:7]]
                throttle = int(plain[7], 0) if len(plain) > 7 else 0
                pairs = (word.split("=") for word in words if "=" in word)
                gpm = {int(metric): float(value) for metric, value in pairs}
                found.append(Step(float(words[0]), gpu, *numbers, throttle=throttle, gpm=gpm))
        return found

    def at(self, gpu: int, t_s: float) -> Step:
        """Return what one GPU does `t_s` seconds after the trace began."""
        within_s = t_s % self.end_s if self.loops else t_s
        return [step for step in self.steps(gpu) if step.at_s <= within_s][-1]

    def energy_j(self, gpu: int, t_s: float) -> float:
        """Return what one GPU's counter has counted in the first `t_s` seconds."""
        rest_w = float(self._last(f"module_w {gpu}", self._last("module_w *", "0")))
        return self._integral(gpu, t_s, lambda step: step.power_w) + rest_w * t_s

    def busy_percent_s(self, gpu: int, t_s: float) -> float:
        """Return the integral of one GPU's load over the first `t_s` seconds."""
        return self._integral(gpu, t_s, lambda step: step.busy_percent)

    def gpm_mean(self, gpu: int, metric: int, since_s: float, until_s: float) -> float:
        """Return the mean of one of GPM's metrics, in its unit, over some time of the trace."""

        def value(step: Step) -> float:
            return step.gpm.get(metric, GPM_PER_PERCENT[metric] * step.busy_percent)

        total = self._integral(gpu, until_s, value) - self._integral(gpu, since_s, value)
        return total / (until_s - since_s)

    def _integral(self, gpu: int, t_s: float, column: Callable[[Step], float]) -> float:
        if self.loops and t_s > self.end_s:
            once = self._integral(gpu, self.end_s, column)
            return once + self._integral(gpu, t_s - self.end_s, column)
        steps = self.steps(gpu)
        bounds = [min(step.at_s, t_s) for step in steps] + [t_s]
        return sum(
            column(step) * (until - since)
            for step, since, until in zip(steps, bounds, bounds[1:], strict=False)
        )

    def _last(self, key: str, otherwise: str) -> str:
        for line in reversed(self.lines):
            words = line.partition("#")[0].split()
            if words[:-1] == key.split():
                return words[-1]
        return otherwise
