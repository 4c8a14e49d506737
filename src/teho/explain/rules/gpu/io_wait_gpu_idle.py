"""The GPUs idled while the program waited for storage."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import RuleContext, Series, known, per_place, span, the_gpus
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.summary import NodeSummary

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "io_wait_gpu_idle"
RANK = 330
SAYS = "all GPUs of a node were idle while the program waited for storage"
SEVERITY = "warning"
THRESHOLDS = {
    "gpu_below_percent": Threshold(
        10.0, "%", "SageMaker's profiler rules: GPU below 10 % and I/O wait above 50 %"
    ),
    "iowait_percent": Threshold(
        50.0, "%", "SageMaker's profiler rules: GPU below 10 % and I/O wait above 50 %"
    ),
    "time_percent": Threshold(
        50.0, "%", "SageMaker's profiler rules: for more than 50 % of the time"
    ),
    "waiting_cores_min": Threshold(
        0.5,
        "cores",
        "Teho's own choice: with few threads on many cores, compare with the threads that run",
    ),
}
MUTES = Mutes(
    ("communication_bound", "batch_small"),
    because="storage explains the waiting",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find nodes that spent most of their time with idle GPUs and cores waiting for I/O.

    SageMaker's condition asks for half of the cores to wait. A single reading thread
    on many cores never reaches that, so a bin also counts where at least half a core
    waits and more cores wait than threads want to run.
    """
    shares: list[tuple[NodeSummary, float]] = []
    for node in context.summary.nodes:
        share = _share(context, node) if node.gpus else None
        if share is not None and share > context.limit("time_percent"):
            shares.append((node, share))
    return context.outcome([_finding(context, shares)] if shares else [])


def _share(context: RuleContext, node: NodeSummary) -> float | None:
    """Return the share of the recorded bins that were spent waiting, in %."""
    gpu = context.busiest_gpu(node)
    iowait = context.series(node, "cpu_iowait_percent")
    if gpu is None or iowait is None:
        return None
    # Helps where it is known; SageMaker's own condition does without.
    runnable: Series = node.series.get("job_runnable_threads", [])
    if len(runnable) != len(iowait):
        runnable = [None] * len(iowait)
    verdicts = [
        busy < context.limit("gpu_below_percent") and _waits(context, node.cores, wait, threads)
        for busy, wait, threads in zip(gpu, iowait, runnable, strict=True)
        if busy is not None and wait is not None
    ]
    return 100 * sum(verdicts) / len(verdicts) if verdicts else None


def _waits(context: RuleContext, cores: int, iowait_percent: float, runnable: float | None) -> bool:
    if iowait_percent > context.limit("iowait_percent"):
        return True
    waiting_cores = iowait_percent / 100 * cores
    return (
        runnable is not None
        and waiting_cores >= context.limit("waiting_cores_min")
        and waiting_cores > runnable
    )


def _finding(context: RuleContext, shares: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in shares]
    workers = advice.loader_workers(nodes[0].cores, len(nodes[0].gpus))
    return context.finding(
        Severity.WARNING,
        f"{the_gpus(nodes)} idled while the program waited for storage, "
        f"{span([share for _, share in shares], '%')} of the time.",
        evidence=(
            *per_place("time with idle GPUs and I/O wait", "%", shares),
            *per_place("I/O wait, mean", "%", known(nodes, "cpu_iowait_percent", "mean")),
        ),
        judged_by=["time_percent", "gpu_below_percent", "iowait_percent", "waiting_cores_min"],
        action=(
            "Copy the data to the node's own disk at the start of the job, "
            '`cp data.tar "$TMPDIR"` (or the site\'s `$LOCAL_SCRATCH`, `$SLURM_TMPDIR`), keep many '
            "small files in one (tar, WebDataset, HDF5), and "
            f"read ahead in parallel: `DataLoader(num_workers={workers}, prefetch_factor=4)`."
        ),
        subjects=nodes,
    )
