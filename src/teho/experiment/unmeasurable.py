"""Finds the reason why a run has no usable pace."""

from __future__ import annotations

from typing import Any

from teho.errors import InputError
from teho.experiment.attempt import Attempt
from teho.experiment.pace import FEWEST_STEPS
from teho.experiment.started import with_last_message
from teho.model.tuned import Settings
from teho.units import format_duration, many

__all__ = ["no_baseline", "no_pace"]


def no_baseline(run: Attempt, for_s: float) -> InputError | None:
    """Return an error if the unchanged program cannot be measured."""
    wrote = f"; it wrote: {' | '.join(run.tail.splitlines())}" if run.tail else ""
    took = format_duration(run.elapsed_s)
    if run.exit_code:
        return InputError(
            f"{run.ended} after {took}, before its step rate was known{wrote}",
            next_step="run the program without Teho first",
        )
    if run.process is None:
        return InputError(
            f"no Python process loaded Teho's probe within {took}{wrote}",
            "a Python program that was started without -I, -E or -S",
        )
    when = "before the program ended" if run.exit_code == 0 else f"within {took}"
    if not run.unit:
        return InputError(
            "no optimizer step (PyTorch, Keras) and no batch (DataLoader, tf.data) was seen "
            f"{when}" + "".join(f"; {problem}" for problem in run.problems[:1]),
            next_step="call `teho.step()` in the program after each step, or increase `--for`",
        )
    steps = run.pace.steps if run.pace else 0
    if steps < FEWEST_STEPS or not (run.pace and (run.pace.is_whole or run.exit_code == 0)):
        return InputError(
            f"{steps} steady {many(run.unit)} were seen {when}",
            f"{FEWEST_STEPS} or more steady {many(run.unit)} within the window",
            "let the program run longer"
            if run.exit_code == 0
            else f"increase `--for` to more than {format_duration(for_s)}",
        )
    return None


def no_pace(settings: Settings, run: Attempt) -> str:
    """Return why a run cannot be used to judge its settings; empty if it can."""
    if run.exit_code:
        return with_last_message(run.ended, "".join(run.tail.splitlines()[-1:]))
    if (
        run.pace is None
        or run.pace.steps < FEWEST_STEPS
        or not (run.pace.is_whole or run.exit_code == 0)
    ):
        steps = f"{run.pace.steps} {many(run.unit)}" if run.pace else "no steps"
        saw = "".join(f"; {problem}" for problem in run.problems[:1])
        return (
            f"the run had no steady step rate within {format_duration(run.elapsed_s)}: {steps}{saw}"
        )
    if run.process and run.process.libraries.get("tune", {}).get("samples_differ"):
        return (
            "the samples change each time they are loaded (random augmentation), but in memory the "
            "samples would not change"
        )
    threads = run.facts.get("threads")
    if "threads" in settings and threads not in {None, settings["threads"]}:
        return f"the program itself sets the number of threads to {threads}"
    return _not_taken(settings, run.loader.settings if run.loader else {})


def _not_taken(settings: Settings, shown: dict[str, Any]) -> str:
    for name in ("num_workers", "batch_size", "prefetch_factor", "persistent_workers"):
        if name in settings and name in shown and shown[name] != settings[name]:
            return (
                f"the loader did not accept {name}={settings[name]}, and still uses {shown[name]}"
            )
    return ""
