"""Jobstats' summary of a job: the output of `jobstats --json JOBID`, or the text of `AdminComment`.

The summary has one mean or one peak for the whole job, and no times.
"""

from __future__ import annotations

from teho.errors import InputError
from teho.jobs.importer import Importer
from teho.jobs.js1 import Js1Node, decode_js1, js1_from_json
from teho.jobs.log import NODE, Log, NodeFacts, Sample, Source, Value
from teho.model.missing import Missing

__all__ = ["IMPORTER"]

_TOOL = "Jobstats"
_SAMPLING_S = 30.0
"""SAMPLING_PERIOD in Jobstats' `config.py`; a site may have another one."""


_BEGIN = 500
"""Characters in which `JS1:` is searched: sacct may print its columns before."""
_ONLY_ONE = (
    "Jobstats stores only one mean of each GPU's use and one peak of its memory for the whole job. "
    f"Teho assumes that Jobstats took a sample every {_SAMPLING_S:g} s, which is its default."
)


class Jobstats(Importer):
    """One summary of one job."""

    title = "Jobstats"
    written_by = "jobstats --json JOBID, or the AdminComment of a job"
    place = 4

    def recognises(self, source: Source) -> bool:
        """Return whether the file is a summary."""
        begin = source.text.lstrip()[:_BEGIN]
        return "JS1:" in begin or (begin.startswith("{") and '"nodes"' in source.text)

    def read(self, source: Source) -> Log:
        """Read the summary.

        Raises:
            InputError: the file has no summary, or not the run time of the job.
        """
        text = source.text.strip()
        found = js1_from_json(text.encode()) if text.startswith("{") else decode_js1(text)
        if isinstance(found, Missing) or not found.elapsed_s:
            why = found.detail if isinstance(found, Missing) else "the run time is not in it"
            raise InputError(
                f"{source.path}: {why}",
                "the output of `jobstats --json JOBID`",
                "copy the whole output",
            )
        elapsed_s = float(found.elapsed_s)
        log = Log(
            tool=_TOOL,
            is_whole=True,
            period_s=elapsed_s,
            covers_s=elapsed_s,
            sampled_every_s=_SAMPLING_S,
            means=("gpu_busy_percent",),
            notes=[_ONLY_ONE],
        )
        listed = sum(len(node.gpus()) for node in found.nodes.values())
        for host, node in found.nodes.items():
            _add(log, host, node)
            if found.gpu_count == listed:
                log.nodes[host].gpu_count = len(node.gpus())
        return log


def _add(log: Log, host: str, node: Js1Node) -> None:
    log.nodes[host] = NodeFacts(
        scheduler="slurm",
        core_count=None if node.core_count is None else round(node.core_count),
        memory_limit_bytes=(
            None if node.memory_limit_bytes is None else round(node.memory_limit_bytes)
        ),
    )
    own: dict[str, Value] = {} if node.cpu_s is None else {"job_cpu_s": float(node.cpu_s)}
    log.samples.append(Sample.of(None, host, NODE, own))
    if node.memory_peak_bytes is not None:
        log.peaks[host, NODE] = {"job_memory_bytes": float(node.memory_peak_bytes)}
    for minor in node.gpus():
        facts = log.gpu(host, minor)
        facts.index = int(minor) if minor.isdecimal() else None
        facts.vendor = "nvidia"
        size = node.gpu_memory_bytes.get(minor)
        facts.memory_bytes = None if size is None else round(size)
        busy = node.gpu_busy_percent.get(minor)
        log.samples.append(
            Sample.of(None, host, minor, {} if busy is None else {"gpu_busy_percent": float(busy)})
        )
        peak = node.gpu_memory_peak_bytes.get(minor)
        if peak is not None:
            log.peaks[host, minor] = {"gpu_memory_used_bytes": float(peak)}


IMPORTER = Jobstats
