"""Records what this machine's GPUs and sensors answer, as data that the stand-ins replay.

    python tests/stubs/record_devices.py FOLDER [--for 60] [--every 1] [-- COMMAND…]

It needs nvidia-ml-py alone, and no right that its user lacks. Where there is an NVIDIA driver,
`FOLDER/nvml.txt` becomes a scenario for the stand-in of its library (tests/stubs/nvml/README.md):
what stands on each GPU's label, what each call refused, and a step for each sample. A figure of
GPM is the mean over the time until the next step; what the energy counter said stands behind
each step as a comment, in mJ, so that it can be held against the power. Files of sysfs that tell
of AMD GPUs, Cray nodes and CPU energy become trees, `FOLDER/sysfs-N`, one every ten seconds,
which readers take as their `root`. No serial number, host name or process of others is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pynvml

__all__ = ["keep_tree", "record", "record_nvml"]

_MIB = 1024**2
_TREES_EVERY_S = 10.0
_GPM = (2, 3, 4, 5, 10, 11, 12, 13, 20, 21, 60, 61)
_ERRORS = {
    value: name.removeprefix("NVML_ERROR_")
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_")
}
_POWER = pynvml.NVML_FI_DEV_POWER_INSTANT
_UNIQUE_ID = re.compile(rb"^unique_id (\d+)$", re.MULTILINE)
_TREES = (
    "sys/class/drm/card*/device/{vendor,device,gpu_busy_percent,mem_busy_percent,gpu_metrics}",
    "sys/class/drm/card*/device/{mem_info_vram_total,mem_info_vram_used,numa_node,product_name}",
    "sys/class/drm/card*/device/ras/*_err_count",
    "sys/class/drm/card*/device/hwmon/hwmon*/{name,power1_*,freq*_input,temp*_input,temp*_label}",
    "sys/class/kfd/kfd/topology/nodes/*/{gpu_id,properties}",
    "sys/class/kfd/kfd/topology/nodes/*/io_links/*/properties",
    "sys/class/hwmon/hwmon*/{name,power1_average}",
    "sys/class/powercap/*/{name,energy_uj,max_energy_range_uj}",
    "sys/cray/pm_counters/*",
)


def main(arguments: list[str]) -> int:
    """Read the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--for", dest="length_s", type=float, default=60.0)
    parser.add_argument("--every", dest="period_s", type=float, default=1.0)
    parser.add_argument("--root", type=Path, default=Path("/"), help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args(arguments)
    program = subprocess.Popen(options.command) if options.command else None
    try:
        record(options.folder, options.length_s, options.period_s, options.root)
    finally:
        if program:
            program.terminate()
            program.wait()
    return 0


def record(folder: Path, length_s: float, period_s: float, root: Path = Path("/")) -> None:
    """Record everything that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    trees = 0

    def keep_trees(elapsed_s: float) -> None:
        nonlocal trees
        if elapsed_s >= trees * _TREES_EVERY_S:
            keep_tree(root, folder / f"sysfs-{trees}")
            trees += 1

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        sys.stderr.write(f"no NVIDIA driver: {error}\n")
        end_s = time.monotonic() + length_s
        while (left_s := end_s - time.monotonic()) > 0:
            keep_trees(length_s - left_s)
            time.sleep(min(left_s, period_s))
        return
    try:
        lines = record_nvml(length_s, period_s, keep_trees)
    finally:
        pynvml.nvmlShutdown()
    (folder / "nvml.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


# NVIDIA


class _Gpu:
    """One GPU: what it refuses, and what it says at a moment."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        self.refusals: dict[str, str] = {}
        self.steps: list[tuple[float, str, str]] = []
        self._samples: list[Any] = []
        gpm = self._ask("nvmlGpmQueryDeviceSupport")
        self._has_gpm = bool(gpm and gpm.isSupportedDevice)
        for name in ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetTotalEccErrors"):
            words = (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC)
            self._ask(name, *(words if "Ecc" in name else ()))
        self._ask("nvmlDeviceGetProcessUtilization", 0)
        self._ask("nvmlDeviceGetAccountingMode")

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Call NVML; a refusal is noted and is None."""
        try:
            return getattr(pynvml, name)(self.handle, *arguments)
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:  # no process runs: no refusal
                self.refusals[name] = _ERRORS.get(error.value, "UNKNOWN")
            return None

    def _field(self, number: int) -> int | None:
        """Read a field that holds an unsigned number; a refusal is noted and is None."""
        (answer,) = self._ask("nvmlDeviceGetFieldValues", [number]) or (None,)
        if answer is None:
            return None
        if answer.nvmlReturn != pynvml.NVML_SUCCESS:
            self.refusals[f"field:{number}"] = _ERRORS.get(answer.nvmlReturn, "UNKNOWN")
            return None
        is_long = answer.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
        return int(answer.value.ullVal if is_long else answer.value.uiVal)

    def label(self) -> Iterable[str]:
        """Return the lines of what does not change."""
        yield f"name {self.index} {self._ask('nvmlDeviceGetName')}"
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        if memory:
            yield f"memory_mib {self.index} {memory.total // _MIB}"
        limit_mw = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        if limit_mw is not None:
            yield f"power_limit_w {self.index} {limit_mw / 1000:g}"
        for key, name in (
            ("p_state", "nvmlDeviceGetPerformanceState"),
            ("compute_mode", "nvmlDeviceGetComputeMode"),
        ):
            number = self._ask(name)
            if number:
                yield f"{key} {self.index} {number}"
        if self._ask("nvmlDeviceGetAccountingMode"):
            yield f"accounting {self.index} on"

    def step(self, elapsed_s: float) -> None:
        """Take one step of the trace."""
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        memory = self._ask("nvmlDeviceGetMemoryInfo", pynvml.nvmlMemory_v2)
        power_mw = self._field(_POWER)
        if power_mw is None:
            power_mw = self._ask("nvmlDeviceGetPowerUsage")
        clock_mhz = self._ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM)
        celsius = self._ask("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU)
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        numbers = (
            rates.gpu if rates else 0,
            memory.used // _MIB if memory else 0,
            (power_mw or 0) / 1000,
            clock_mhz or 0,
            celsius or 0,
            hex(bits or 0),
        )
        text = f"{elapsed_s:.3f} {self.index} " + " ".join(map(str, numbers))
        energy_mj = self._ask("nvmlDeviceGetTotalEnergyConsumption")
        self._note_gpm()
        self.steps.append((elapsed_s, text, f"  # energy_mj {energy_mj}"))

    def _note_gpm(self) -> None:
        """Write the means since the step before behind that step."""
        if not self._has_gpm:
            return
        try:
            sample = pynvml.nvmlGpmSampleAlloc()
            pynvml.nvmlGpmSampleGet(self.handle, sample)
        except pynvml.NVMLError as error:
            self.refusals["nvmlGpmSampleGet"] = _ERRORS.get(error.value, "UNKNOWN")
            self._has_gpm = False
            return
        self._samples.append(sample)
        if len(self._samples) < 2:
            return
        older, newer = self._samples
        self._samples.remove(older)
        request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics, request.sample1, request.sample2 = len(_GPM), older, newer
        for slot, number in zip(request.metrics, _GPM, strict=False):
            slot.metricId = number
        answers = pynvml.nvmlGpmMetricsGet(request)
        pynvml.nvmlGpmSampleFree(older)
        pairs = []
        for slot in answers.metrics[: len(_GPM)]:
            if slot.nvmlReturn == pynvml.NVML_SUCCESS:
                pairs.append(f" {slot.metricId}={slot.value:g}")
            else:
                refusal = _ERRORS.get(slot.nvmlReturn, "UNKNOWN")
                self.refusals[f"gpm:{slot.metricId}"] = refusal
        at_s, text, comment = self.steps[-1]
        self.steps[-1] = (at_s, text + "".join(pairs), comment)

    def close(self) -> None:
        """Free the last sample."""
        for sample in self._samples:
            pynvml.nvmlGpmSampleFree(sample)


def record_nvml(
    length_s: float, period_s: float, at_each: Callable[[float], None] = lambda _: None
) -> list[str]:
    """Return the lines of a scenario; NVML is started already.

    Args:
        length_s: how long to watch.
        period_s: time between two steps, more than 0.1 s for GPM's sake.
        at_each: called with the seconds that have passed.
    """
    gpus = [_Gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
    day = datetime.now(timezone.utc).date()
    driver = pynvml.nvmlSystemGetDriverVersion()
    head = [f"# Recorded on {day}.", f"gpus {len(gpus)}", f"driver {driver}"]
    head.append(f"cuda {pynvml.nvmlSystemGetCudaDriverVersion()}")
    for gpu in gpus:
        head += gpu.label()
    began_s, count = time.monotonic(), 0
    while (elapsed_s := time.monotonic() - began_s) <= length_s:
        for gpu in gpus:
            gpu.step(time.monotonic() - began_s)
        at_each(elapsed_s)
        count += 1
        time.sleep(max(0.0, began_s + count * period_s - time.monotonic()))
    for gpu in gpus:
        gpu.close()
        # The first step is the scenario's beginning.
        gpu.steps[0] = (0.0, gpu.steps[0][1].replace(f"{gpu.steps[0][0]:.3f}", "0", 1), "")
        head += [f"fail {name} {gpu.index} {why}" for name, why in gpu.refusals.items()]
    head.append(f"end {time.monotonic() - began_s:.3f}")
    steps = sorted((step for gpu in gpus for step in gpu.steps), key=lambda step: step[0])
    return [*head, *(text + comment for _, text, comment in steps)]


# sysfs


def keep_tree(root: Path, folder: Path) -> None:
    """Copy the files of `_TREES` that can be read, with the links on the way to them."""
    for pattern in _TREES:
        for single in _alternatives(pattern):
            for path in sorted(root.glob(single)):
                _keep(root, path.relative_to(root), folder)


def _alternatives(pattern: str) -> Iterable[str]:
    """Return a pattern once for each name between its braces."""
    before, brace, rest = pattern.partition("{")
    names, _, after = rest.partition("}")
    return [before + name + after for name in names.split(",")] if brace else [pattern]


def _keep(root: Path, path: Path, folder: Path) -> None:
    here = root
    parts = list(path.parts)
    while parts:
        here /= parts.pop(0)
        copy = folder / here.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if here.is_symlink():
            target = Path(os.path.normpath(here.parent / here.readlink()))
            if not target.is_relative_to(root):
                return
            if not copy.is_symlink():
                copy.symlink_to(os.path.relpath(target, here.parent))
            here = target
    with contextlib.suppress(OSError):
        copy = folder / here.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_UNIQUE_ID.sub(_another, here.read_bytes()))


def _another(match: re.Match[bytes]) -> bytes:
    """Put another number in the place of a chip's own, the same for the same chip."""
    digest = hashlib.sha256(match[0]).digest()
    return b"unique_id %d" % (int.from_bytes(digest[:6], "big") if int(match[1]) else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
