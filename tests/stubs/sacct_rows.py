"""Text as sacct prints it for Teho's questions, from the cells that a test names."""

from __future__ import annotations

import base64
import gzip
import json

from teho.schedulers.slurm.accounting import COLUMNS

__all__ = ["NOW", "job", "js1", "lines", "rows", "step"]

NOW = 1_795_200_000
"""2026-11-20, 21:20 UTC: the end of most jobs of the tests."""
_MARK = "\x1f\x1e"


def rows(*records: dict[str, str]) -> str:
    """Return the rows of jobs and steps in the form of `sacct --parsable --delimiter`."""
    names = COLUMNS.split(",")
    for record in records:
        assert set(record) <= set(names), set(record) - set(names)
    return "".join(
        _MARK.join([*(record.get(name, "") for name in names), ""]) + "\n" for record in records
    )


def lines(text: str) -> list[str]:
    r"""Return the lines with their line breaks; `\x1e` ends no line."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def job(
    number: str, *, elapsed_s: int = 7200, cores: int = 10, gpus: int = 0, **cells: str
) -> dict[str, str]:
    """Return the row of a completed job on one node; `cells` override its columns."""
    tres = f"billing={cores},cpu={cores},mem=40G,node=1" + (f",gres/gpu={gpus}" if gpus else "")
    start = NOW - elapsed_s
    return {
        "JobID": number,
        "State": "COMPLETED",
        "ExitCode": "0:0",
        "Partition": "gpu" if gpus else "small",
        "Account": "project_2001234",
        "NodeList": "r01g01",
        "AllocTRES": tres,
        "ReqTRES": tres,
        "Submit": str(start - 600),
        "Start": str(start),
        "End": str(NOW),
        "ElapsedRaw": str(elapsed_s),
        "TimelimitRaw": str(2 * elapsed_s // 60),
        "TotalCPU": _clock(cores * elapsed_s * 0.9),
        "Reason": "None",
        "User": "anna",
        "Cluster": "puhti",
        "QOS": "normal",
        "NNodes": "1",
        "JobName": "train",
    } | cells


def step(job_id: str, *, peak: str = "30000000K", **cells: str) -> dict[str, str]:
    """Return the row of a step of one task."""
    return {
        "JobID": job_id,
        "State": "COMPLETED",
        "ExitCode": "0:0",
        "NodeList": "r01g01",
        "AllocTRES": "cpu=10,mem=40G,node=1",
        "Start": str(NOW - 7200),
        "End": str(NOW),
        "ElapsedRaw": "7200",
        "TotalCPU": "18:00:00",
        "MaxRSS": peak,
        "AveRSS": peak,
        "NNodes": "1",
        "NTasks": "1",
        "JobName": job_id.partition(".")[2],
    } | cells


def js1(**nodes: dict[str, object]) -> str:
    """Return a summary of Jobstats for AdminComment."""
    text = json.dumps({"nodes": nodes, "gpus": 1, "total_time": 7200}).encode()
    return f"JS1:{base64.b64encode(gzip.compress(text, mtime=0)).decode()}"


def _clock(seconds: float) -> str:
    """Write a time as sacct's TotalCPU: `[D-]HH:MM:SS`."""
    days, rest = divmod(round(seconds), 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text
