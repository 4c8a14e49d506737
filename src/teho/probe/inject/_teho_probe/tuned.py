"""Applies the settings that `teho tune` tries to PyTorch.

`TEHO_TUNE` has them as JSON: arguments of `DataLoader` by their names, `in_memory`, `feed`,
`threads`, `tf32`, `autocast` (a dtype's name), `channels_last`; and `made_at`, `[file, line]` of
the loader to change. If a setting is not possible, the program fails, or the probe notes it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from functools import wraps
from time import monotonic

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.notes import caller

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from _teho_probe.notes import Notes

__all__ = ["Kept", "equal", "set_up", "tune_loaders"]

_ARGUMENTS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
_MOST_KEPT = 1024
_KEEPING_S = 3.0
_COMPARED = 8
"""Samples loaded twice. If images are flipped at random, 1 of 256 trials does not notice it."""


def _wanted() -> dict[str, Any]:
    return dict(json.loads(os.environ["TEHO_TUNE"]))


# ---- loaders ----


def tune_loaders(loaders: Any, notes: Notes) -> None:
    """Change the arguments of the chosen loader each time it is created."""
    wanted, make = _wanted(), loaders.__init__
    names = make.__code__.co_varnames[1 : make.__code__.co_argcount]

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(names, args), **kwargs)
        is_meant = _is_meant(wanted.get("made_at"))
        if is_meant:
            given = _changed(given, wanted, notes)
        make(self, **given)
        if is_meant and wanted.get("feed"):
            _take_order(self)

    loaders.__init__ = made


def _is_meant(made_at: Any) -> bool:
    if made_at is None:
        return True
    here = caller()
    return here is not None and [here[0], here[2]] == list(made_at)


def _changed(given: dict[str, Any], wanted: dict[str, Any], notes: Notes) -> dict[str, Any]:
    if wanted.get("feed"):
        wanted = {**wanted, "num_workers": 0}
    changed = {**given, **{name: wanted[name] for name in _ARGUMENTS if name in wanted}}
    if "batch_size" in wanted and changed.get("batch_sampler") is None:
        changed["batch_size"] = wanted["batch_size"]
    if not changed.get("num_workers"):
        for name in _OF_WORKERS:  # refused without workers
            changed.pop(name, None)
    if wanted.get("in_memory"):
        changed["dataset"] = _kept(changed["dataset"], notes)
    if wanted.get("feed"):
        changed.pop("pin_memory", None)  # refused for what is on a GPU
        changed.update(dataset=_fed(changed["dataset"], notes), collate_fn=_as_it_is)
    return changed


def _fed(dataset: Any, notes: Notes) -> Fed:
    """Return a dataset whose batches come from arrays on the device, as from `teho.feed.resident`.

    If the dataset is not in arrays, a part of its samples is used again and again.
    """
    torch = sys.modules["torch"]
    tensors = getattr(dataset, "tensors", None)
    if type(dataset).__name__ == "TensorDataset" and tensors is not None:
        return Fed(dataset, list(tensors), len(dataset))
    samples = _kept(dataset, notes).samples
    return Fed(dataset, torch.utils.data.default_collate(samples), len(samples))


def _take_order(loader: Any) -> None:
    """Let the device make the order, if the sampler is one that shuffles all or nothing."""
    sampler, batches = loader.sampler, loader.batch_sampler
    kind, is_whole = type(sampler).__name__, not getattr(sampler, "replacement", False)
    if type(batches).__name__ != "BatchSampler" or not is_whole:
        return
    orders = {"RandomSampler": "randperm", "SequentialSampler": "arange"}
    if kind in orders and len(sampler) == len(loader.dataset):
        # The loader refuses to set this after its creation.
        loader.__dict__["batch_sampler"] = _Order(batches, orders[kind])


class _Order:
    """A batch sampler that gives tensors of rows."""

    def __init__(self, batches: Any, order: str) -> None:
        self._batches = batches
        self._order = order

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Any:
        torch, count = sys.modules["torch"], len(self._batches.sampler)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return iter(
            getattr(torch, self._order)(count, device=device).split(self._batches.batch_size)[
                : len(self)
            ]
        )


def _as_it_is(batch: Any) -> Any:
    return batch


def _kept(dataset: Any, notes: Notes) -> Kept:
    count = len(dataset)
    alike = all(equal(dataset[place], dataset[place]) for place in range(min(_COMPARED, count)))
    notes.fact("tune", samples_differ=not alike)
    until_s, most = monotonic() + _KEEPING_S, min(_MOST_KEPT, count)
    samples: list[Any] = []
    while len(samples) < most and (not samples or monotonic() < until_s):
        samples.append(dataset[len(samples) * count // most])
    return Kept(dataset, samples)


def equal(one: Any, other: Any) -> bool:
    """Return whether two samples have the same values."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    is_equal = one == other
    return bool(is_equal.all() if hasattr(is_equal, "all") else is_equal)


class Kept:
    """A dataset that returns some samples again and again, as fast as if all were in memory."""

    def __init__(self, dataset: Any, samples: list[Any]) -> None:
        self._dataset = dataset
        self.samples = samples

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_dataset", "samples"):  # missing while unpickling
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, place: Any) -> Any:
        return self.samples[int(place) % len(self.samples)]


class Fed(Kept):
    """A dataset that gives whole batches, from arrays on the device."""

    def __init__(self, dataset: Any, arrays: Any, count: int) -> None:
        super().__init__(dataset, [])
        torch = sys.modules["torch"]
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._count = count
        self._arrays = _each(arrays, lambda array: array.to(self._device))

    def __getitem__(self, place: Any) -> Any:
        return self._dataset[place]

    def __getitems__(self, places: Any) -> Any:
        rows = sys.modules["torch"].as_tensor(places, device=self._device)
        if self._count < len(self):
            rows = rows % self._count
        return _each(self._arrays, lambda array: array.index_select(0, rows))


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a batch with the result of a function for each array."""
    if isinstance(value, dict):
        return {key: _each(one, function) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(one, function) for one in value]
    return function(value)


# ---- how it computes ----


def set_up(module: Any) -> None:
    """Set threads and precision, and change the calls of all models."""
    wanted = _wanted()
    if "threads" in wanted:
        module.set_num_threads(wanted["threads"])
    if wanted.get("tf32"):
        module.set_float32_matmul_precision("high")
        module.backends.cudnn.allow_tf32 = True
    if wanted.get("autocast") or wanted.get("channels_last"):
        _tune_calls(module, wanted)


def _tune_calls(module: Any, wanted: dict[str, Any]) -> None:
    models, layout = module.nn.Module, module.channels_last
    call = models.__call__
    dtype = getattr(module, wanted["autocast"]) if wanted.get("autocast") else None
    is_inside = False

    def moved(value: Any) -> Any:
        is_images = isinstance(value, module.Tensor) and value.dim() == 4
        return value.to(memory_format=layout) if is_images else value

    @wraps(call)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal is_inside
        if is_inside:
            return call(self, *args, **kwargs)
        is_inside = True
        try:
            if wanted.get("channels_last"):
                self.to(memory_format=layout)
                args = tuple(map(moved, args))
            device = "cuda" if module.cuda.is_initialized() else "cpu"
            with module.autocast(device, dtype=dtype) if dtype else nullcontext():
                return call(self, *args, **kwargs)
        finally:
            is_inside = False

    models.__call__ = called
