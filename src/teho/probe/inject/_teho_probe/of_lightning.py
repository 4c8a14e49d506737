"""PyTorch Lightning: how many steps its `Trainer` has made and will make."""

from __future__ import annotations

from functools import wraps
from weakref import ref

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Tuple

    from _teho_probe.notes import Notes


def pytorch_lightning_trainer_trainer(module: Any, notes: Notes) -> None:
    """Note the trainer whose `fit` began last."""
    trainers = module.Trainer
    fit = trainers.fit

    @wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        notes.knows_total("lightning", _reader_of(ref(self)))
        return fit(self, *args, **kwargs)

    trainers.fit = fitted


lightning_pytorch_trainer_trainer = pytorch_lightning_trainer_trainer


def _reader_of(known: Callable[[], Any]) -> Callable[[], Optional[Tuple[int, int]]]:
    def read() -> Optional[Tuple[int, int]]:
        trainer = known()
        return None if trainer is None else _nearest_end(trainer)

    return read


def _nearest_end(trainer: Any) -> Optional[Tuple[int, int]]:
    """Return what is done and the total, for the limit that is reached first: steps or epochs."""
    ends = []
    if trainer.max_steps > 0:
        ends.append((trainer.global_step, trainer.max_steps))
    batches, epochs = trainer.num_training_batches, trainer.max_epochs or 0
    # Without a length, it is infinite.
    if epochs > 0 and 0 < batches < float("inf"):
        done = trainer.fit_loop.epoch_loop.batch_progress.total.completed
        ends.append((done, epochs * int(batches)))
    return max(ends, key=lambda one: one[0] / one[1]) if ends else None
