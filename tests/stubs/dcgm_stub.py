"""A dcgm-exporter's page and a stand-in `dcgmi`, and what to expect of them."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from teho.devices.dcgm.client import Dcgm
from teho.model.device import Device, Reading
from teho.model.missing import Missing, Reason

DCGMI = Path(__file__).with_name("dcgm")
"""The folder of the stand-in."""


def gpu(uuid: str, index: int = 0, parent: str | None = None) -> Device:
    return Device(id=uuid, index=index, name="NVIDIA A100", vendor="nvidia", parent_id=parent)


FIRST, SECOND = gpu("GPU-aaaa"), gpu("GPU-bbbb", 1)
SLICES = (gpu("MIG-0000", 0, "GPU-bbbb"), gpu("MIG-1111", 1, "GPU-bbbb"))


def wait_for(
    dcgm: Dcgm, wanted: Callable[[dict[str, dict[str, Reading]]], object], timeout_s: float = 10
) -> dict[str, dict[str, Reading]]:
    """Read until the figures are as wanted."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        began_s = time.monotonic()
        readings = dcgm.read()
        assert time.monotonic() - began_s < 0.5, "a reading waits for nobody"
        if wanted(readings):
            return readings
        assert time.monotonic() < deadline_s, readings
        time.sleep(0.01)


def figures(dcgm: Dcgm, uuid: str = "GPU-aaaa") -> dict[str, Reading]:
    """Wait for the first figures, and leave out those that the page does not have."""
    values = wait_for(dcgm, lambda found: found.get(uuid))[uuid]
    return {
        name: value
        for name, value in values.items()
        if not (isinstance(value, Missing) and value.reason is Reason.ABSENT)
    }


def failed(readings: dict[str, dict[str, Reading]], words: str) -> bool:
    """Tell whether nothing is known, with a reason that has these words."""
    return all([readings, *readings.values()]) and all(
        isinstance(value, Missing) and value.reason is Reason.FAILED and words in value.detail
        for values in readings.values()
        for value in values.values()
    )


class Exporter:
    """A server on this machine, and what it does with the next request."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.status = 200
        self.hangs = False
        self.trickles = False
        self.looks = itertools.count()
        self.over = threading.Event()
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.hangs:
            self.over.wait(30)
            return
        request.send_response(self.status)
        request.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        request.end_headers()
        try:
            while self.trickles and not self.over.wait(0.05):
                request.wfile.write(b"DCGM_FI_PROF_SM_ACTIVE")
            # The lines of the Go runtime move with each look.
            runtime = f'go_memstats_alloc_bytes{{version="1"}} {next(self.looks)}'
            text = "".join(f"{line}\n" for line in [*self.lines, runtime])
            request.wfile.write(text.encode())
        except OSError:
            pass

    def show(self, *lines: str) -> None:
        """Renew the page."""
        heads = ("# HELP DCGM_FI_PROF_SM_ACTIVE The ratio.", "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge")
        self.lines = [*heads, *lines]

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def line(name: str, uuid: str, value: str, more: str = "", stamp: str = "") -> str:
    """Write a line as dcgm-exporter does."""
    labels = f'gpu="0",UUID="{uuid}",pci_bus_id="00000000:18:00.0",device="nvidia0"'
    labels += f',modelName="NVIDIA A100-SXM4-40GB"{more},Hostname="g1"'
    return f"DCGM_FI_PROF_{name}{{{labels}}} {value}{stamp}"


class Engine:
    """A scenario of the stand-in `dcgmi`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "dcgm.json"
        self.calls = folder / "calls"
        self.env = {"PATH": f"{DCGMI}:{os.environ['PATH']}", "TEHO_STUB_DCGM": str(self._path)}

    def has(self, **scenario: Any) -> dict[str, str]:
        """Set it up: by default two GPUs, which DCGM counts in another order than we do."""
        gpus = {"0": "GPU-bbbb", "1": "GPU-aaaa"}
        content = {"gpus": gpus, "rows": {}, "period_s": 0.02, "calls": str(self.calls)} | scenario
        self._path.write_text(json.dumps(content))
        return self.env


def rows(**names: dict[str, list[str]]) -> dict[str, dict[str, list[str]]]:
    """Name rows without blanks: GPU_0 for "GPU 0", GPU_I_3 for "GPU-I 3"."""
    return {
        name.replace("GPU_I_", "GPU-I ").replace("GPU_", "GPU "): texts
        for name, texts in names.items()
    }
