"""What `teho profile` recorded in a run, in sentences: the traces, and why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teho.errors import InputError
from teho.model.profiling import ACCEPTED, ProfilerPlan, ProfilerUse
from teho.model.watched import WatchedProcess
from teho.units import counted, format_bytes, format_duration

__all__ = [
    "Obstacle",
    "chosen_ranks",
    "failed_words",
    "obstacle_of",
    "partly_words",
    "steps_words",
    "uses_of",
]

_SLOWER = 0.02
"""Share by which the steps of the slowest rank must be longer than the median. It is Teho's own
choice: smaller differences are noise."""


class Obstacle(NamedTuple):
    """Why there is no trace, and what to do."""

    found: str
    next_step: str

    def error(self) -> InputError:
        """Return it as an error."""
        return InputError(self.found, next_step=self.next_step)


_FRAMEWORKS = frozenset(("torch", "jax", "tensorflow"))
"""Modules of the frameworks whose profilers the probe can start."""
_NO_FRAMEWORK = Obstacle(
    "the program has not imported a framework whose profiler Teho can start (PyTorch, JAX, "
    "TensorFlow)",
    "`teho report` shows where the time went in any program",
)


def uses_of(
    processes: Sequence[WatchedProcess], plan: str = ""
) -> list[tuple[WatchedProcess, ProfilerUse]]:
    """Return each ended use of the profiler with its process.

    Args:
        processes: of a run.
        plan: id of the plan; empty: of all plans.
    """
    return [
        (process, use)
        for process in processes
        for use in process.profiled
        if plan in ("", use.profile) and use.why != ACCEPTED
    ]


def steps_words(use: ProfilerUse) -> str:
    """Return which steps a trace has, for a sentence: `steps 20 to 24`."""
    if use.steps is None:
        return "no complete step"
    first, last = use.steps
    return f"step {first}" if first == last else f"steps {first} to {last}"


def partly_words(use: ProfilerUse, plan: ProfilerPlan | None = None) -> str:
    """Return why a trace has less than what was asked for; empty if it has everything."""
    has = f"the trace has only {steps_words(use)}"
    if use.steps is None:
        has = "the trace has no complete step"
    where = f" in step {use.in_step}" if use.in_step is not None else ""
    if use.why == "ended":
        if use.in_step is None:
            return "The program ended before the time to record was over."
        return f"The program ended{where}, so {has}."
    if use.why == "time":
        limit = f" of {format_duration(plan.most_s)}" if plan else ""
        return f"The time limit{limit} was reached{where}, so {has}. To record longer: `--max-time`"
    if use.why == "memory":
        return f"The profiler's events filled the memory{where}, so {has}."
    return ""


def obstacle_of(
    plan: ProfilerPlan, processes: Sequence[WatchedProcess], *, killed_by: str = ""
) -> Obstacle:
    """Return why a plan gave no trace.

    Args:
        plan: the plan.
        processes: the Python processes of the run.
        killed_by: name of the signal that ended the program, if a signal did.
    """
    uses = [use for _, use in uses_of(processes, plan.id)]
    if uses:
        return _obstacle(uses[0], plan)
    if killed_by:
        return Obstacle(
            f"the program was killed by {killed_by} before it could write a trace",
            "give earlier steps with `--steps`",
        )
    if not processes:
        return Obstacle(
            "no Python process of the program loaded Teho's probe",
            "docs/probe.md lists the programs in which the probe does not work",
        )
    steps = max((one.progress[-1].steps for one in processes if one.progress), default=0)
    if plan.window_s is not None:
        if all(_FRAMEWORKS.isdisjoint(one.libraries) for one in processes):
            return _NO_FRAMEWORK
        return Obstacle(
            "the program ended before the time to record",
            "`--after 0s` begins to record as soon as the framework is imported"
            if plan.after_s
            else "let the program run for longer",
        )
    if not steps:
        return Obstacle(
            "Teho counted no steps of the program",
            "record a length of time with `--window 2s`, or call `teho.step()` after each step",
        )
    if plan.first is not None and steps < plan.first:
        return Obstacle(
            f"the program made only {counted(steps, 'step')}, so step {plan.first} was not reached",
            f"`--steps {_range_before(steps, plan)}`"
            if steps > 1
            else "record a length of time with `--window 2s`",
        )
    return Obstacle(
        "no process with the chosen rank made these steps",
        "`--ranks all` records all ranks",
    )


def _range_before(steps: int, plan: ProfilerPlan) -> str:
    """Return a range of steps that a program with so few steps reaches."""
    wanted = 1 + (plan.last or 0) - (plan.first or 0)
    first = max(2, steps - wanted)
    return f"{first}:{min(first + wanted, steps + 1)}"


def failed_words(use: ProfilerUse) -> str:
    """Return why a process has no trace, as a sentence."""
    return f"Teho recorded no trace: {_obstacle(use, None).found}."


def _obstacle(use: ProfilerUse, plan: ProfilerPlan | None) -> Obstacle:
    fewer = "record fewer steps"
    if plan and plan.extras:
        fewer += f", or leave out `--with {','.join(plan.extras)}`"
    at = f" in step {use.in_step}" if use.in_step is not None else ""
    amount = format_bytes(float(use.detail)) if use.detail.isdigit() else ""
    if use.why == "passed":
        first = f"step {plan.first}" if plan else "the first step"
        return Obstacle(
            f"{first} was over when the profiler could start: the program had made "
            f"{counted(int(use.detail or 0), 'step')}",
            "give later steps with `--steps`",
        )
    if use.why == "own":
        return Obstacle(
            "the program's own profiler was active, so Teho did not start another one",
            "explain the trace that the program writes: `teho profile FILE`",
        )
    if use.why == "displaced":
        return Obstacle(
            f"the program started its own profiler{at}, so Teho stopped and has no trace",
            "explain the trace that the program writes: `teho profile FILE`",
        )
    if use.why == "tool":
        return Obstacle(
            f"{use.detail} already profiles the program, so Teho did not start another profiler",
            "run the program without this tool",
        )
    if use.why == "size":
        most = f" of {format_bytes(plan.most_bytes)}" if plan else ""
        return Obstacle(
            f"the trace has {amount}, more than the limit{most}, and was not stored",
            f"{fewer}, or raise the limit with `--max-size`",
        )
    if use.why == "disk":
        return Obstacle(
            f"only {amount} are free on the disk of /tmp, too little for the trace", fewer
        )
    if use.why == "written":
        return Obstacle("the trace could not be written: the disk of /tmp may be full", fewer)
    if use.why == "device":
        return Obstacle(
            "the program did not use a GPU with PyTorch before the first step",
            "leave out `--with range`",
        )
    if use.why == "roctx":
        return Obstacle(
            "rocprofv3 does not run the program, or runs it without `--runtime-trace`",
            "`--with rocprof` runs rocprofv3",
        )
    if use.why == "framework":
        return _NO_FRAMEWORK
    if use.why == "ended":
        return Obstacle(
            f"the program ended{at or ' before the first step to record'}, so there is no trace",
            "give earlier steps with `--steps`",
        )
    return Obstacle(
        f"the profiler failed: {use.detail or use.why}", "`teho report` has the rest of the run"
    )


def chosen_ranks(processes: Sequence[WatchedProcess]) -> tuple[int, ...]:
    """Return the slowest and the median rank; empty if all ranks make steps equally fast.

    Ranks that exchange gradients wait for each other, so they usually make equally many steps.
    """
    paces = sorted(_paces(processes))
    if len(paces) < 3:
        return ()
    slowest, median = paces[0], paces[len(paces) // 2]
    if slowest[0] > (1 - _SLOWER) * median[0]:
        return ()
    return (slowest[1], median[1])


def _paces(processes: Sequence[WatchedProcess]) -> Iterator[tuple[float, int]]:
    """Yield the steps per second and the rank of each process that has both."""
    for process in processes:
        found = (_rank_in(facts) for facts in process.libraries.values())
        rank = next((one for one in found if one is not None), None)
        pace = process.progress[-1].steps_per_s if process.progress else None
        if isinstance(rank, int) and pace:
            yield pace, rank


def _rank_in(facts: Mapping[str, object]) -> object:
    """Return the rank that a library reports; JAX calls it the index of the process."""
    if "rank" in facts:
        return facts["rank"]
    # A program on several PyTorch ranks may use JAX in each of them alone.
    return facts.get("process_index") if facts.get("process_count") != 1 else None
