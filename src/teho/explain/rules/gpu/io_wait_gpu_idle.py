"""All GPUs of a node were idle while the program waited for storage."""

from __future__ import annotations

from operator import gt

from teho.explain import advice
from teho.explain.context import share_of
from teho.explain.limits import Level, compare_with_limits
from teho.explain.moments import Shows
from teho.explain.places import gauges, the_gpus
from teho.explain.rule import Findings, RuleContext, Severity, Threshold, chosen
from teho.model.summary import NodeSummary, Series

RANK = 330
SEVERITY = "warning"
_SOURCE = (
    "SageMaker's profiler rules report a run if its GPU is busy for less than 10 % of the time and "
    "its I/O wait is above 50 %"
)
THRESHOLDS = {
    "gpu_below_percent": Threshold(10.0, "%", _SOURCE),
    "iowait_percent": Threshold(50.0, "%", _SOURCE),
    "time_percent": Threshold(
        50.0,
        "%",
        "SageMaker's profiler rules report a problem if it lasts for more than 50 % of the time",
    ),
    "waiting_cores_min": chosen(
        0.5,
        "cores",
        "if a program has few threads on many cores, only few cores wait for storage, and the I/O "
        "wait stays low. So Teho also counts the waiting cores",
    ),
}
MUTES = ("communication_bound", "batch_small")
MUTES_BECAUSE = "waiting for storage explains why the GPU was idle"


def judge(context: RuleContext) -> Findings:
    """Find nodes with idle GPUs and cores that wait for I/O, for most of the time.

    SageMaker's condition is that half of the cores wait. One reading thread on many cores never
    meets this condition. So a bin also counts if at least half a core waits and more cores wait
    than threads want to run.
    """
    nodes = {node.name: node for node in context.summary.nodes if node.gpus}
    shown = {name: _waiting(context, node) for name, node in nodes.items()}
    yield from compare_with_limits(
        context,
        [(nodes[name], share_of(bins)) for name, bins in shown.items()],
        [Level(Severity.WARNING, gt, "time_percent")],
        name=the_gpus,
        sentence="{places} had almost no work for {figures} of the time. During this time, the "
        "program waited for storage (disk or file server).",
        label="time in which the GPUs were idle and cores waited for storage",
        further=lambda nodes: gauges(nodes, "cpu_iowait_percent"),
        judged_by=["gpu_below_percent", "iowait_percent", "waiting_cores_min"],
        action=_action,
        shown_by="cpu_iowait_percent",
        shows=lambda node, _: shown[node.name],
    )


def _waiting(context: RuleContext, node: NodeSummary) -> Shows:
    """Return the bins that were spent waiting (bins,); empty if this is not known."""
    gpu = context.busiest_gpu(node)
    iowait = context.series(node, "cpu_iowait_percent")
    if gpu is None or iowait is None:
        return []
    # SageMaker's condition does not need it.
    runnable: Series = node.series.get("job_runnable_threads", [])
    if len(runnable) != len(iowait):
        runnable = [None] * len(iowait)
    idle = context.limit("gpu_below_percent")
    return [
        None
        if busy is None or wait is None
        else busy < idle and _waits(context, node.cores, wait, threads)
        for busy, wait, threads in zip(gpu, iowait, runnable, strict=True)
    ]


def _waits(context: RuleContext, cores: int, iowait_percent: float, runnable: float | None) -> bool:
    if iowait_percent > context.limit("iowait_percent"):
        return True
    waiting_cores = iowait_percent / 100 * cores
    return (
        runnable is not None
        and waiting_cores >= context.limit("waiting_cores_min")
        and waiting_cores > runnable
    )


def _action(nodes: list[NodeSummary]) -> str:
    workers = advice.loader_workers(nodes[0].cores, len(nodes[0].gpus))
    return (
        'Copy the data to the node\'s own disk at the start of the job: `cp data.tar "$TMPDIR"` '
        "(on some clusters, the variable is `$LOCAL_SCRATCH` or `$SLURM_TMPDIR`). Pack small files "
        "into a few large files, with `teho pack` or HDF5. Read in parallel: "
        f"`DataLoader(num_workers={workers}, prefetch_factor=4)`."
    )
