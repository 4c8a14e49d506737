"""Keras: the steps of its training, and whether a batch is ready when it asks for one.

With TensorFlow, it fetches batches inside a graph, where the waiting is not visible.
"""

from __future__ import annotations

import sys
from functools import wraps
from time import monotonic

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

_MOST_CHECKS = 100
_BETWEEN_S = 0.1
"""A check takes about 0.15 ms."""
_LATER_S = 10.0
"""Time between the checks after the first `_MOST_CHECKS`."""
_FIRST = 2
"""Batches of an epoch before which the buffer is only being filled."""


def keras_src_callbacks_callback_list(module: Any, notes: Notes) -> None:
    """Count the steps of `fit`: its callbacks are called before and after each of them."""
    callbacks = module.CallbackList
    begin, end = callbacks.on_train_batch_begin, callbacks.on_train_batch_end
    begin_epoch = callbacks.on_epoch_begin
    checks, checked_s = 0, 0.0
    params: dict[str, Any] = {}
    """Of the present `fit`: the number of its `epochs`, and of the `steps` of each epoch."""
    present, batches = 0, 0
    """The number of the present epoch, and its batches so far."""

    def total() -> tuple[int, int] | None:
        steps, epochs = params.get("steps"), params.get("epochs")
        return (present * steps + batches, epochs * steps) if steps and epochs else None

    notes.knows_total("keras", total)

    @wraps(begin_epoch)
    def epoch_begun(self: Any, epoch: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal present, batches, params
        present, batches, params = epoch, 0, getattr(self, "params", None) or {}
        return begin_epoch(self, epoch, *args, **kwargs)

    @wraps(begin)
    def begun(self: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal checks, checked_s
        begin(self, batch, *args, **kwargs)
        now_s = monotonic()
        if now_s - checked_s >= (_BETWEEN_S if checks < _MOST_CHECKS else _LATER_S):
            try:
                of_tensorflow = sys.modules.get("_teho_probe.of_tensorflow")
                if of_tensorflow is not None and batch >= _FIRST:
                    checks, checked_s = checks + 1, now_s
                    of_tensorflow.check_prefetch()
            except Exception as error:
                notes.failed("keras", error)
                checks, checked_s = _MOST_CHECKS, now_s

    @wraps(end)
    def ended(self: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal batches
        notes.step()
        batches = batch + 1 if isinstance(batch, int) else batches
        return end(self, batch, *args, **kwargs)

    callbacks.on_train_batch_begin, callbacks.on_train_batch_end = begun, ended
    callbacks.on_epoch_begin = epoch_begun
