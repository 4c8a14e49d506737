"""The program bound itself, or was bound, to a part of its cores."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.context import cores_of_job
from teho.explain.cores import may_be_threads
from teho.explain.program_context import ProgramContext
from teho.explain.rule import Mutes
from teho.explain.wording import numbered
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing, MainProcess
from teho.model.summary import NodeSummary

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "bound_to_few_cores"
RANK = 100
SAYS = "the program is bound to a part of the job's cores, and keeps these busy"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "used_percent": Threshold(
        80.0, "%", "Teho's own choice: a program that leaves a fifth of its cores idle lacks none"
    ),
    "threads_per_core": Threshold(1.25, "threads", "as too_many_threads"),
}
MUTES = Mutes(
    (
        "input_too_many_workers",
        "input_too_few_workers",
        "input_in_main_process",
        "input_slow",
        "too_many_threads",
        "serial_program",
        "cores_unused",
        "python_bound",
    ),
    because="with all its cores it may be another program",
)


class _Bound(NamedTuple):
    """A node on which the program may run on a part of the job's cores."""

    node: NodeSummary
    cores: frozenset[int]
    of: int
    mains: tuple[MainProcess, ...]
    """Those that are known to be bound; empty if the program was not watched."""
    used: float

    @property
    def lost_percent(self) -> float:
        return 100 * (1 - len(self.cores) / self.of)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Compare the cores that its processes might run on with those of the job."""
    for node in context.summary.nodes:
        bound = _bound(context, node)
        if bound and _in_want(context, bound) and _is_loss(context, bound):
            return context.outcome([_finding(context, bound)])
    return context.outcome([])


def _bound(context: ProgramContext, node: NodeSummary) -> _Bound | None:
    mains = tuple(main for main in context.mains if main.process.node == node.name)
    if any(main.process.cores is None for main in mains):
        return None
    told = {core for main in mains for core in main.process.cores or ()}
    cores = frozenset(told if mains else _seen(context, node))
    of, used = cores_of_job(context.run, node), node.cpu_cores_used
    if not 0 < len(cores) < of or not isinstance(used, float):
        return None
    return _Bound(node, cores, of, mains, used)


def _seen(context: ProgramContext, node: NodeSummary) -> tuple[int, ...]:
    """Return the cores on which the program might run when the recording began."""
    return next((one.cores for one in context.run.nodes if one.name == node.name), ())


def _in_want(context: ProgramContext, bound: _Bound) -> bool:
    """Return whether the program could use more cores than it may run on."""
    count = len(bound.cores)
    if count == len(_seen(context, bound.node)) and may_be_threads(count, bound.of):
        # It has no more than one hardware thread of each of its cores, as some sites want it:
        # that is enough, unless more threads want to run.
        threads = context.stat(bound.node, "job_runnable_threads")
        return threads is not None and threads.mean > context.limit("threads_per_core") * count
    # If other processes run there too, the program waits for the cores instead of using them.
    waits = (main for main in bound.mains if main.process.wait_for_core_s)
    in_line = any(context.is_loss(main.process.wait_for_core_s or 0.0, main) for main in waits)
    return in_line or bound.used >= context.limit("used_percent") / 100 * count


def _is_loss(context: ProgramContext, bound: _Bound) -> bool:
    share = bound.lost_percent / 100
    if bound.mains:
        return context.is_loss(share * context.work_s(bound.mains[0]), bound.mains[0])
    enough = bound.lost_percent >= context.limit("lost_percent")
    return enough and share * context.summary.elapsed_s >= context.limit("lost_min_s")


def _finding(context: ProgramContext, bound: _Bound) -> Finding:
    doings = (Doing.NATIVE, Doing.THREADS, Doing.LOADING, Doing.PYTHON)
    return context.lost(
        f"On {bound.node.name} the program may run on {len(bound.cores)} of the job's {bound.of} "
        "cores, and needs more.",
        share_percent=bound.lost_percent,
        evidence=(
            Evidence("cores it may run on", numbered(sorted(bound.cores))),
            Evidence("cores used, mean", bound.used, "cores"),
            Evidence("cores of the job", float(bound.of), "cores"),
        ),
        judged_by=["used_percent"],
        action=(
            "Find what binds it: `os.sched_setaffinity`, `taskset` or `numactl` in the script, "
            "`OMP_PROC_BIND`, `GOMP_CPU_AFFINITY`, `KMP_AFFINITY`, or the launcher. "
            "`taskset -cp $$` shows the binding; `srun --cpu-bind=none` turns Slurm's off."
        ),
        regain_percent=(0.0, bound.lost_percent),
        lines=bound.mains[0].lines(*doings) if bound.mains else (),
    )
