"""The program bound itself, or was bound, to a part of its cores."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.explain.wording import numbered
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "bound_to_few_cores"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the cores that its processes might run on with those of the job."""
    watch = Watch(KIND, run, summary, thresholds)
    for node in summary.nodes:
        own = [main for main in watch.mains if main.process.node == node.name]
        cores = {core for main in own for core in main.process.cores or ()}
        unknown = any(main.process.cores is None for main in own)
        if not own or unknown or not 0 < len(cores) < node.cores:
            continue
        used = node.cpu_cores_used
        if not isinstance(used, float):
            continue
        # Where others work on them too, the program waits for them instead of using them.
        in_want = any(watch.is_loss(main.process.wait_for_core_s or 0.0, main) for main in own)
        if used < watch.limit("used_percent") / 100 * len(cores) and not in_want:
            continue
        share = 100 * (1 - len(cores) / node.cores)
        if not watch.is_loss(share / 100 * watch.work_s(own[0]), own[0]):
            continue
        return [
            watch.lost(
                f"On {node.name} the program may run on {len(cores)} of the job's {node.cores} "
                "cores, which are too few for it.",
                share_percent=share,
                evidence=(
                    Evidence("cores it may run on", numbered(sorted(cores))),
                    Evidence("cores used, mean", used, "cores"),
                    Evidence("cores of the job", float(node.cores), "cores"),
                ),
                judged_by=["used_percent"],
                action=(
                    "Find what binds it: `os.sched_setaffinity`, `taskset` or `numactl` in the "
                    "script, `OMP_PROC_BIND`, `GOMP_CPU_AFFINITY`, `KMP_AFFINITY`, or the "
                    "launcher's own binding, such as `srun --cpu-bind=none` turns off."
                ),
                regain_percent=(0.0, share),
                lines=own[0].lines(Doing.NATIVE, Doing.THREADS, Doing.LOADING, Doing.PYTHON),
            )
        ]
    return []
