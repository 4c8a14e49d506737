"""Answers of Prometheus to `/api/v1/query_range`, of the exporters that clusters have.

The lines of `/api/v1/export` of VictoriaMetrics are also read: they have the times in ms.

Sources of the names: dcgm-exporter (NVIDIA), `docs/metrics.md` of omnistat (AMD), Jobstats' GPU and
cgroup exporters (Princeton), slurm-job-exporter (Alliance), and `teho export --to openmetrics`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from teho.errors import InputError
from teho.jobs.importer import Importer
from teho.jobs.json_stream import pieces_of
from teho.jobs.log import NODE, Log, NodeFacts, Sample, Source, Value
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason

__all__ = ["IMPORTER"]

_TOOL = "Prometheus"
_MIB, _PERCENT = 2.0**20, 100.0
_NVIDIA = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gpu_busy_percent", _PERCENT),
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_busy_percent", 1.0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gpu_memory_busy_percent", 1.0),
    "DCGM_FI_DEV_FB_USED": ("gpu_memory_used_bytes", _MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("gpu_power_w", 1.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("gpu_energy_j", 1e-3),
    "DCGM_FI_DEV_GPU_TEMP": ("gpu_temperature_c", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("gpu_sm_clock_mhz", 1.0),
    "DCGM_FI_DEV_MEM_CLOCK": ("gpu_memory_clock_mhz", 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("gpu_sm_active_percent", _PERCENT),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("gpu_sm_occupancy_percent", _PERCENT),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("gpu_tensor_percent", _PERCENT),
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": ("gpu_fp64_percent", _PERCENT),
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": ("gpu_fp32_percent", _PERCENT),
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": ("gpu_fp16_percent", _PERCENT),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("gpu_dram_percent", _PERCENT),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("gpu_pcie_send_bytes_per_s", 1.0),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("gpu_pcie_receive_bytes_per_s", 1.0),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("gpu_nvlink_send_bytes_per_s", 1.0),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("gpu_nvlink_receive_bytes_per_s", 1.0),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("gpu_ecc_corrected", 1.0),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("gpu_ecc_uncorrected", 1.0),
    "nvidia_gpu_duty_cycle": ("gpu_busy_percent", 1.0),
    "nvidia_gpu_memory_used_bytes": ("gpu_memory_used_bytes", 1.0),
    "nvidia_gpu_power_usage_milliwatts": ("gpu_power_w", 1e-3),
    "nvidia_gpu_temperature_celsius": ("gpu_temperature_c", 1.0),
    "slurm_job_utilization_gpu": ("gpu_busy_percent", 1.0),
    "slurm_job_utilization_gpu_memory": ("gpu_memory_busy_percent", 1.0),
    "slurm_job_memory_usage_gpu": ("gpu_memory_used_bytes", 1.0),
    "slurm_job_power_gpu": ("gpu_power_w", 1e-3),
}
_AMD = {
    "rocm_utilization_percentage": ("gpu_busy_percent", 1.0),
    "rocm_average_socket_power_watts": ("gpu_power_w", 1.0),
    "rocm_energy_joules": ("gpu_energy_j", 1.0),
    "rocm_temperature_celsius": ("gpu_temperature_c", 1.0),
    "rocm_sclk_clock_mhz": ("gpu_sm_clock_mhz", 1.0),
    "rocm_mclk_clock_mhz": ("gpu_memory_clock_mhz", 1.0),
}
_OF_NODES = {
    "cgroup_cpu_total_seconds": ("job_cpu_s", 1.0),
    "cgroup_memory_rss_bytes": ("job_memory_bytes", 1.0),
    "slurm_job_core_usage_total": ("job_cpu_s", 1e-9),
    "slurm_job_memory_usage": ("job_memory_bytes", 1.0),
}
_CPU_TIME = "job_cpu_s"
"""The CPU time of a job is the sum of its series: some exporters have one for each core."""
_SHARE_OF_MEMORY = "rocm_vram_used_percentage"
_TOTALS = {
    "nvidia_gpu_memory_total_bytes": 1.0,
    "DCGM_FI_DEV_FB_TOTAL": _MIB,
    "rocm_vram_total_bytes": 1.0,
}
_LIMITS = frozenset({"cgroup_memory_total_bytes", "slurm_job_memory_limit"})
_CORES = "cgroup_cpus"
_OWN = "teho_"
_OWN_JOBS = "teho_job_info"
_HOSTS = ("Hostname", "hostname", "node", "nodename", "instance", "host")
_GPUS = ("UUID", "uuid", "gpu", "minor_number", "card")
_INDICES = ("gpu", "minor_number", "card")
_JOBS = ("jobid", "slurmjobid", "hpc_job")
_MODELS = ("modelName", "gpu_type", "name", "model")


class _Series(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    values: list[tuple[float, float]]
    """Time in s since 1970, and value; NaN: no value."""

    @property
    def name(self) -> str:
        return self.labels.get("__name__", "")

    def first(self, labels: tuple[str, ...]) -> str:
        return next((self.labels[one] for one in labels if self.labels.get(one)), "")


class Prometheus(Importer):
    """One or more answers, each with the series of a query."""

    title = "Prometheus"
    written_by = "Prometheus, curl …/api/v1/query_range?query=…"
    place = 5

    def recognises(self, source: Source) -> bool:
        """Return whether the file begins like an answer of the HTTP API."""
        begin = source.text[:2_000]
        is_export = begin.startswith('{"metric":') and '"timestamps"' in source.text
        return is_export or ('"resultType"' in begin and '"data"' in begin)

    def read(self, source: Source) -> Log:
        """Read all series that Teho knows.

        Raises:
            InputError: Prometheus answered with an error, without series over time, or with the
                series of several jobs.
        """
        log = Log(tool=_TOOL, is_whole=True)
        found: dict[tuple[str, str, float], dict[str, Value]] = {}
        totals: dict[tuple[str, str], float] = {}
        try:
            every = list(_series(source, log))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{source.path} is not what Prometheus answers: {error}",
                "the JSON of /api/v1/query_range",
                "repeat the query",
            ) from error
        jobs = {job for one in every if _is_of_job(one) and (job := one.first(_JOBS))}
        if len(jobs) > 1:
            raise InputError(
                f"{source.path} has the series of {len(jobs)} jobs: {', '.join(sorted(jobs)[:5])}",
                "the series of one job",
                'add the job to the query, such as `{jobid="4711"}`',
            )
        # A later series does not replace the values of an earlier one.
        every.sort(key=_is_second_choice)
        for one in every:
            _note(one, log, totals, next(iter(jobs), ""))
        cpu_times: dict[str, list[_Series]] = {}
        for one in every:
            metric, factor, _ = _metric(one)
            if metric == _CPU_TIME and _is_of_job(one):
                cpu_times.setdefault(_host(one), []).append(_increase(one, factor))
            else:
                _take(one, log, totals, found)
        for host, series in cpu_times.items():
            for at_s, value in _sum(series):
                found.setdefault((host, NODE, at_s), {})[_CPU_TIME] = value
        log.samples = [
            Sample.of(at_s, host, key, values)
            for (host, key, at_s), values in sorted(found.items(), key=lambda one: one[0][2])
        ]
        return log


def _series(source: Source, log: Log) -> Iterator[_Series]:
    """Yield the series of all answers in a file."""
    for piece in pieces_of(source.text):
        if not isinstance(piece.value, dict):
            log.skipped_lines += 1
            continue
        if "timestamps" in piece.value:
            times_s = [at_ms / 1000 for at_ms in piece.value["timestamps"]]
            pairs = zip(times_s, piece.value.get("values", []), strict=False)
            yield _Series(_labels(piece.value), list(_pairs(pairs)))
            continue
        if piece.value.get("status") == "error":
            raise InputError(
                f"{source.path} has an error of Prometheus: {piece.value.get('error', '')}",
                "an answer with data",
                "repeat the query",
            )
        data = piece.value.get("data")
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            raise InputError(
                f"{source.path} has values of one moment",
                "values over time, from /api/v1/query_range",
                "ask with start, end and step",
            )
        for one in data.get("result", []):
            yield _Series(_labels(one), list(_pairs(one.get("values", []))))


def _labels(one: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(label) for name, label in one.get("metric", {}).items()}


def _pairs(values: Any) -> Iterator[tuple[float, float]]:
    for at_s, value in values:
        try:
            yield float(at_s), float(value)
        except (TypeError, ValueError):
            continue


def _is_of_job(one: _Series) -> bool:
    """Return whether a series is of a whole job, not of one of its steps."""
    return not one.labels.get("step") and not one.labels.get("task")


def _is_second_choice(one: _Series) -> bool:
    is_engine = one.name == "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    return is_engine or one.labels.get("location") == "edge"


def _host(one: _Series) -> str:
    """Return the node; the port of its exporter and its domain are left out."""
    return one.first(_HOSTS).partition(":")[0].partition(".")[0]


def _key(one: _Series) -> str:
    instance = one.labels.get("GPU_I_ID")
    return one.first(_GPUS) + (f"-{instance}" if instance else "")


def _increase(one: _Series, factor: float) -> _Series:
    """Return how much a counter grew since its first value: a range may begin during the job."""
    total, before = 0.0, None
    found: list[tuple[float, float]] = []
    for at_s, value in one.values:
        if not math.isfinite(value):
            continue
        if before is not None:
            # A counter that is smaller than before was reset.
            total += (value - before if value >= before else value) * factor
        before = value
        found.append((at_s, total))
    return one._replace(values=found)


def _sum(series: Sequence[_Series]) -> Iterator[tuple[float, float]]:
    """Yield the sum of counters at each time; a series that has ended keeps its last value."""
    last = [0.0] * len(series)
    events = sorted(
        (at_s, number, value) for number, one in enumerate(series) for at_s, value in one.values
    )
    for at_s, of_time in groupby(events, key=itemgetter(0)):
        for _, number, value in of_time:
            last[number] = value
        yield at_s, math.fsum(last)


def _note(one: _Series, log: Log, totals: dict[tuple[str, str], float], job: str) -> None:
    """Note the facts in the labels of a series, and in the series that never change."""
    host, key = _host(one), _key(one)
    last = next((value for _, value in reversed(one.values) if math.isfinite(value)), None)
    if job and _is_of_job(one):
        node = log.nodes.setdefault(host, NodeFacts())
        node.job_id, node.scheduler = job, "slurm"
        if last is not None and one.name in _LIMITS:
            node.memory_limit_bytes = round(last)
        if last is not None and one.name == _CORES:
            node.core_count = round(last)
    if last is not None and one.name in _TOTALS:
        totals[host, key] = last * _TOTALS[one.name]


def _take(
    one: _Series,
    log: Log,
    totals: Mapping[tuple[str, str], float],
    found: dict[tuple[str, str, float], dict[str, Value]],
) -> None:
    """Add the values of a series to the samples of its node or GPU."""
    metric, factor, vendor = _metric(one)
    host, key = _host(one), _key(one)
    if one.name == _SHARE_OF_MEMORY and (host, key) in totals:
        metric, factor, vendor = "gpu_memory_used_bytes", totals[host, key] / 100, "amd"
    if not metric or not _is_of_job(one):
        if one.name not in {*_TOTALS, *_LIMITS, _CORES, _OWN_JOBS} and not metric:
            log.unused.setdefault(one.name or "a series without a name")
        return
    device = NODE if METRICS_BY_NAME[metric].scope == "node" else key
    if not device:
        log.unused.setdefault(f"{one.name} without a label of the GPU")
        return
    if device != NODE:
        facts = log.gpu(host, device)
        index = one.first(_INDICES)
        facts.vendor = facts.vendor or one.labels.get("vendor", "") or vendor
        facts.index = int(index) if index.isdecimal() else facts.index
        facts.uuid = facts.uuid or one.labels.get("UUID", "") or one.labels.get("uuid", "")
        facts.name = facts.name or one.first(_MODELS)
        total = totals.get((host, device))
        facts.memory_bytes = round(total) if total else facts.memory_bytes
    for at_s, value in one.values:
        values = found.setdefault((host, device, at_s), {})
        before = values.get(metric)
        if not math.isfinite(value):
            values.setdefault(metric, Missing(Reason.UNRECORDED, "Prometheus has no number here"))
        elif not isinstance(before, float):
            values[metric] = value * factor


def _metric(one: _Series) -> tuple[str, float, str]:
    """Return the metric of a series, the factor of its unit, and the vendor; empty if unknown."""
    if one.name in _NVIDIA:
        return (*_NVIDIA[one.name], "nvidia")
    if one.name in _AMD:
        return (*_AMD[one.name], "amd")
    if one.name in _OF_NODES:
        return (*_OF_NODES[one.name], "")
    own = one.name.removeprefix(_OWN).removesuffix("_total")
    if one.name.startswith(_OWN) and own in METRICS_BY_NAME:
        return own, 1.0, ""
    return "", 1.0, ""


IMPORTER = Prometheus
