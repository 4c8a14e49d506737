"""Sentences about the tasks and nodes of a step: how they ended, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.explain.step import absent_hosts, ending, silent_ranks, stopped_early
from teho.explain.wording import MOST_NAMED, capital, listed, ranks_on, span, the_ranks
from teho.model.run import Run, RunState, Step
from teho.model.summary import Summary
from teho.units import format_duration

__all__ = ["clock_notes", "ended_words", "gaps", "node_count"]

_CLOCK_OFFSET_S = 1.0
"""Least offset of a clock for a note: the length of one sample."""


def node_count(run: Run) -> int:
    """Return the number of nodes of the run, with those that were not recorded."""
    reported = max(len(run.step.hosts), run.step.node_count or 0) if run.step else 0
    return max(reported, len(run.nodes))


def ended_words(run: Run, step: Step, state: RunState) -> str:
    """Return how the tasks of a step ended: `31 tasks with exit code 0, rank 7 by SIGKILL`."""
    endings: dict[str, list[int]] = {}
    for task in run.tasks:
        if task.end is not None:
            how = ending(task.end)
            # A signal follows `by`, an exit code follows `with`.
            endings.setdefault(how if task.end.signal else f"with {how}", []).append(task.rank)
    silent = sorted(rank for ranks in silent_ranks(run).values() for rank in ranks)
    groups = sorted(endings.items(), key=lambda group: -len(group[1]))
    if not silent and len(groups) == 1:
        return f"all {step.task_count} tasks {groups[0][0]}"
    words = [
        f"{len(ranks)} tasks {how}" if not place and len(ranks) > 1 else f"{the_ranks(ranks)} {how}"
        for place, (how, ranks) in enumerate(groups)
    ]
    if silent and state is RunState.RUNNING:
        words.append(f"{len(silent)} still running")
    elif silent:
        words.append(f"no report from {the_ranks(silent)}")
    return ", ".join(words)


def gaps(run: Run, state: RunState, summary: Summary) -> Iterable[str]:
    """Yield a sentence for each missing part of a recording of several nodes or tasks."""
    running = state is RunState.RUNNING
    if absent := absent_hosts(run):
        yield f"{listed(absent)} left no recording{' so far' if running else ''}."
    elif run.step and not run.step.hosts and (lost := node_count(run) - len(run.nodes)):
        yield f"{lost} of {node_count(run)} nodes left no recording."
    if stopped := stopped_early(run, state, summary):
        names = listed([node.name for node in stopped])
        yield (
            f"The samples of {names} stop after "
            f"{span([node.last_s or 0.0 for node in stopped], 's')}, but the run took "
            f"{format_duration(summary.elapsed_s)}: the recorder was killed, or the node "
            f"failed{', or its files have not arrived yet' if running else ''}."
        )
    if run.step and not running:
        yield from _silence(run.step, silent_ranks(run))


def _silence(step: Step, silent: dict[str, tuple[int, ...]]) -> Iterable[str]:
    ranks = [rank for some in silent.values() for rank in some]
    killed = "were killed before Teho could record their end"
    if step.task_count > 1 and len(ranks) == step.task_count:
        yield f"The {len(ranks)} tasks {killed}."
    elif len(silent) > MOST_NAMED:
        yield f"{capital(ranks_on(ranks, silent))} {killed}."
    else:
        for name, some in silent.items():
            what = "was killed before Teho could record its end" if len(some) == 1 else killed
            yield f"{capital(ranks_on(some, [name]))} {what}."


def clock_notes(run: Run) -> Iterable[str]:
    """Yield notes about clocks that differ, and about clocks that were not compared."""
    if run.step is None or len(run.nodes) < 2:
        return
    first = run.step.began_on
    for node in run.nodes:
        clock = node.clock
        if clock and abs(clock.ahead_s) > _CLOCK_OFFSET_S:
            side = "ahead of" if clock.ahead_s > 0 else "behind"
            yield (
                f"The clock of {node.name} is {format_duration(abs(clock.ahead_s))} {side} "
                f"the clock of {first} (± {format_duration(clock.uncertainty_s)}). The times of "
                f"the samples of {node.name} are corrected."
            )
    unknown = [node.name for node in run.nodes if node.clock is None and node.name != first]
    if unknown:
        yield (
            f"{capital(_clocks_of(unknown))} could not be compared with the clock of {first}. So "
            "the times of the samples are not corrected."
        )


def _clocks_of(names: Sequence[str]) -> str:
    return f"the clock{'' if len(names) == 1 else 's'} of {listed(names)}"
