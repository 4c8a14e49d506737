"""Starts a real Prometheus or VictoriaMetrics, of Debian, for tests and benchmarks."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from metric_store import One

from teho.errors import StoreError
from teho.jobs.http import Store, request

__all__ = ["KINDS", "Running", "lacks", "running"]

_PROGRAMS = {"prometheus": "prometheus", "victoriametrics": "victoria-metrics"}
KINDS = tuple(_PROGRAMS)
_WAIT_S = 60.0


def lacks(kind: str) -> str:
    """Return why a store cannot run here; empty if it can."""
    program = _PROGRAMS[kind]
    if shutil.which(program):
        return ""
    return f"no {program}; tests/debian-packages.sh installs it"


class Running(NamedTuple):
    """A store that runs."""

    kind: str
    store: Store
    stop: Callable[[], object]
    """Ends the store as a site does, and waits for its end."""

    def asked(self, query: str, at_s: float) -> Any:
        body = urllib.parse.urlencode({"query": query, "time": at_s}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        end_s = time.monotonic() + _WAIT_S
        while True:
            try:
                answer = json.loads(request(self.store, "/api/v1/query", body, headers))
            except StoreError as error:
                # Prometheus 2.42 answers so while it makes blocks (prometheus/prometheus, 13115).
                if "cannot populate chunk" not in error.found or time.monotonic() > end_s:
                    raise
                time.sleep(0.1)
            else:
                assert answer["status"] == "success"
                return answer["data"]["result"]

    def flush(self) -> None:
        if self.kind == "victoriametrics":
            request(self.store, "/internal/force_flush", method="GET")


def _openmetrics_of(series: Sequence[One]) -> str:
    """Return series as a text for promtool, in the order that the format demands."""
    by_name: dict[str, list[One]] = {}
    for one in series:
        by_name.setdefault(one.labels["__name__"], []).append(one)
    lines = []
    for name, own in by_name.items():
        for one in own:
            labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items() if k != "__name__")
            lines += [f"{name}{{{labels}}} {value!r} {at}" for at, value in one.values]
    return "\n".join([*lines, "# EOF\n"])


def _lines_of(series: Sequence[One]) -> bytes:
    """Return series as JSON lines for VictoriaMetrics."""
    return "\n".join(
        json.dumps(
            {
                "metric": one.labels,
                "values": [value for _, value in one.values],
                "timestamps": [round(1000 * at) for at, _ in one.values],
            }
        )
        for one in series
    ).encode()


@contextmanager
def running(
    kind: str, folder: Path, series: Sequence[One], port: int = 0, scrape: Sequence[object] = ()
) -> Iterator[Running]:
    """Run a store that has these series, and those that an earlier store had in this folder.

    Args:
        kind: one of `KINDS`.
        folder: for its files.
        series: what it has at first.
        port: its port; 0: any free port.
        scrape: what it reads regularly, as `scrape_configs` of Prometheus.
    """
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    scrapes = f"scrape_configs: {json.dumps(scrape)}\n"  # JSON is YAML
    if kind == "prometheus":
        (folder / "text").write_text(_openmetrics_of(series))
        words = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "text", "data"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        window = "storage: {tsdb: {out_of_order_time_window: 3000d}}\n"
        (folder / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1h}}\n{window}{scrapes}"
        )
        words = [
            "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
            "--storage.tsdb.retention.time=100y", f"--web.listen-address={address}",
            "--web.enable-remote-write-receiver",
        ]  # fmt: skip
        ready = "/-/ready"
    else:
        (folder / "scrape.yml").write_text(scrapes)
        words = [
            "victoria-metrics", "-storageDataPath=data", f"-httpListenAddr={address}",
            "-retentionPeriod=100y", "-promscrape.config=scrape.yml",
        ]  # fmt: skip
        ready = "/health"
    server = subprocess.Popen(
        words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def stop() -> None:
        server.send_signal(signal.SIGTERM)
        server.wait(30)

    started = Running(kind, Store(f"http://{address}"), stop)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def is_ready() -> bool:
        assert server.poll() is None
        try:
            with opener.open(f"http://{address}{ready}", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        end_s = time.monotonic() + _WAIT_S
        while not is_ready():
            assert time.monotonic() < end_s
            time.sleep(0.02)
        if kind == "victoriametrics":
            request(started.store, "/api/v1/import", _lines_of(series))
            started.flush()
        yield started
    finally:
        stop()
