"""Progress bars of tqdm: how much of its work the program has done.

Only the outermost bar counts. A bar over the batches of one epoch does not: the number of epochs is
not known.
"""

from __future__ import annotations

import sys
from weakref import ref

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Tuple

    from _teho_probe.notes import Notes


def tqdm_std(module: Any, notes: Notes) -> None:
    """Read the bars when the notes are written; no method is wrapped."""
    notes.knows_total("tqdm", _Bars(module.tqdm, notes).read)


class _Bars:
    def __init__(self, bars: Any, notes: Notes) -> None:
        self._bars = bars
        self._notes = notes
        self._last: Callable[[], Any] = lambda: None
        self._last_total: Any = None
        self._is_repeated = False
        """Whether a bar came after another one with the same total, as in each epoch."""

    def read(self) -> Optional[Tuple[int, int]]:
        """Return what the outermost bar has done, and its total."""
        try:
            shown = [one for one in list(self._bars._instances) if hasattr(one, "pos")]
        except RuntimeError:  # the program is making a bar
            return None
        if not shown:
            return None
        bar = min(shown, key=lambda one: abs(one.pos))
        total = bar.total
        if bar is not self._last():
            self._is_repeated = total is not None and total == self._last_total
            self._last, self._last_total = ref(bar), total
        if not total or total == float("inf") or self._is_repeated or self._is_one_epoch(bar):
            return None
        return bar.n, total

    def _is_one_epoch(self, bar: Any) -> bool:
        data = sys.modules.get("torch.utils.data")
        if data is not None and isinstance(getattr(bar, "iterable", None), data.DataLoader):
            return True
        return any(
            bar.total in _batches(one.settings) for one in list(self._notes.loaders.values())
        )


def _batches(settings: Any) -> Tuple[int, ...]:
    """Return how many batches an epoch of a data loader may have; empty: not known."""
    samples, size = settings.get("samples"), settings.get("batch_size")
    if not isinstance(samples, int) or not isinstance(size, int) or size <= 0:
        return ()
    return (samples // size, -(-samples // size))
