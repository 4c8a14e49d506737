"""A store on this machine that answers as Prometheus does, and series in the shape of exporters."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import struct
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pyarrow as pa

__all__ = ["BEGIN_S", "SHAPES", "MetricStore", "One", "Truth", "served", "shape", "uuid"]

BEGIN_S = 1_795_000_000
_RANGE = ("start", "end", "step")
_MATCHER = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')


class One(NamedTuple):
    """One series: labels, and pairs of time in s and value."""

    labels: dict[str, str]
    values: list[tuple[float, float]]


class MetricStore:
    """What a store has, what it was asked, and what it answers."""

    def __init__(self, series: list[One]) -> None:
        self.series = series
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        """Path, parameters and headers of each request."""
        self.written: list[tuple[str, dict[str, str], bytes]] = []
        """Path, headers and content of each request that writes."""
        self.answers: list[tuple[int, bytes, dict[str, str]]] = []
        """Special answers, which come before the usual ones."""
        self.lost = 0
        """Number of answers that are lost, although the store has accepted the values."""
        self.silent = threading.Event()
        """If it is set, the store accepts requests and does not answer."""
        self.address = ""

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Keep the values of a request that writes."""
        self.written.append((path, headers, body))
        read = {"/api/v1/write": read_remote_write, "/api/v1/import": read_json_lines}
        self.series += read.get(path, read_otlp)(body)

    def values(self) -> dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]:
        """Return all values by labels, in the order in which they came."""
        found: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
        for one in self.series:
            found.setdefault(tuple(sorted(one.labels.items())), []).extend(one.values)
        return found

    def find(self, query: str, end_s: float) -> list[dict[str, Any]]:
        """Return all samples of some time before a moment."""
        selector, _, seconds = query.rpartition("[")
        begin_s = end_s - int(seconds.removesuffix("s]"))
        return [
            _result(one, inside)
            for one in self._matching(selector)
            if (inside := [pair for pair in one.values if begin_s <= pair[0] <= end_s])
        ]

    def pick(self, query: str, begin_s: float, end_s: float, step_s: float) -> list[dict[str, Any]]:
        """Return the last sample before each moment, as Prometheus does for up to 5 min."""
        moments = [begin_s + n * step_s for n in range(int((end_s - begin_s) / step_s) + 1)]
        return [
            _result(one, inside)
            for one in self._matching(query)
            if (
                inside := [
                    (at, before[-1])
                    for at in moments
                    if (before := [v for t, v in one.values if at - 300 < t <= at])
                ]
            )
        ]

    def _matching(self, selector: str) -> list[One]:
        matchers = _MATCHER.findall(selector)
        return [
            one
            for one in self.series
            if all(_fits(one.labels.get(name, ""), kind, text) for name, kind, text in matchers)
        ]


def _result(one: One, values: list[tuple[float, float]]) -> dict[str, Any]:
    return {"metric": one.labels, "values": [[at, str(value)] for at, value in values]}


def read_json_lines(body: bytes) -> list[One]:
    """Read the JSON lines of VictoriaMetrics."""
    found = []
    for line in map(json.loads, body.splitlines()):
        times = [at / 1000 for at in line["timestamps"]]
        found.append(One(line["metric"], list(zip(times, line["values"], strict=True))))
    return found


def read_otlp(body: bytes) -> list[One]:
    """Read OTLP in protobuf; the kind of a metric is the label `kind`."""
    found = []
    for _, resource in _fields(gzip.decompress(body)):
        scope = dict(_fields(resource))[2]
        for metric in (content for number, content in _fields(scope) if number == 2):
            parts = dict(_fields(metric))
            kind = "sum" if 7 in parts else "gauge"
            own = {"__name__": parts[1].decode(), "kind": kind}
            content = _fields(parts[7 if kind == "sum" else 5])
            for point in (point for number, point in content if number == 1):
                inner = list(_fields(point))
                pairs = [dict(_fields(part)) for number, part in inner if number == 7]
                labels = {pair[1].decode(): dict(_fields(pair[2]))[1].decode() for pair in pairs}
                at_s = struct.unpack("<Q", dict(inner)[3])[0] / 1e9
                value = struct.unpack("<d", dict(inner)[4])[0]
                found.append(One({**own, **labels}, [(at_s, value)]))
    return found


def read_remote_write(body: bytes) -> list[One]:
    """Read remote write 1.0, with no more of protobuf than it needs."""
    size, _ = _varint(body, 0)
    message = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
    found = []
    for _, content in _fields(message):
        labels, values = {}, []
        for number, part in _fields(content):
            inner = dict(_fields(part))
            if number == 1:
                labels[inner[1].decode()] = inner[2].decode()
            else:
                values.append((inner[2] / 1000, struct.unpack("<d", inner[1])[0]))
        found.append(One(labels, values))
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not content[at - 1] & 0x80:
            return number, at


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        if key & 7 == 2:
            size, at = _varint(content, at)
            yield key >> 3, content[at : at + size]
            at += size
        elif key & 7 == 1:
            yield key >> 3, content[at : at + 8]
            at += 8
        else:
            number, at = _varint(content, at)
            yield key >> 3, number


def _fits(label: str, kind: str, text: str) -> bool:
    text = re.sub(r"\\(.)", r"\1", text)
    return label == text if kind == "=" else re.fullmatch(text, label) is not None


@contextlib.contextmanager
def served(store: MetricStore) -> Iterator[MetricStore]:
    """Serve a store on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = dict(self.headers)
            if store.silent.is_set():
                over.wait(30)
                return
            if store.answers:
                self._answer(*store.answers.pop(0))
                return
            if not self.path.startswith("/api/v1/query"):
                store.take(self.path, headers, body)
                if store.lost:
                    store.lost -= 1
                    self.close_connection = True
                    return
                self._answer(204, b"", {})
                return
            words = dict(urllib.parse.parse_qsl(body.decode()))
            store.asked.append((self.path, words, headers))
            if self.path.endswith("query_range"):
                result = store.pick(words["query"], *(float(words[k]) for k in _RANGE))
            else:
                result = store.find(words["query"], float(words["time"]))
            data = {"resultType": "matrix", "result": result}
            self._answer(200, json.dumps({"status": "success", "data": data}).encode(), {})

        def do_GET(self) -> None:
            self._answer(200, b"", {})

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if status != 204:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    over = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield store
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Truth(NamedTuple):
    """The values of a job on some nodes with two GPUs each, in Teho's units."""

    job: str = "4711"
    hosts: tuple[str, ...] = ("g1", "g2")
    count: int = 60
    every_s: float = 15.0
    gpus: int = 2
    begin_s: float = BEGIN_S

    @property
    def times(self) -> list[float]:
        return [self.begin_s + self.every_s * (number + 1) for number in range(self.count)]

    def gpu(self, host: str, index: int) -> dict[str, list[float]]:
        """Return the values of a GPU by metric; the last GPU of the last node is idle."""
        is_idle = (host, index) == (self.hosts[-1], self.gpus - 1)
        seed = 7 * index + 13 * self.hosts.index(host)
        busy = [0 if is_idle else 60 + (seed + 11 * n) % 40 for n in range(self.count)]
        return {
            "gpu_busy_percent": [float(one) for one in busy],
            "gpu_memory_used_bytes": [float((400 + (0 if is_idle else one)) << 20) for one in busy],
            "gpu_power_w": [60.0 + 2 * one for one in busy],
            "gpu_temperature_c": [30.0 + one // 4 for one in busy],
        }

    def node(self, host: str) -> dict[str, list[float]]:
        """Return the values of the job's part of a node."""
        size = 4 + self.hosts.index(host)
        return {
            "job_memory_bytes": [float((size << 30) + (n << 20)) for n in range(self.count)],
            "job_cpu_s": [self.every_s * size * n for n in range(self.count)],
        }


GPU_BYTES = 80 << 30
SHAPES = ("jobstats", "slurm-job-exporter", "dcgm-exporter", "omnistat", "teho")


def _gpu_series(truth: Truth, names: dict[str, str], labels: Any, **factors: float) -> list[One]:
    """Return series of all GPUs: metric of Teho -> name in the store."""
    return [
        One(
            {"__name__": name, **labels(host, index)},
            [
                (at, value / factors.get(metric, 1.0))
                for at, value in zip(truth.times, truth.gpu(host, index)[metric], strict=True)
            ],
        )
        for host in truth.hosts
        for index in range(truth.gpus)
        for metric, name in names.items()
    ]


def _same(name: str, value: float, truth: Truth, labels: dict[str, str]) -> One:
    return One({"__name__": name, **labels}, [(at, value) for at in truth.times])


def _of_nodes(truth: Truth, names: dict[str, tuple[str, float]], labels: Any) -> list[One]:
    return [
        One(
            {"__name__": name, **labels(host)},
            [
                (at, value * factor)
                for at, value in zip(truth.times, truth.node(host)[metric], strict=True)
            ],
        )
        for host in truth.hosts
        for metric, (name, factor) in names.items()
    ]


def uuid(host: str, index: int) -> str:
    return f"GPU-{host}-{index}"


def shape(exporter: str, truth: Truth) -> list[One]:
    """Return the series that an exporter has of a job; its values are those of the truth."""
    return {
        "jobstats": _jobstats,
        "slurm-job-exporter": _slurm_job_exporter,
        "dcgm-exporter": _dcgm,
        "omnistat": _omnistat,
        "teho": _teho,
    }[exporter](truth)


def _jobstats(truth: Truth) -> list[One]:
    def labels(host: str, index: int) -> dict[str, str]:
        return {
            "instance": f"{host}:9445", "cluster": "puhti", "ordinal": str(index),
            "minor_number": str(index), "uuid": uuid(host, index), "name": "NVIDIA A100",
        }  # fmt: skip

    def of_job(host: str) -> dict[str, str]:
        return {"instance": f"{host}:9306", "jobid": truth.job, "step": "", "task": ""}

    found = _gpu_series(
        truth,
        {
            "gpu_busy_percent": "nvidia_gpu_duty_cycle",
            "gpu_memory_used_bytes": "nvidia_gpu_memory_used_bytes",
            "gpu_power_w": "nvidia_gpu_power_usage_milliwatts",
            "gpu_temperature_c": "nvidia_gpu_temperature_celsius",
        },
        labels,
        gpu_power_w=1e-3,
    )
    for host in truth.hosts:
        for index in range(truth.gpus):
            own = labels(host, index)
            found.append(_same("nvidia_gpu_memory_total_bytes", GPU_BYTES, truth, own))
            found.append(_same("nvidia_gpu_jobId", float(truth.job), truth, own))
    of_nodes = {
        "job_memory_bytes": ("cgroup_memory_rss_bytes", 1.0),
        "job_cpu_s": ("cgroup_cpu_total_seconds", 1.0),
    }
    return found + _of_nodes(truth, of_nodes, of_job)


def _slurm_job_exporter(truth: Truth) -> list[One]:
    def of_job(host: str) -> dict[str, str]:
        return {"instance": f"{host}:9798", "slurmjobid": truth.job, "user": "anna"}

    def labels(host: str, index: int) -> dict[str, str]:
        return {**of_job(host), "gpu": str(index), "gpu_type": "NVIDIA A100"}

    found = _gpu_series(
        truth,
        {
            "gpu_busy_percent": "slurm_job_utilization_gpu",
            "gpu_memory_used_bytes": "slurm_job_memory_usage_gpu",
            "gpu_power_w": "slurm_job_power_gpu",
        },
        labels,
        gpu_power_w=1e-3,
    )
    for host in truth.hosts:
        for index in range(truth.gpus):
            own = labels(host, index)
            found.append(_same("slurm_job_memory_total_gpu", GPU_BYTES, truth, own))
    found += _of_nodes(truth, {"job_memory_bytes": ("slurm_job_memory_rss", 1.0)}, of_job)
    for core in range(2):  # the CPU time of the job is the sum of its cores
        half = {"job_cpu_s": ("slurm_job_core_usage_total", 5e8)}
        found += _of_nodes(truth, half, lambda host, core=core: {**of_job(host), "core": str(core)})
    return found


def _dcgm(truth: Truth) -> list[One]:
    def labels(host: str, index: int) -> dict[str, str]:
        return {
            "Hostname": host, "instance": "10.0.0.9:9400", "gpu": str(index),
            "UUID": uuid(host, index), "modelName": "NVIDIA A100", "hpc_job": truth.job,
        }  # fmt: skip

    found = _gpu_series(
        truth,
        {
            "gpu_busy_percent": "DCGM_FI_DEV_GPU_UTIL",
            "gpu_memory_used_bytes": "DCGM_FI_DEV_FB_USED",
            "gpu_power_w": "DCGM_FI_DEV_POWER_USAGE",
            "gpu_temperature_c": "DCGM_FI_DEV_GPU_TEMP",
        },
        labels,
        gpu_memory_used_bytes=2.0**20,
    )
    for host in truth.hosts:
        for index in range(truth.gpus):
            size = GPU_BYTES / 2**20
            found.append(_same("DCGM_FI_DEV_FB_TOTAL", size, truth, labels(host, index)))
    return found


def _omnistat(truth: Truth) -> list[One]:
    def labels(host: str, index: int) -> dict[str, str]:
        return {"instance": f"{host}:8001", "card": str(index)}

    found = _gpu_series(
        truth,
        {
            "gpu_busy_percent": "rocm_utilization_percentage",
            "gpu_memory_used_bytes": "rocm_vram_used_percentage",
            "gpu_power_w": "rocm_average_socket_power_watts",
        },
        labels,
        gpu_memory_used_bytes=GPU_BYTES / 100,
    )
    for host in truth.hosts:
        for index in range(truth.gpus):
            found.append(_same("rocm_vram_total_bytes", GPU_BYTES, truth, labels(host, index)))
        own = {"instance": f"{host}:8001", "jobid": truth.job, "user": "anna"}
        found.append(_same("rmsjob_info", 1.0, truth, own))
    return found


def _teho(truth: Truth) -> list[One]:
    def labels(host: str, index: int) -> dict[str, str]:
        return {"node": host, "gpu": str(index), "uuid": uuid(host, index), "vendor": "nvidia"}

    names = {
        "gpu_busy_percent": "teho_gpu_busy_percent",
        "gpu_memory_used_bytes": "teho_gpu_memory_used_bytes",
        "gpu_power_w": "teho_gpu_power_w",
        "gpu_temperature_c": "teho_gpu_temperature_c",
    }
    found = _gpu_series(truth, names, labels)
    of_nodes = {
        "job_memory_bytes": ("teho_job_memory_bytes", 1.0),
        "job_cpu_s": ("teho_job_cpu_s_total", 1.0),
    }
    found += _of_nodes(truth, of_nodes, lambda host: {"node": host})
    for host in truth.hosts:
        about = {"run": "r1", "jobid": truth.job}
        found.append(_same("teho_job_info", 1.0, truth, {"node": host, **about}))
        for index in range(truth.gpus):
            own = {**labels(host, index), **about}
            found.append(_same("teho_job_info", 1.0, truth, own))
            own = {**labels(host, index), "model": "NVIDIA A100"}
            found.append(_same("teho_gpu_memory_total_bytes", GPU_BYTES, truth, own))
    return found
