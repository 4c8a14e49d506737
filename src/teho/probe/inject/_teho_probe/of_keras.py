"""Keras: the steps of its training. It fetches batches inside a graph, where they are not seen."""

from __future__ import annotations

from functools import wraps

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes


def keras_src_callbacks_callback_list(module: Any, notes: Notes) -> None:
    """Count the steps of `fit`: its callbacks are called after each of them."""
    callbacks = module.CallbackList
    end = callbacks.on_train_batch_end

    @wraps(end)
    def ended(self: Any, *args: Any, **kwargs: Any) -> Any:
        notes.step()
        return end(self, *args, **kwargs)

    callbacks.on_train_batch_end = ended
