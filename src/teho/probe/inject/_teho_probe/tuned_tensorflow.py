"""Applies the settings that `teho tune` tries to the pipelines of tf.data.

`num_parallel_calls` changes all calls of `map` and `interleave` that have none. `prefetch` and
`cache` have the place of the call behind which they are added, as `FILE:LINE:METHOD`.
"""

from __future__ import annotations

import json
import os
import sys
from functools import wraps
from inspect import signature
from time import monotonic

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.notes import caller
from _teho_probe.tuned import equal

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

__all__ = ["tune_pipelines"]

_AUTOTUNE = -1
_CHANGED = ("map", "interleave", "batch", "padded_batch", "shuffle", "cache")
_KEEPING_S = 3.0
_COMPARED = 8
"""Elements loaded twice. If images are flipped at random, 1 of 256 trials does not notice it."""


def tune_pipelines(datasets: Any, notes: Notes, begin: Any) -> None:
    """Change the calls that make pipelines.

    Args:
        datasets: the class of all pipelines.
        notes: of the process.
        begin: returns an iterator whose elements are not counted as the program's.
    """
    wanted = dict(json.loads(os.environ["TEHO_TUNE"]))
    for name in _CHANGED:
        if hasattr(datasets, name):
            _tune_calls(datasets, name, wanted, lambda dataset: _kept(dataset, notes, begin))


def _tune_calls(datasets: Any, name: str, wanted: dict[str, Any], keep: Any) -> None:
    make = getattr(datasets, name)
    how = signature(make)
    is_parallel = name in ("map", "interleave") and "num_parallel_calls" in wanted

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = how.bind(self, *args, **kwargs)
        if is_parallel and given.arguments.get("num_parallel_calls") is None:
            given.arguments["num_parallel_calls"] = _AUTOTUNE
        dataset = make(*given.args, **given.kwargs)
        here = caller()
        place = "%s:%d:%s" % (here[0], here[2], name) if here else ""
        if wanted.get("cache") == place:
            dataset = keep(dataset)
        if wanted.get("prefetch") == place:
            dataset = dataset.prefetch(_AUTOTUNE)
        return dataset

    setattr(datasets, name, made)


def _kept(dataset: Any, notes: Notes, begin: Any) -> Any:
    """Return some elements again and again, as fast as if all were in memory."""
    count = int(dataset.cardinality())
    tensors = [list(begin(dataset.take(_COMPARED))) for _ in range(2)]
    first, again = sys.modules["tensorflow"].nest.map_structure(lambda one: one.numpy(), tensors)
    notes.fact("tune", samples_differ=not equal(first, again))
    until_s, most = monotonic() + _KEEPING_S, 0
    for _ in begin(dataset):
        most += 1
        if monotonic() > until_s:
            break
    kept = dataset.take(most).cache()
    for _ in begin(kept):
        pass  # an element is kept when it is used
    return kept.repeat().take(count)
