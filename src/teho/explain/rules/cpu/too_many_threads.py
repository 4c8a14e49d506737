"""More threads wanted to run than the job has cores, and waited for a core for much of the time.

A few threads more than cores cost almost no time: they take turns. So Teho reports only twice as
many threads as cores, or threads that waited for a core for much of the time in which they had
work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from teho.explain.cores import cores_of_job, cores_of_others
from teho.explain.moments import Shows, bins_where
from teho.explain.places import each_of, per_place, recorded
from teho.explain.program_context import in_lines
from teho.explain.rule import Findings, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import counted, span
from teho.model.program import Doing, MainProcess
from teho.model.stack import State
from teho.model.summary import NodeSummary
from teho.patterns import lazy_pattern

RANK = 480
SEVERITY = "warning"
THRESHOLDS = {
    "threads_per_core": Threshold(
        1.25,
        "threads",
        "the portal of the Digital Research Alliance of Canada warns if the number of running "
        "threads is more than 1.25 times the number of cores",
    ),
    "without_core_percent": chosen(
        33.0,
        "%",
        "in blind rounds 1 to 8, this finding was right or half right if the threads waited for a "
        "core for 39 to 81 % of the time in which they had work. At 7 to 21 %, it was wrong",
    ),
    "many_per_core": chosen(
        2.0, "threads", "each of these threads has no core for half of the time or more"
    ),
    "worked_percent": chosen(
        10.0, "%", "waits for a core count only if the program's main threads have work"
    ),
    "taken_percent": chosen(
        25.0, "%", "as in the rule cores_taken_by_others: the threads compete with other programs"
    ),
}
MUTES = ("cores_unused", "input_too_few_workers", "input_in_main_process", "input_slow")
MUTES_BECAUSE = "if threads compete for cores, all other work of the program takes longer too"


_PARAMETERS = (
    ("LightGBM", lazy_pattern(r"/(site|dist)-packages/lightgbm/"), "num_threads"),
    ("XGBoost", lazy_pattern(r"/(site|dist)-packages/xgboost/"), "nthread"),
)
"""Libraries whose parameter takes precedence over OMP_NUM_THREADS, and their files."""
_WORKING = frozenset((State.PYTHON, State.NATIVE, State.THREADS, State.CORE))
"""States of a main thread that works, or for which other threads work."""


_RUNNING = frozenset((State.PYTHON, State.NATIVE))


class _Crowded(NamedTuple):
    node: NodeSummary
    threads: float
    """Mean number of threads that ran or could have run."""
    cores: int
    """The job's cores."""


def judge(context: RuleContext) -> Findings:
    """Compare the program's runnable threads with the job's cores.

    If the job has enough cores for the threads, there is no finding, even if the program is bound
    to fewer cores: in this case, the binding is the fault (`bound_to_few_cores`).
    """
    crowded: list[_Crowded] = []
    for node in context.summary.nodes:
        threads = context.mean(node, "job_runnable_threads")
        cores = cores_of_job(context.run, node)
        if threads is None or cores < 1:
            continue
        one = _Crowded(node, threads, cores)
        if threads / cores > context.limit("threads_per_core") and _costs_time(context, one):
            crowded.append(one)
    if not crowded:
        return
    nodes = [one.node for one in crowded]
    names = {node.name for node in nodes}
    per_core = [(one.node, one.threads / one.cores) for one in crowded]
    most = max(ratio for _, ratio in per_core)
    mains = [main for main in context.mains if main.process.node in names]
    main = mains[0] if mains else None
    each = _threads_per_process(context, crowded[0])
    # Then the other threads are those of a library for messages, or wait for each other.
    if len(crowded) == 1 and mains and all(_is_limited(one, each) for one in mains):
        return
    yield context.finding(
        Severity.WARNING,
        f"On average, {span([one.threads for one in crowded], '')} threads competed for "
        f"{counted([one.cores for one in crowded], 'core')} on {each_of(nodes)}.",
        evidence=(
            *per_place(
                "threads ready to run, mean",
                "threads",
                [(one.node, one.threads) for one in crowded],
            ),
            *per_place("threads ready to run per core", "", per_core),
            *(in_lines(main.lines(Doing.NATIVE, Doing.THREADS, Doing.LOADING)) if main else ()),
        ),
        action=_action(mains, each),
        subjects=nodes,
        moments=context.moments_in(
            "job_runnable_threads",
            [(one.node, _crowded_bins(context, one)) for one in crowded],
        ),
        # At most, the threads without a core delay the threads with one.
        regain_percent=(0.0, max(0.0, 100 * (1 - 1 / most))),
    )


def _costs_time(context: RuleContext, one: _Crowded) -> bool:
    """Return whether the threads wait for each other's cores for much of their time."""
    others = cores_of_others(context.run, one.node)
    if others is not None and others >= context.limit("taken_percent") / 100 * one.cores:
        return False
    if one.threads / one.cores >= context.limit("many_per_core"):
        return True
    mains = [main for main in context.mains if main.process.node == one.node.name]
    stacks = [
        seen
        for main in mains
        for process in (main.process, *main.workers, *main.children)
        for seen in process.stacks
    ]
    waited_s = sum(seen.wall_s for seen in stacks if seen.state is State.CORE)
    worked_s = sum(seen.wall_s for seen in stacks if seen.state in _RUNNING)
    had_work_s = waited_s + worked_s
    longest_s = max((main.process.wall_s for main in mains), default=0.0)
    return (
        had_work_s > context.limit("worked_percent") / 100 * longest_s
        and 100 * waited_s >= context.limit("without_core_percent") * had_work_s
    )


def _crowded_bins(context: RuleContext, one: _Crowded) -> Shows:
    most = context.limit("threads_per_core") * one.cores
    return bins_where(one.node, "job_runnable_threads", lambda threads: threads > most)


def _is_limited(main: MainProcess, each: int) -> bool:
    """Return whether each process already has at most this number of OpenMP threads."""
    given = [one.variables.get("OMP_NUM_THREADS", "") for one in (main.process, *main.children)]
    return all(value.isascii() and value.isdigit() and int(value) <= each for value in given)


def _action(mains: Sequence[MainProcess], each: int) -> str:
    """Return how to limit the threads: a parameter of a library comes before the variable."""
    processes = [one for main in mains for one in (main.process, *main.children)]
    stacks = [seen for one in processes for seen in one.stacks if seen.state in _WORKING]
    worked_s = sum(seen.wall_s for seen in stacks)
    for library, files, parameter in _PARAMETERS:
        in_library_s = sum(
            seen.wall_s
            for seen in stacks
            if any(files.search(frame.file) for frame in seen.own_frames)
        )
        if 2 * in_library_s > worked_s:
            return (
                f"Limit the threads of {library}: `{parameter}={each}` (or `n_jobs={each}`). The "
                "library uses this setting instead of `OMP_NUM_THREADS`. For other libraries, "
                f"limit the threads before the program starts: `export OMP_NUM_THREADS={each}`. "
                "If that is not enough, use fewer worker processes."
            )
    return (
        "Limit the threads of each process before the program starts: `export "
        f"OMP_NUM_THREADS={each}`. A program that sets a number of threads itself (`num_threads`, "
        "`n_jobs`, `torch.set_num_threads`) ignores `OMP_NUM_THREADS`: set the number in the "
        f"program to {each}. If that is not enough, use fewer worker processes."
    )


def _threads_per_process(context: RuleContext, crowded: _Crowded) -> int:
    """Return the number of threads that each process can have; a loader worker has one."""
    node, cores = crowded.node, crowded.cores
    mains = [main for main in context.mains if main.process.node == node.name]
    pools = [
        one for main in mains for one in main.children if 2 * one.wall_s >= main.process.wall_s
    ]
    if pools:
        return max(1, cores // len(pools))
    if mains:
        workers = sum(main.feed.workers for main in mains)
        return max(1, (cores - workers) // len(mains))
    processes = recorded([node], "job_processes")
    return max(1, int(cores // max(processes[0][1], 1))) if processes else cores
