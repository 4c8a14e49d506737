"""Grain: the settings of its pipelines, and how long the program waits for their elements."""

from __future__ import annotations

import os
import sys
from functools import wraps
from time import monotonic
from weakref import WeakKeyDictionary

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Iterable

    from _teho_probe.notes import Loader, Notes

_WORKERS = "grain._src.python.dataset.transformations.process_prefetch"
_MOST_DATASETS = 1000


def grain__src_python_dataset_dataset(module: Any, notes: Notes) -> None:
    """Note each pipeline that the program reads, and the waiting for each of its elements.

    A pipeline is a chain of data sets, each of which asks the one before it. The program asks only
    the last one, so a call inside another call of Grain does not count.
    """
    observer = _Observer(notes)
    if "TEHO_TUNE" in os.environ:
        from _teho_probe.tuned_grain import tune_prefetch

        tune_prefetch(module.IterDataset)
    inject = module.output_dataset_injector

    @wraps(inject)
    def injected(begin: Any) -> Any:
        made = inject(begin)
        # A class of the program itself may be pickled by value, with all that its methods use.
        return observer.begun(made) if _is_of_grain(begin) else made

    module.output_dataset_injector = injected  # for each class that is made from now on
    for one in module.IterDataset.__subclasses__():
        one.__iter__ = observer.begun(one.__iter__)


def grain__src_python_data_loader(module: Any, _: Notes) -> None:
    """Change the settings of `grain.DataLoader` if `teho tune` asks for it."""
    if "TEHO_TUNE" in os.environ:
        from _teho_probe.tuned_grain import tune_data_loaders

        tune_data_loaders(module.DataLoader)


class _Observer:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._is_inside = False
        """Whether the main thread is inside a call of Grain."""
        self._loaders: WeakKeyDictionary[Any, tuple[Loader, list[float]]] = WeakKeyDictionary()
        """Iterator -> its loader, and when its epoch began until the first element has come."""
        self._observed: set[Any] = set()
        """Classes of iterators whose elements are counted."""

    def begun(self, begin: Any) -> Any:
        """Return the `__iter__` of a data set that notes its iterator."""

        @wraps(begin)
        def begun(dataset: Any) -> Any:
            if self._is_inside or not self._notes.is_main_thread() or _is_in_worker():
                return begin(dataset)
            began_s = monotonic()
            tuned = _tuned(dataset)
            iterator = self._call(begin if tuned is dataset else iter, tuned)
            dataset = tuned
            try:
                self._loaders[iterator] = self._notes.loader(_settings(dataset)), [began_s]
                if _is_of_grain(type(iterator)) and type(iterator) not in self._observed:
                    self._observed.add(type(iterator))
                    type(iterator).__next__ = self._followed(type(iterator).__next__)
            except Exception as error:
                self._notes.failed("grain", error)
            return iterator

        return begun

    def _followed(self, following: Any) -> Any:
        @wraps(following)
        def followed(iterator: Any) -> Any:
            if self._is_inside or not self._notes.is_main_thread():
                return following(iterator)
            try:
                noted = self._loaders.get(iterator)
            except TypeError:  # of a subclass that cannot be hashed
                noted = None
            if noted is None:
                return following(iterator)
            loader, began = noted
            requested_s = monotonic()
            element = self._call(following, iterator)
            loader.came(requested_s, began.pop() if began else None)
            return element

        return followed

    def _call(self, function: Any, given: Any) -> Any:
        self._is_inside = True
        try:
            return function(given)
        finally:
            self._is_inside = False


def _tuned(dataset: Any) -> Any:
    """Return a pipeline with the workers that `teho tune` tries."""
    if "TEHO_TUNE" not in os.environ:
        return dataset
    settings = _settings(dataset)
    if settings["num_workers"] or settings["api"] == "DataLoader":
        return dataset
    from _teho_probe.tuned_grain import add_workers

    return add_workers(dataset)


def _is_of_grain(what: Any) -> bool:
    return str(what.__module__).startswith("grain.")


def _is_in_worker() -> bool:
    module = sys.modules.get(_WORKERS)
    return module is not None and module.is_in_worker_process()


def _settings(output: Any) -> dict[str, Any]:
    """Return the settings of a pipeline, by their names in Grain where these are clear."""
    found: dict[str, Any] = {"dataset": "grain", "api": "Dataset", "num_workers": 0}
    for one in _behind(output):
        name = type(one).__name__
        if name == "_DataLoaderPipelineMarkerIterDataset":
            found["api"] = "DataLoader"
        elif name == "ProcessPrefetchIterDataset":
            found["num_workers"] += 1
            found["prefetch_factor"] = one._buffer_size
        elif name == "PrefetchIterDataset":
            found["num_threads"] = one._read_options.num_threads
            found["prefetch_buffer_size"] = one._read_options.prefetch_buffer_size
        elif name.startswith("Batch"):
            found["batch_size"] = one._batch_size
    return found


def _behind(dataset: Any) -> Iterable[Any]:
    """Yield a data set and those behind it, the last one first; of equal shards only the first."""
    waiting, count = [dataset], 0
    is_sharded = False
    while waiting and count < _MOST_DATASETS:
        one = waiting.pop(0)
        count += 1
        yield one
        is_shard = type(one).__name__ == "ProcessPrefetchIterDataset"
        if not (is_shard and is_sharded):
            behind = one._parents or getattr(one, "_datasets", ())
            # Data sets may also be the elements of a data set, which must not be read here.
            waiting += behind if isinstance(behind, (list, tuple)) else ()
        is_sharded = is_sharded or is_shard
