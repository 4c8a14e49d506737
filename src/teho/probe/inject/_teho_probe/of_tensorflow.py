"""TensorFlow: the tf.data pipelines of the program, and how long it waits for them.

Batches of pipelines that Keras uses inside a graph are not visible, so they are not counted.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from inspect import signature
from time import monotonic
from weakref import WeakKeyDictionary, ref

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.notes import caller

if TYPE_CHECKING:
    from typing import Any, Iterable

    from _teho_probe.notes import Loader, Notes

_AUTOTUNE = -1
_NOTED = {
    "batch": ("batch_size", "num_parallel_calls"),
    "padded_batch": ("batch_size",),
    "map": ("num_parallel_calls",),
    "interleave": ("num_parallel_calls", "cycle_length"),
    "prefetch": ("buffer_size",),
    "shuffle": ("buffer_size",),
    "cache": ("filename",),
}
"""Method of a dataset -> its arguments that are noted."""
_MODEL = "tensorflow.python.data.experimental.ops.iterator_model_ops"
_UNSIZED = frozenset(("string", "variant", "resource"))
"""Types whose values have no fixed size."""
_NEWEST: list[Any] = []
"""The iterator that the program began last, as a weak reference, and its loader."""
_BATCHES_WITH_STAGES = frozenset((10, 100, 1000, 10_000))
_HARMLESS = ("ReadFile", "Assert", "Print", "PrintV2")
"""Operations with a state whose result is the same each time."""


def tensorflow(module: Any, notes: Notes) -> None:
    """Note its version, and the GPUs for which it was built."""
    notes.fact("tensorflow", version=str(module.__version__))
    build = module.sysconfig.get_build_info()
    for name in ("cuda", "rocm"):
        notes.fact("tensorflow", **{name: bool(build.get(f"is_{name}_build"))})


def tensorflow_python_data_ops_dataset_ops(module: Any, notes: Notes) -> None:
    """Note each pipeline that is used, and how long the program waited for its batches."""
    datasets, iterators = module.DatasetV2, module.iterator_ops.OwnedIterator
    # Dataset -> the call that made it, and where.
    known: WeakKeyDictionary[Any, tuple[dict[str, Any], Any]] = WeakKeyDictionary()
    loaders: WeakKeyDictionary[Any, Loader] = WeakKeyDictionary()
    waiting: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
    for name, arguments in _NOTED.items():
        if hasattr(datasets, name):
            _note_calls(datasets, name, arguments, known, notes)
    if "TEHO_TUNE" in os.environ:
        from _teho_probe.tuned_tensorflow import tune_pipelines

        tune_pipelines(datasets, notes, datasets.__iter__)  # which counts no batches
    begin, following = datasets.__iter__, iterators.__next__

    @wraps(begin)
    def begun(self: Any) -> Any:
        began_s = monotonic()
        iterator = begin(self)
        try:
            if self not in loaders:
                calls = [known[one] for one in _behind(self) if one in known]
                pipeline = [call for call, _ in reversed(calls)]
                made_at = calls[0][1] if calls else None
                settings = {"dataset": "tf.data", "pipeline": pipeline, **_sizes(pipeline)}
                loaders[self] = loader = notes.loader(settings, made_at)
                if not loader.batch and sys.modules["tensorflow"].executing_eagerly():
                    _expect(self, loader)
            waiting[iterator] = [loaders[self], began_s, 0.0]
            _NEWEST[:] = [ref(iterator), loaders[self]]
        except Exception as error:
            notes.failed("tensorflow", error)
        return iterator

    @wraps(following)
    def followed(self: Any) -> Any:
        requested_s = monotonic()
        batch = following(self)
        noted = waiting.get(self)
        if noted is not None:
            loader, began_s, _ = noted
            noted[1] = None
            noted[2] += monotonic() - (began_s or requested_s)
            loader.came(requested_s, began_s)
            if not loader.batch or loader.batches in _BATCHES_WITH_STAGES:
                try:
                    if sys.modules["tensorflow"].executing_eagerly():
                        _note_work(self, batch, loader, noted[2])
                except Exception as error:
                    notes.failed("tensorflow", error)
                    loader.batch = loader.batch or {"bytes": None}
        return batch

    datasets.__iter__, iterators.__next__ = begun, followed


def _behind(dataset: Any) -> Iterable[Any]:
    """Yield a dataset and its inputs, the last one first."""
    yield dataset
    for one in dataset._inputs():
        yield from _behind(one)


def _sizes(pipeline: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the batch size of a pipeline that makes batches once."""
    sizes = [call["batch_size"] for call in pipeline if "batch_size" in call]
    return {"batch_size": sizes[0]} if len(sizes) == 1 and isinstance(sizes[0], int) else {}


def _expect(dataset: Any, loader: Loader) -> None:
    """Note the size of a data set, and of its batches if their shapes are known beforehand."""
    count, size = int(dataset.cardinality()), loader.settings.get("batch_size")
    if size and count > 0:
        loader.settings = {**loader.settings, "samples": count * size}
    specs = sys.modules["tensorflow"].nest.flatten(dataset.element_spec)
    try:
        sizes = [_size_of(one, size) for one in specs]
    except (AttributeError, TypeError, ValueError):  # another kind, or a length is not known
        return
    loader.batch = {"bytes": sum(sizes), "dtypes": sorted({one.dtype.name for one in specs})}


def _size_of(spec: Any, batch_size: int | None) -> int:
    """Return the bytes of a tensor whose first length may be the batch size."""
    if spec.dtype.name in _UNSIZED:
        raise ValueError(spec)
    lengths = list(spec.shape)
    if lengths and lengths[0] is None:
        lengths[0] = batch_size
    size = int(spec.dtype.size)
    for length in lengths:
        size *= length
    return size


def _note_work(iterator: Any, batch: Any, loader: Loader, waited_s: float) -> None:
    """Note the content of the first batch, and from time to time the work of each stage.

    Args:
        iterator: of the present epoch.
        batch: of the iterator.
        loader: of all epochs.
        waited_s: how long the program has waited for this iterator.
    """
    if not loader.batch:
        loader.batch = _batch(batch)
        return
    model = _model(iterator)
    if model is not None:
        loader.settings = {
            **loader.settings, "stages": _stages(model), "stages_waited_s": round(waited_s, 4)
        }  # fmt: skip


def check_prefetch() -> None:
    """Note whether a batch is ready, for a pipeline whose batches are fetched inside a graph.

    TensorFlow reports it if the last stage is a prefetch.
    """
    iterator = _NEWEST[0]() if _NEWEST else None
    model = None if iterator is None else _model(iterator)
    if model is None or not model.nodes[model.output].inputs:
        return
    loader: Loader = _NEWEST[1]
    last = model.nodes[model.nodes[model.output].inputs[0]]
    if last.name.startswith("Prefetch"):
        checks, empty = loader.settings.get("looks", [0, 0])
        counts = [checks + 1, empty + (last.buffered_elements == 0)]
        # At the end of an epoch, stages that have read all elements are no longer in the model.
        stages, before = _stages(model), loader.settings.get("stages", {})
        if sum(stages.values()) < sum(before.values()):
            stages = before
        loader.settings = {**loader.settings, "looks": counts, "stages": stages}


def _model(iterator: Any) -> Any:
    """Return TensorFlow's model of a pipeline; None if it has none."""
    if _MODEL not in sys.modules:
        return None
    try:
        return sys.modules[_MODEL].get_model_proto(iterator)
    except Exception:  # the program has switched autotuning off, which measures the stages
        return None


def _stages(model: Any) -> dict[str, float]:
    """Return the work of each stage in s."""
    found: dict[str, float] = {}
    for node in model.nodes.values():
        found[node.name] = found.get(node.name, 0.0) + node.processing_time / 1e9
    return {name: round(work_s, 4) for name, work_s in found.items()}


def _batch(batch: Any) -> dict[str, Any]:
    """Return the size and the types of a batch."""
    tensors = sys.modules["tensorflow"].nest.flatten(batch)
    dtypes = {one.dtype.name for one in tensors}
    sizes = [one.dtype.size * one.shape.num_elements() for one in tensors]
    is_known = not dtypes & _UNSIZED
    return {"bytes": int(sum(sizes)) if is_known else None, "dtypes": sorted(dtypes)}


def _is_random(dataset: Any) -> bool | None:
    """Return whether the function of a map may return other values for the same element.

    None if this TensorFlow does not have the function's graph at this place.
    """
    try:
        graph = dataset._map_func.function.graph
    except AttributeError:
        return None
    return any(
        one.op_def.is_stateful and one.type not in _HARMLESS for one in graph.get_operations()
    )


def _note_calls(
    datasets: Any, name: str, arguments: tuple[str, ...], known: Any, notes: Notes
) -> None:
    make = getattr(datasets, name)
    bind = signature(make).bind

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        dataset = make(self, *args, **kwargs)
        try:
            given = bind(self, *args, **kwargs)
            given.apply_defaults()
            settings = {key: _simple(given.arguments[key]) for key in arguments}
            place = caller()
            at = {"at": [place[0], place[2]]} if place else {}
            if name == "map":
                settings["is_random"] = _is_random(dataset)
            known[dataset] = {"call": name, **settings, **at}, place
        except Exception as error:
            notes.failed("tensorflow", error)
        return dataset

    setattr(datasets, name, made)


def _simple(value: Any) -> Any:
    """Return an argument as JSON can have it; the value of a tensor is not known yet."""
    if isinstance(value, int) and value == _AUTOTUNE:
        return "autotune"
    return value if value is None or isinstance(value, (bool, int, float, str)) else "given"
