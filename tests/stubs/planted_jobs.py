"""Rows of sacct for jobs without waste, and for jobs with a known waste of each kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from sacct_rows import job, js1, step

__all__ = ["FAILS", "KINDS", "Planted", "clean_job", "wasteful_job"]

Records = list[dict[str, str]]
FAILS = "fails_at_start"
"""The one kind that several jobs show only together."""
_GIB = 1 << 30
_ENDINGS = (
    {"State": "COMPLETED"},
    {"State": "FAILED", "ExitCode": "1:0"},
    {"State": "FAILED", "ExitCode": "0:11"},
    {"State": "TIMEOUT", "ExitCode": "0:0"},
    {"State": "OUT_OF_MEMORY", "ExitCode": "0:125"},
    {"State": "CANCELLED by 1234", "ExitCode": "0:15"},
    {"State": "PREEMPTED", "ExitCode": "0:15"},
    {"State": "DEADLINE", "ExitCode": "0:0"},
)


class Planted(NamedTuple):
    """The waste of a job."""

    kind: str
    gpu_hours: float = 0.0
    core_hours: float = 0.0
    gib_hours: float = 0.0


class _Job:
    """Makes the rows of one job. The job is well used unless a function says otherwise."""

    def __init__(self, number: str, draw: Random, end: int) -> None:
        self.number = number
        self.draw = draw
        self.end = end
        self.elapsed_s = draw.randrange(3600, 100_000)
        self.cores = draw.choice([1, 2, 4, 10, 40, 128])

    @property
    def hours(self) -> float:
        return self.elapsed_s / 3600

    def rows(
        self,
        *,
        cores_used: float | None = None,
        peak_gib: float | None = None,
        tasks: int = 1,
        gib: float | None = None,
        gpus: int = 0,
        nodes: int = 1,
        **cells: str,
    ) -> Records:
        """Return the rows.

        Args:
            cores_used: mean number; None: nearly all.
            peak_gib: peak of each task; None: all of the memory.
            tasks: of the step.
            gib: memory of the job; None: 4 GiB for each core, which never counts as waste.
            gpus: of the job.
            nodes: of the job.
            cells: columns that replace those of a usual job.
        """
        if cores_used is None:
            cores_used = self.cores * self.draw.uniform(0.6, 1.0)
        gib = 4.0 * self.cores if gib is None else gib
        peak_gib = gib / tasks if peak_gib is None else peak_gib
        limit_s = self.elapsed_s * self.draw.uniform(1.0, 1.6)
        start = self.end - self.elapsed_s
        times = {
            "Submit": str(start - 600),
            "Start": str(start),
            "End": str(self.end),
            "ElapsedRaw": str(self.elapsed_s),
            "TotalCPU": clock(cores_used * self.elapsed_s),
        }
        usual = {
            "Partition": "gpu" if gpus else "small",
            "AllocTRES": tres(self.cores, gib, gpus, nodes),
            "ReqTRES": tres(self.cores, gib, gpus, nodes),
            "TimelimitRaw": str(max(-(-self.elapsed_s // 60), int(limit_s / 60))),
            "NNodes": str(nodes),
            **times,
        }
        own = job(self.number, **usual | cells)
        shared = {name: own[name] for name in ("State", "ExitCode", *times)}
        peak = f"{peak_gib * 1024 * 1024:.0f}K"
        main = step(f"{self.number}.0", peak=peak, **shared | {"NTasks": str(tasks)})
        none = {"TotalCPU": "00:00.001", "MaxRSS": "100K", "AveRSS": "100K"}
        return [own, main, step(f"{self.number}.extern", **shared | none)]

    def with_gpus(
        self, *means: float, memory_gib: tuple[float, float] = (20, 32), **cells: str
    ) -> Records:
        """Return the rows of a job with a summary of Jobstats.

        Args:
            means: mean use of each GPU in %, in steps of 0.1 %, as Jobstats writes it.
            memory_gib: the peak and the whole memory of each GPU.
            cells: as in `rows`.
        """
        used, whole = memory_gib
        gpus = [str(number) for number in range(len(means))]
        node: dict[str, object] = {
            "cpus": self.cores,
            "total_time": self.elapsed_s / 2,
            "used_memory": _GIB,
            "total_memory": 40 * _GIB,
            "gpu_utilization": dict(zip(gpus, means, strict=True)),
            "gpu_used_memory": dict.fromkeys(gpus, int(used * _GIB)),
            "gpu_total_memory": dict.fromkeys(gpus, int(whole * _GIB)),
        }
        comment = {"AdminComment": js1(r01g01=node)}
        # The cores and the memory come with the GPUs.
        return self.rows(gpus=len(means), cores_used=0.5, gib=40, peak_gib=1, **comment | cells)


def tres(cores: int, gib: float, gpus: int = 0, nodes: int = 1) -> str:
    """Return the resources of a job as sacct prints them."""
    text = f"billing={cores},cpu={cores},mem={gib * 1024:.0f}M,node={nodes}"
    return f"{text},gres/gpu={gpus}" if gpus else text


def clock(seconds: float) -> str:
    """Write a time as sacct's TotalCPU."""
    days, rest = divmod(round(seconds), 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def _letters(number: str) -> str:
    """Return a name without digits: jobs whose names differ only in digits count as equal."""
    return "".join("abcdefghij"[int(digit)] for digit in number)


# Jobs without waste.


def _busy(one: _Job) -> Records:
    return one.rows(**one.draw.choice(_ENDINGS))


def _short(one: _Job) -> Records:
    one.elapsed_s = one.draw.randrange(5, 599)
    gpus = {str(number): 0.0 for number in range(2)}
    unused = js1(r01g01={"gpu_utilization": gpus, "total_time": 1, "cpus": one.cores})
    name = f"try-{_letters(one.number)}"
    return one.rows(
        cores_used=0.01, gib=999, peak_gib=0.1, gpus=one.draw.choice([0, 2]), JobName=name,
        AdminComment=unused, TimelimitRaw="9999", **one.draw.choice(_ENDINGS),
    )  # fmt: skip


def _tasks_that_wait(one: _Job) -> Records:
    one.cores = 40
    return one.rows(tasks=40, cores_used=one.draw.uniform(2, 9))


def _large_memory(one: _Job) -> Records:
    gib = 16.0 * one.cores
    return one.rows(gib=gib, peak_gib=one.draw.uniform(0.71, 1) * gib)


def _memory_of_tasks(one: _Job) -> Records:
    """Each task has a small part of the memory; all tasks together may have needed it."""
    one.cores = one.draw.choice([4, 10, 40])
    gib = 16.0 * one.cores
    return one.rows(gib=gib, tasks=one.cores, peak_gib=0.72 * 16)


def _no_samples(one: _Job) -> Records:
    return [row | {"MaxRSS": "", "AveRSS": ""} for row in one.rows(gib=999)]


def _busy_gpus(one: _Job) -> Records:
    means = [round(one.draw.uniform(26, 100), 1) for _ in range(one.draw.choice([1, 2, 4]))]
    memory = one.draw.choice([(20, 32), (1, 80), (79, 80)])
    return one.with_gpus(*means, memory_gib=memory, **one.draw.choice(_ENDINGS))


def _unknown_gpus(one: _Job) -> Records:
    whole = js1(r01g01={"gpu_utilization": {"0": 0.0}, "total_time": 1, "cpus": 1})
    comment = one.draw.choice(["", "JS1:None", "JS1:Short", whole[:40], whole, "moved by support"])
    # One of two GPUs has a summary, or none. Slurm's own 0 can mean that it cannot measure.
    records = one.rows(gpus=2, cores_used=0.1, gib=999, peak_gib=0.1, AdminComment=comment)
    records[1]["TRESUsageInMax"] = "gres/gpumem=0,gres/gpuutil=0"
    return records


def _whole_node(one: _Job) -> Records:
    one.cores = 1
    return one.rows(AllocTRES=tres(128, 256), ReqTRES=tres(1, 4), cores_used=1.0, peak_gib=1)


def _several_nodes(one: _Job) -> Records:
    one.cores = 80
    return one.rows(nodes=2, gib=999, peak_gib=1, cores_used=70.0, NodeList="r01c[01-02]")


def _not_ended(one: _Job) -> Records:
    state = one.draw.choice(["RUNNING", "SUSPENDED"])
    open_end = {"State": state, "End": "Unknown", "TotalCPU": "00:00:00"}
    return [row | open_end for row in one.rows(gib=999, gpus=one.draw.choice([0, 1]))]


def _queued_again(one: _Job) -> Records:
    first = _Job(one.number, one.draw, one.end - one.elapsed_s - 600)
    return [*first.rows(State="PREEMPTED"), *one.rows()]


def _node_failed(one: _Job) -> Records:
    return one.rows(cores_used=0.0, gib=999, peak_gib=0.1, State="NODE_FAIL", ExitCode="1:0")


def _busy_session(one: _Job) -> Records:
    name = one.draw.choice(["bash", "interactive", "sys/dashboard/sys/bc_jupyter"])
    if one.draw.random() < 0.5:
        return one.with_gpus(26.0, JobName=name)
    one.cores = 10
    return one.rows(cores_used=2.6, JobName=name)


def _long_limit(one: _Job) -> Records:
    """Only a job that completed shows how much time it needed."""
    ending = one.draw.choice(_ENDINGS[1:])
    if one.draw.random() < 0.5:
        one.elapsed_s, ending = one.draw.randrange(600, 900), {}
    return one.rows(TimelimitRaw="9999", **ending)


def _not_measured(one: _Job) -> Records:
    return [row | {"TotalCPU": "00:00:00"} for row in one.rows()]


def _fails_at_once(one: _Job) -> Records:
    one.elapsed_s = one.draw.randrange(1, 59)
    name = f"fails-{_letters(one.number)}"
    return one.rows(State="FAILED", ExitCode="1:0", JobName=name)


def _beside_gpus(one: _Job) -> Records:
    """A job without GPUs on a node with 40 cores and 4 GPUs leaves a core for each GPU."""
    one.cores = 36
    return one.rows(Partition="gpu")


_CLEAN: tuple[Callable[[_Job], Records], ...] = (
    _busy, _short, _tasks_that_wait, _large_memory, _memory_of_tasks, _no_samples, _busy_gpus,
    _unknown_gpus, _whole_node, _several_nodes, _not_ended, _queued_again, _node_failed,
    _busy_session, _long_limit, _not_measured, _fails_at_once, _beside_gpus,
)  # fmt: skip


def clean_job(number: str, draw: Random, end: int) -> Records:
    """Return the rows of a job without waste, or of one whose figures do not show waste.

    Args:
        number: of the job.
        draw: chooses the form and the figures of the job.
        end: time of its end, in seconds since 1970.
    """
    return draw.choice(_CLEAN)(_Job(number, draw, end))


# Jobs with waste.


def _serial(one: _Job) -> tuple[Records, Planted]:
    one.cores = one.draw.choice([4, 40, 128])
    return one.rows(cores_used=1.0), Planted(
        "serial_program", core_hours=one.hours * (one.cores - 1)
    )


def _few_cores(one: _Job) -> tuple[Records, Planted]:
    one.cores, used = 40, one.draw.uniform(1.1, 9.9)
    return one.rows(cores_used=used), Planted("cores_unused", core_hours=one.hours * (40 - used))


def _idle_session(one: _Job) -> tuple[Records, Planted]:
    one.cores, used = 10, one.draw.uniform(0.01, 0.49)
    wasted = Planted("interactive_idle", core_hours=one.hours * (10 - used))
    return one.rows(cores_used=used, JobName="bash"), wasted


def _memory(one: _Job) -> tuple[Records, Planted]:
    one.cores = 4
    # 4 GiB for each core never count, and are more than the job needed.
    wasted = Planted("memory_overasked", gib_hours=one.hours * (400 - 16))
    return one.rows(gib=400, peak_gib=one.draw.uniform(1, 10)), wasted


def _time(one: _Job) -> tuple[Records, Planted]:
    return one.rows(TimelimitRaw=str(one.elapsed_s // 6)), Planted("time_overasked")


def _fails(one: _Job) -> tuple[Records, Planted]:
    one.elapsed_s, one.cores = one.draw.randrange(20, 59), 128
    records = one.rows(State="FAILED", ExitCode="1:0", JobName=f"crash{one.number}")
    return records, Planted(FAILS, core_hours=one.hours * 128)


def _never_used(one: _Job) -> tuple[Records, Planted]:
    unused = one.draw.choice([1, 2, 3, 4])
    means = [0.0] * unused + [90.0] * (4 - unused)
    return one.with_gpus(*means), Planted("gpu_never_used", gpu_hours=one.hours * unused)


def _low_use(one: _Job) -> tuple[Records, Planted]:
    mean = round(one.draw.uniform(0.1, 25), 1)
    wasted = Planted("gpu_low_use", gpu_hours=one.hours * (1 - mean / 100))
    return one.with_gpus(mean, 80.0), wasted


def _too_large(one: _Job) -> tuple[Records, Planted]:
    mean = round(one.draw.uniform(0.1, 25), 1)
    wasted = Planted("gpu_too_large", gpu_hours=one.hours * (1 - mean / 100))
    return one.with_gpus(mean, 80.0, memory_gib=(10, 80)), wasted


def _idle_gpu_session(one: _Job) -> tuple[Records, Planted]:
    means = [round(one.draw.uniform(0.1, 4.9), 1) for _ in range(2)]
    wasted = Planted("gpu_session_idle", gpu_hours=one.hours * sum(1 - m / 100 for m in means))
    return one.with_gpus(*means, JobName="bash"), wasted


_WASTEFUL: tuple[Callable[[_Job], tuple[Records, Planted]], ...] = (
    _serial, _few_cores, _idle_session, _memory, _time, _fails, _never_used, _low_use, _too_large,
    _idle_gpu_session,
)  # fmt: skip
KINDS = len(_WASTEFUL)
"""Number of kinds of waste that sacct can show."""


def wasteful_job(number: str, draw: Random, end: int) -> tuple[Records, Planted]:
    """Return the rows of a job with waste of one kind, and the waste.

    Args:
        number: of the job. Ten numbers in a row have all kinds.
        draw: chooses the figures of the job.
        end: time of its end, in seconds since 1970.
    """
    return _WASTEFUL[int(number) % KINDS](_Job(number, draw, end))
