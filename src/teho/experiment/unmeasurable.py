"""Why a run says nothing about how fast the program is."""

from __future__ import annotations

from typing import Any

from teho.errors import InputError
from teho.experiment.attempt import Attempt
from teho.experiment.pace import FEWEST_STEPS
from teho.model.tuned import Settings
from teho.units import format_duration, many

__all__ = ["no_baseline", "no_pace"]


def no_baseline(run: Attempt, for_s: float) -> InputError | None:
    """Return why there is nothing to compare with."""
    wrote = f"; it wrote: {' | '.join(run.tail.splitlines())}" if run.tail else ""
    took = format_duration(run.elapsed_s)
    if run.exit_code:
        return InputError(
            f"{run.ended} after {took}, before its pace was known{wrote}",
            next_step="run it by itself first",
        )
    if run.process is None:
        return InputError(
            f"no Python let the probe in within {took}{wrote}",
            "a Python program, not begun with -I, -E or -S",
        )
    when = "before it ended" if run.exit_code == 0 else f"within {took}"
    if not run.unit:
        return InputError(
            f"no step was seen {when}: none of an optimizer of PyTorch, no batch of a DataLoader"
            + "".join(f"; {problem}" for problem in run.problems[:1]),
            next_step="call `teho.step()` in the program after each step, or give it more time "
            "with `--for`",
        )
    steps = run.pace.steps if run.pace else 0
    if steps < FEWEST_STEPS or not (run.pace and (run.pace.is_whole or run.exit_code == 0)):
        return InputError(
            f"{steps} steady {many(run.unit)} were seen {when}",
            f"{FEWEST_STEPS} or more, over the window",
            "let the program run longer"
            if run.exit_code == 0
            else f"`--for` more than {format_duration(for_s)}",
        )
    return None


def no_pace(settings: Settings, run: Attempt) -> str:
    """Return why a run says nothing about its settings; empty if it does."""
    if run.exit_code:
        last = run.tail.splitlines()[-1:]
        return run.ended + "".join(f": {line.strip()}" for line in last)
    if (
        run.pace is None
        or run.pace.steps < FEWEST_STEPS
        or not (run.pace.is_whole or run.exit_code == 0)
    ):
        steps = f"{run.pace.steps} {many(run.unit)}" if run.pace else "no steps"
        saw = "".join(f"; {problem}" for problem in run.problems[:1])
        return f"it had no steady pace within {format_duration(run.elapsed_s)}, {steps}{saw}"
    if run.process and run.process.libraries.get("tune", {}).get("samples_differ"):
        return (
            "a sample differs from one loading to the next (random augmentation), which would be "
            "frozen"
        )
    threads = run.facts.get("threads")
    if "threads" in settings and threads not in {None, settings["threads"]}:
        return f"the program sets its threads itself, to {threads}"
    return _not_taken(settings, run.loader.settings if run.loader else {})


def _not_taken(settings: Settings, shown: dict[str, Any]) -> str:
    for name in ("num_workers", "batch_size", "prefetch_factor", "persistent_workers"):
        if name in settings and name in shown and shown[name] != settings[name]:
            return f"the loader did not take {name}={settings[name]}: it has {shown[name]}"
    return ""
