"""All GPUs of a node were idle while all cores worked, or while only one main thread worked."""

from __future__ import annotations

from operator import gt

from teho.explain import advice
from teho.explain.context import bins_that_hold, share_of
from teho.explain.limits import Level, compare_with_limits
from teho.explain.moments import Shows
from teho.explain.places import per_place, the_gpus
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, Threshold, chosen
from teho.explain.wording import most_of_it, span
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame
from teho.model.summary import NodeSummary

RANK = 340
SEVERITY = "warning"
_SOURCE = (
    "SageMaker's profiler rules report a run if its GPU is busy for less than 10 % of the time "
    "and its CPU is busy for more than 90 % of the time"
)
THRESHOLDS = {
    "gpu_below_percent": Threshold(10.0, "%", _SOURCE),
    "cpu_percent": Threshold(90.0, "%", _SOURCE),
    "time_percent": Threshold(
        50.0,
        "%",
        "SageMaker's profiler rules report a problem if it lasts for more than 50 % of the time",
    ),
    "one_core_min": chosen(
        0.9,
        "cores",
        "from this limit on, one core is busy for at least 90 % of the time; SageMaker's profiler "
        "rules use the same 90 %, but for all cores together",
    ),
    "one_core_max": chosen(
        1.1,
        "cores",
        "if at most this number of cores is in use, one thread does almost all the work",
    ),
}
MUTES = ("communication_bound",)
MUTES_BECAUSE = "the busy CPU explains why the GPU was idle"

_LEVELS = (Level(Severity.WARNING, gt, "time_percent"),)


_WORK = frozenset((Doing.PYTHON, Doing.NATIVE, Doing.COPYING))
"""Activities of the main thread itself: in a backward pass, another thread launches the kernels."""


def judge(context: ProgramContext) -> Findings:
    """Find nodes with idle GPUs and busy cores for most of the time, after imports and compiling.

    Busy means one of two: all of the job's cores are busy (SageMaker's condition), or the program
    uses one of many cores, because a main thread does all the work.
    """
    idle, all_busy = context.limit("gpu_below_percent"), context.limit("cpu_percent")
    low, high = context.limit("one_core_min"), context.limit("one_core_max")
    all_cores: list[tuple[NodeSummary, float]] = []
    one_core: list[tuple[NodeSummary, float]] = []
    shown: dict[str, Shows] = {}
    for node in context.summary.nodes:
        gpu = context.busiest_gpu(node) if node.gpus else None
        if gpu is None:
            continue
        cores_busy = context.series(node, "cpu_busy_percent")
        rate = context.series(node, "job_cpu_s") if node.cores > 1 else None
        for group, found in (
            (
                all_cores,
                bins_that_hold(lambda gpu, cpu: gpu < idle and cpu > all_busy, gpu, cores_busy),
            ),
            (
                one_core,
                bins_that_hold(lambda gpu, used: gpu < idle and low <= used <= high, gpu, rate),
            ),
        ):
            bins = context.without_start(node, found)
            share = share_of(bins)
            if share and share > context.limit("time_percent"):
                group.append((node, share))
                shown[node.name] = bins
                break
    yield from compare_with_limits(
        context,
        all_cores,
        _LEVELS,
        name=the_gpus,
        sentence="{places} had almost no work for {figures} of the time. All cores of the job "
        "were busy during this time.",
        label="time in which the GPUs were idle and the cores were busy",
        further=lambda nodes: per_place(
            "cores of the job", "", [(node, float(node.cores)) for node in nodes]
        ),
        judged_by=["gpu_below_percent", "cpu_percent"],
        action=lambda nodes: _more_cores(context, nodes[0]),
        shown_by="cpu_busy_percent",
        shows=lambda node, _: shown[node.name],
    )
    cores = span([node.cores for node, _ in one_core], "") if one_core else ""
    lines = _own_lines(context, one_core[0][0]) if one_core else []
    yield from compare_with_limits(
        context,
        one_core,
        _LEVELS,
        name=the_gpus,
        sentence="{places} had almost no work for {figures} of the time. During this time, the "
        f"program worked on only one of {cores} cores{most_of_it(lines)}.",
        label="time in which the GPUs were idle and one core was busy",
        further=_busiest_core,
        judged_by=["gpu_below_percent", "one_core_min", "one_core_max"],
        action=lambda nodes: _without_one_core(nodes, lines),
        shown_by="job_cpu_s",
        shows=lambda node, _: shown[node.name],
    )


def _busiest_core(nodes: list[NodeSummary]) -> tuple[Evidence, ...]:
    first = nodes[0]
    if not first.core_mean_percent:
        return ()
    return (
        Evidence(f"mean use of the busiest core ({first.name})", max(first.core_mean_percent), "%"),
    )


def _more_cores(context: ProgramContext, node: NodeSummary) -> str:
    more = advice.ask_cores(context.run, node, 2 * node.cores)
    workers = advice.loader_workers(2 * node.cores if more else node.cores, len(node.gpus))
    return (
        f"{f'Request twice as many cores: {more}. ' if more else ''}Load the data in worker "
        f"processes: `DataLoader(num_workers={workers})`. Or do less work on the CPU: prepare the "
        "data once and store the result, or transform the data on the GPU."
    )


def _own_lines(context: ProgramContext, node: NodeSummary) -> list[tuple[Frame, float]]:
    """Return the lines on which a node's main thread computed, longest first.

    Empty if it waited for data: then the data loader is slow, not these lines.
    """
    main = next((one for one in context.mains if one.process.node == node.name), None)
    if main is None or context.is_loss(main.feed.wait_s, main):
        return []
    return _longest(main)


def _longest(main: MainProcess) -> list[tuple[Frame, float]]:
    lines = [line for spent in main.spent if spent.doing in _WORK for line in spent.lines]
    return sorted(lines, key=lambda line: -line[1])


def _without_one_core(nodes: list[NodeSummary], lines: list[tuple[Frame, float]]) -> str:
    if lines:
        return (
            f"Look at {lines[0][0].short_place} first. Do this work on the GPU, with one operation "
            "for the whole batch instead of a loop. Or do it in advance, in other processes: in "
            "the workers of a data loader."
        )
    return _other_processes(nodes)


def _other_processes(nodes: list[NodeSummary]) -> str:
    workers = advice.loader_workers(nodes[0].cores, len(nodes[0].gpus))
    return (
        "Let other processes load and prepare the data: "
        f"`DataLoader(num_workers={workers}, persistent_workers=True)` in PyTorch, or "
        f"`dataset.map(f, num_parallel_calls={workers}).prefetch(2)` in TensorFlow. "
        "`py-spy top --pid PID` shows what the main thread does."
    )
