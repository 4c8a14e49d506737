"""A run in a list of many runs: the figures that the list can be filtered and sorted by."""

from __future__ import annotations

import msgspec

__all__ = ["Judged", "ListedRun", "Outcome", "Totals"]

Outcome = str
"""`running`, `ok`, `failed`, `interrupted`, `imported` from a log, or `damaged` if the description
cannot be read."""


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of a report that a list shows. None: the report does not have this figure."""

    severity: str
    """Of the verdict: `critical`, `warning`, `remark`, `good` or `unknown`; empty if the run cannot
    be judged yet."""
    kind: str = ""
    """Kind of the most important finding, such as `gpu_never_used`; empty without a finding."""
    words: str = ""
    """The verdict in a few words, such as `gpu never used` or `good`."""
    verdict: str = ""
    """The verdict as a sentence."""
    advice: str = ""
    """What to do about the most important finding; commands are in backquotes."""
    gpu_busy_percent: float | None = None
    """Share of the run in which a kernel ran, the mean of all GPUs."""
    energy_j: float | None = None
    """Energy of all GPUs."""
    cost: float | None = None
    cost_unit: str = ""
    """Billing unit of the cluster."""
    unused_cost: float | None = None
    """Part of the cost for the time in which the GPUs or cores were not used."""
    steps_per_s: float | None = None


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the list."""

    runs: str
    """The folder with the recording's folder."""
    id: str
    outcome: Outcome
    began_s: float
    """Start of the run, in seconds since 1970, UTC."""
    elapsed_s: float | None
    """Wall time of the program; None: it has not ended, or its end was not recorded."""
    name: str
    command: str
    """Quoted for a shell, with secrets masked."""
    tags: dict[str, str]
    user: str
    """Owner of the recording's files."""
    host: str
    cluster: str
    """Empty outside a job."""
    partition: str
    account: str
    """Project that paid for the job."""
    gpu: str
    """Model of the GPUs, such as `NVIDIA A100-SXM4-80GB`; several are separated by commas."""
    gpus: int
    """GPUs that were allocated to the run, on all nodes."""
    nodes: int
    tasks: int
    job_id: str
    revision: str = ""
    """Commit of the repository with the program, shortened; empty: not known."""
    program: str = ""
    """Name and checksum of the program's file, such as `train.py 1a2b3c4d`; empty: not known."""
    judged: Judged | None = None
    """None: the report has not been computed yet."""

    @property
    def gpu_hours(self) -> float | None:
        """GPUs multiplied by the time; None if the time is not known."""
        return None if self.elapsed_s is None else self.gpus * self.elapsed_s / 3600

    @property
    def directory(self) -> str:
        """The recording's folder."""
        return f"{self.runs}/{self.id}"


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over several runs. A sum over no known figure is None, never 0."""

    key: str
    """What the runs have in common: a user, a command, a month such as `2026-11`."""
    runs: int
    run_s: float | None
    """Run time of the runs that have ended; None: none has."""
    gpu_hours: float
    """Of the runs that have ended."""
    judged: int
    """Runs whose report was computed: all figures below are of these runs."""
    busy_gpu_hours: float | None
    """GPU hours in which a kernel ran."""
    measured_gpu_hours: float | None
    """GPU hours of the runs with a known `gpu_busy_percent`."""
    energy_j: float | None
    cost: float | None
    cost_unit: str
    """Empty if there is no cost, or if the runs have different units; then no cost is known."""
    unused_cost: float | None
    """Cost of the time in which the GPUs or cores were not used."""
    measured_cost: float | None
    """Cost of the runs with a known `unused_cost`."""
    newest_s: float
    """Start of the newest run, in seconds since 1970."""

    @property
    def unused_percent(self) -> float | None:
        """Share of the measured GPU hours in which no kernel ran."""
        if not self.measured_gpu_hours or self.busy_gpu_hours is None:
            return None
        return 100.0 * (1.0 - self.busy_gpu_hours / self.measured_gpu_hours)

    @property
    def unused_cost_percent(self) -> float | None:
        """Share of the measured cost for what was not used."""
        if not self.measured_cost or self.unused_cost is None:
            return None
        return 100.0 * self.unused_cost / self.measured_cost
