"""The samples of a step, from the batches that the loader gave."""

from __future__ import annotations

from teho.experiment.attempt import Attempt

__all__ = ["batches_per_step", "samples_per_batch", "samples_per_step"]


def samples_per_step(run: Attempt) -> float:
    """Return the samples of a step; without a loader, 1."""
    size = (run.loader.settings.get("batch_size") if run.loader else 0) or 1
    return float(size * batches_per_step(run))


def batches_per_step(run: Attempt) -> float:
    """Return the batches of a step, as a whole number or the inverse of one.

    It is 1 unless the program accumulates gradients, has several optimizers, or calls `teho.step`
    once an epoch. It is rounded, because the ends of a window are cut off anywhere.
    """
    if run.pace is None or run.loader is None:
        return 1.0
    given = sum(run.pace.from_s < one.at_s <= run.pace.until_s for one in run.loader.given)
    if not given:
        return 1.0
    batches = given / run.pace.steps
    return float(round(batches)) if batches >= 1 else 1 / round(1 / batches)


def samples_per_batch(run: Attempt) -> float:
    """Return the mean samples of a batch, with the smaller last batch of each epoch.

    If no epoch began within the window, all batches of the window were complete.
    """
    settings = run.loader.settings if run.loader else {}
    size, samples = settings.get("batch_size") or 1, settings.get("samples")
    if run.pace is None or run.loader is None or not samples or settings.get("drop_last"):
        return float(size)
    firsts = (one.at_s for one in run.loader.given if one.is_first)
    if not any(run.pace.from_s < at_s <= run.pace.until_s for at_s in firsts):
        return float(size)
    return float(samples / -(-samples // size))
