"""The program bound itself, or was bound, to a part of its cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from teho.explain.causes._watch import Watch
from teho.explain.cores import may_be_threads
from teho.explain.rules._look import cores_of_job
from teho.explain.wording import numbered
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing, MainProcess
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "bound_to_few_cores"


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


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the cores that its processes might run on with those of the job."""
    watch = Watch(KIND, run, summary, thresholds)
    for node in summary.nodes:
        bound = _bound(watch, node)
        if bound and _in_want(watch, bound) and _is_loss(watch, bound):
            return watch.outcome([_finding(watch, bound)])
    return watch.outcome([])


def _bound(watch: Watch, node: NodeSummary) -> _Bound | None:
    mains = tuple(main for main in watch.mains if main.process.node == node.name)
    if any(main.process.cores is None for main in mains):
        return None
    told = {core for main in mains for core in main.process.cores or ()}
    cores = frozenset(told if mains else _seen(watch, node))
    of, used = cores_of_job(watch.run, node), node.cpu_cores_used
    if not 0 < len(cores) < of or not isinstance(used, float):
        return None
    return _Bound(node, cores, of, mains, used)


def _seen(watch: Watch, node: NodeSummary) -> tuple[int, ...]:
    """Return the cores on which the program might run when the recording began."""
    return next((one.cores for one in watch.run.nodes if one.name == node.name), ())


def _in_want(watch: Watch, bound: _Bound) -> bool:
    """Tell whether the program could use more cores than it may run on."""
    count = len(bound.cores)
    if count == len(_seen(watch, bound.node)) and may_be_threads(count, bound.of):
        # It has no more than one hardware thread of each of its cores, as some sites want it:
        # that is enough, unless more threads want to run.
        threads = watch.stat(bound.node, "job_runnable_threads")
        return threads is not None and threads.mean > watch.limit("threads_per_core") * count
    # If other processes run there too, the program waits for the cores instead of using them.
    waits = (main for main in bound.mains if main.process.wait_for_core_s)
    in_line = any(watch.is_loss(main.process.wait_for_core_s or 0.0, main) for main in waits)
    return in_line or bound.used >= watch.limit("used_percent") / 100 * count


def _is_loss(watch: Watch, bound: _Bound) -> bool:
    share = bound.lost_percent / 100
    if bound.mains:
        return watch.is_loss(share * watch.work_s(bound.mains[0]), bound.mains[0])
    enough = bound.lost_percent >= watch.limit("lost_percent")
    return enough and share * watch.summary.elapsed_s >= watch.limit("lost_min_s")


def _finding(watch: Watch, bound: _Bound) -> Finding:
    doings = (Doing.NATIVE, Doing.THREADS, Doing.LOADING, Doing.PYTHON)
    return watch.lost(
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
