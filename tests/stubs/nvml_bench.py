"""The unmodified pynvml over the stub, in this process, with a clock that the test sets."""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

import pynvml
import pytest
from nvml_stub import Scenario

from teho.devices.nvidia import details as nvidia_details
from teho.devices.nvidia import gpm as nvidia_gpm
from teho.devices.nvidia import processes as nvidia_processes
from teho.devices.nvidia import signals as nvidia_signals
from teho.devices.nvidia.source import NvidiaSource
from teho.errors import DeviceError
from teho.model.device import Device
from teho.model.metric import metrics_of

__all__ = [
    "ACTIVITY",
    "GPU_METRICS",
    "HOST_NAMESPACE",
    "JOB_BUSY",
    "MIB",
    "NVLINK",
    "ONE",
    "PCIE",
    "RATES",
    "Bench",
]

MIB = 1024**2
GPU_METRICS = {metric.name for metric in metrics_of("gpu")}
PCIE = {"gpu_pcie_receive_bytes_per_s", "gpu_pcie_send_bytes_per_s"}
NVLINK = {"gpu_nvlink_receive_bytes_per_s", "gpu_nvlink_send_bytes_per_s"}
ACTIVITY = {
    "gpu_sm_active_percent",
    "gpu_sm_occupancy_percent",
    "gpu_tensor_percent",
    "gpu_fp64_percent",
    "gpu_fp32_percent",
    "gpu_fp16_percent",
    "gpu_integer_percent",
    "gpu_dram_percent",
}
JOB_BUSY = "gpu_job_busy_percent"
RATES = {*PCIE, *NVLINK, *ACTIVITY, JOB_BUSY}
"""What is a mean since the last reading, and so is left out of the first."""
RARE = {"gpu_ecc_corrected", "gpu_ecc_uncorrected", "gpu_nvlink_errors"}
"""What comes with every thirtieth reading, and where a run begins and ends."""
HOST_NAMESPACE = "pid:[4026531836]"

ONE = Scenario(("gpus 1", "0 0 50 1000 300 1500 50 0"))


class Bench:
    """NVIDIA's source on the stub, under conditions that the test sets.

    Attributes:
        cpu_s: CPU time of this thread, as the source sees it.
        dcgm: what a DCGM on this node tells, by device id; None: there is no DCGM.
        dcgm_asked: the devices for which DCGM was opened, and their GPU instances.
    """

    def __init__(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.tmp_path = tmp_path
        self.root = tmp_path / "root"
        self.set_namespace(HOST_NAMESPACE)
        self.cpu_s = 0.0
        self.dcgm: dict[str, dict[str, float]] | None = None
        self.dcgm_asked: tuple[Sequence[Device], Mapping[str, int]] | None = None
        self.sources: list[NvidiaSource] = []
        self.library = ctypes.CDLL(str(folder / "libnvidia-ml.so.1"))
        monkeypatch.setattr(pynvml, "nvmlLib", self.library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        for module in (nvidia_signals, nvidia_gpm, nvidia_processes, nvidia_details):
            monkeypatch.setattr(module, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(nvidia_signals, "thread_time", lambda: self.cpu_s)
        dcgm = types.ModuleType("teho.devices.dcgm.client")
        dcgm.Dcgm = self._open_dcgm
        monkeypatch.setitem(sys.modules, "teho.devices.dcgm.client", dcgm)
        self.at(0)

    def _open_dcgm(
        self, devices: Sequence[Device], environment: Mapping[str, str], numbers: Mapping[str, int]
    ) -> types.SimpleNamespace:
        self.dcgm_asked = (devices, numbers)
        if self.dcgm is None:
            raise DeviceError("no host engine here")
        return types.SimpleNamespace(
            notes=("from DCGM",), read=lambda: self.dcgm, close=lambda: None
        )

    def at(self, now_s: float) -> None:
        """Set the clocks of the stub and of the source."""
        self.now_s = now_s
        self.monkeypatch.setenv("TEHO_STUB_NVML_NOW", repr(now_s))

    def set_namespace(self, text: str) -> None:
        """Say in which PID namespace the program is."""
        link = self.root / "proc" / "self" / "ns" / "pid"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(text)

    def open(self, scenario: Scenario | str, **environment: str) -> NvidiaSource:
        """Open the source on a scenario; the first one, until it is closed, counts."""
        if isinstance(scenario, str):
            scenario = Scenario.load(scenario)
        path = scenario.write(self.tmp_path / "scenario.txt")
        self.monkeypatch.setenv("TEHO_STUB_NVML", str(path))
        source = NvidiaSource(environment, self.root)
        self.sources.append(source)
        return source

    def with_processes(self, *lines: str, scenario: Scenario = ONE) -> Scenario:
        """Say who runs on GPU 0; a later call changes it under the reader's feet."""
        listed = self.tmp_path / "processes"
        listed.write_text("\n".join(lines))
        return scenario.plus(f"processes 0 file {listed}")

    def read(self, source: NvidiaSource, now_s: float, *pids: int, is_last: bool = False):
        """Read at a time, for the program with these processes; a run begins at 0 s."""
        self.at(now_s)
        return source.read(frozenset(pids), ends=is_last or now_s == 0)

    def count_calls(self, name: str, cost_s: float = 0) -> list[None]:
        """Return a list that grows with each call of a function of pynvml.

        Args:
            name: the function.
            cost_s: CPU time that each call seems to take.
        """
        calls: list[None] = []
        function = getattr(pynvml, name)

        def counted(*arguments):
            calls.append(None)
            self.cpu_s += cost_s
            return function(*arguments)

        self.monkeypatch.setattr(pynvml, name, counted)
        return calls
