"""PyTorch: its data loaders, its steps, and its settings.

Settings are read in the program's thread after a step, because the number of threads and autocast
belong to a thread. Devices are never asked, because that would initialise them.
"""

from __future__ import annotations

import os
import sys
from collections import UserDict
from contextlib import contextmanager
from functools import wraps
from gc import get_referrers
from time import monotonic
from weakref import WeakSet, ref

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.of_torch_layers import odd_layers

if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from _teho_probe.notes import Loader, Notes

_MOST_PARAMETERS = 2000
_MOST_ITEMS = 64
_STEPS_WITH_GRADIENTS = frozenset((10, 100))
"""Steps after which gradients are examined. On 2026-11-26, to search the 380,000 objects of
a program with Transformers took 0.07 s."""
_GRADIENT_FACTS = ("table_gradient", "unused_gradients")
_TABLE_ROWS, _TABLE_BYTES = 20_000, 4_000_000
"""Least size of a table of which most rows may have no gradient."""
_ROWS_EXAMINED = 20_000
_BATCHES_EXAMINED = 20
"""Batches of a loader whose padding is counted."""
_STEPS_WITH_SETTINGS = frozenset((1, 10, 100, 1000, 10_000))
_SETTINGS = (
    "batch_size",
    "num_workers",
    "pin_memory",
    "prefetch_factor",
    "persistent_workers",
    "drop_last",
)


def torch(module: Any, notes: Notes) -> None:
    """Note its version, and the GPUs for which it was built."""
    version = module.version
    notes.fact(
        "torch",
        version=str(module.__version__),
        cuda=getattr(version, "cuda", None),
        hip=getattr(version, "hip", None),
        xpu=getattr(version, "xpu", None),
    )
    if "TEHO_TUNE" in os.environ:
        from _teho_probe.tuned import set_up

        set_up(module)


# ---- loaders ----


def torch_utils_data_dataloader(module: Any, notes: Notes) -> None:
    """Note each loader, and how long the program waited for its batches."""
    from _teho_probe.padding import count_padding, count_sizes

    loaders, iterators = module.DataLoader, module._BaseDataLoaderIter
    # The key is the object's id, until the object is deleted. An attribute would be pickled with
    # the loader, and a subclass may not be hashable.
    known: dict[int, tuple[Any, Loader]] = {}
    if "TEHO_TUNE" in os.environ:
        from _teho_probe.tuned import tune_loaders

        tune_loaders(loaders, notes)
    make, begin, following = loaders.__init__, loaders.__iter__, iterators.__next__

    def note(self: Any) -> Loader | None:
        number = id(self)
        try:
            if number not in known:
                loader = notes.loader(_settings(self, module))
                known[number] = ref(self, lambda _: known.pop(number, None)), loader
            return known[number][1]
        except Exception as error:
            notes.failed("torch", error)
            return None

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        note(self)

    @wraps(begin)
    def begun(self: Any) -> Any:
        began_s = monotonic()
        iterator = begin(self)
        if isinstance(iterator, iterators):
            iterator._teho_loader = note(self)  # `__init__` was not called for a copy
            iterator._teho_began_s = began_s
        return iterator

    @wraps(following)
    def followed(self: Any) -> Any:
        requested_s = monotonic()
        batch = following(self)
        loader = self.__dict__.get("_teho_loader")
        if loader is not None:
            began_s, self._teho_began_s = self._teho_began_s, None
            loader.came(requested_s, began_s)
            if not loader.batch:
                try:
                    loader.batch = _batch(batch)
                    if "batch_sampler" in loader.settings and not loader.settings["batch_size"]:
                        loader.settings["batch_size"] = loader.batch["samples"]
                    _count_samples(self, loader)
                except Exception as error:
                    notes.failed("torch", error)
                    loader.batch = {"bytes": None}
            if loader.batches <= _BATCHES_EXAMINED:
                try:
                    count_padding(batch, loader)
                    count_sizes(batch, loader)
                except Exception as error:
                    notes.failed("torch", error)
        return batch

    loaders.__init__, loaders.__iter__, iterators.__next__ = made, begun, followed


def _settings(loader: Any, module: Any) -> dict[str, Any]:
    found = {name: _simple(getattr(loader, name, None)) for name in _SETTINGS}
    if loader.batch_size is None and loader.batch_sampler is not None:
        found["batch_sampler"] = type(loader.batch_sampler).__name__
        found["batch_size"] = _simple(getattr(loader.batch_sampler, "batch_size", None))
    dataset, sampler, collate = loader.dataset, loader.sampler, loader.collate_fn
    found["dataset"] = "%s.%s" % (type(dataset).__module__, type(dataset).__qualname__)
    found["is_iterable"] = isinstance(dataset, module.IterableDataset)
    if isinstance(sampler, module.RandomSampler):
        found["samples"] = len(dataset)  # this sampler has asked for the length too
    tensors = getattr(dataset, "__dict__", {}).get("tensors")
    if isinstance(tensors, tuple):
        found["dataset_bytes"] = sum(map(_bytes, tensors))
    found["collate"] = getattr(collate, "__name__", type(collate).__name__)
    found["sampler"] = type(sampler).__name__
    found["shuffle"] = _shuffle(loader, module)
    return found


def _shuffle(loader: Any, module: Any) -> bool | None:
    """Return whether all samples come in random order; None if the program chooses the samples."""
    sampler, dataset = loader.sampler, loader.dataset
    kind = type(sampler)
    if loader.batch_size is None:
        return None
    if kind is module.RandomSampler:
        is_whole = not sampler.replacement and len(sampler) == len(dataset)
        return True if is_whole else None
    if kind is module.SequentialSampler:
        return False if sampler.data_source is dataset else None
    if kind is sys.modules["torch.utils.data.distributed"].DistributedSampler:
        ranks = sampler.rank, sampler.num_replicas
        is_whole = sampler.dataset is dataset and ranks == _rank_and_size()
        return bool(sampler.shuffle) if is_whole else None
    return None


def _rank_and_size() -> tuple[int, int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def _count_samples(iterator: Any, loader: Loader) -> None:
    """Ask for the number of samples, after the sampler has asked.

    Earlier, the dataset might open a file that workers, forked later, would share.
    """
    settings = loader.settings
    if settings["sampler"] == "SequentialSampler" and "batch_sampler" not in settings:
        loader.settings = {**settings, "samples": len(iterator._dataset)}


def _simple(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _batch(batch: Any) -> dict[str, Any]:
    """Return the size, the types and the number of samples of a batch."""
    size, dtypes, samples = 0, set(), set()
    for tensor in _tensors(batch):
        size += _bytes(tensor)
        samples.add(int(tensor.shape[0]) if tensor.dim() else None)
        dtypes.add(str(tensor.dtype).replace("torch.", ""))
    count = samples.pop() if len(samples) == 1 else None
    return {"bytes": size if dtypes else None, "dtypes": sorted(dtypes), "samples": count}


def _bytes(tensor: Any) -> int:
    return int(tensor.element_size() * tensor.nelement())


def _tensors(value: Any) -> Iterable[Any]:
    if hasattr(type(value), "element_size"):
        yield value
    elif isinstance(value, (dict, UserDict)):  # a tokenizer's batches are a UserDict
        for one in list(value.values())[:_MOST_ITEMS]:
            yield from _tensors(one)
    elif isinstance(value, (list, tuple)):
        for one in value[:_MOST_ITEMS]:
            yield from _tensors(one)


# ---- steps ----


def torch_optim_optimizer(module: Any, notes: Notes) -> None:
    """Count steps. If several optimizers take turns, one turn of all of them is one step."""
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        notes.fact("torch", steps="not reported before PyTorch 2.0")
        return
    turn: set[int] = set()
    optimizers: WeakSet[Any] = WeakSet()
    steps = 0
    is_due = False
    """Whether gradients are to be examined."""

    def stepped(optimizer: Any, *_: Any) -> None:
        nonlocal steps, is_due
        optimizers.add(optimizer)
        if turn and id(optimizer) not in turn:
            turn.add(id(optimizer))
            return
        turn.clear()
        turn.add(id(optimizer))
        notes.step()
        steps += 1
        # A forked child has the parent's count, but not its facts.
        if steps in _STEPS_WITH_SETTINGS or "optimizer" not in notes.libraries.get("torch", ()):
            notes.fact("torch", optimizer=type(optimizer).__name__)
            try:
                notes.fact("torch", **_how(optimizer))
                if _exchanges.are_counted:
                    notes.fact("torch", exchanges_per_step=round(_exchanges.count / steps, 2))
            except Exception as error:
                notes.failed("torch", error)
        is_due = is_due or steps in _STEPS_WITH_GRADIENTS
        if is_due and not notes.is_profiling:  # the search would be in the trace of a step
            is_due = False
            try:
                # An optimizer may make its first step after an earlier search.
                known = notes.libraries.get("torch", ())
                stale = {name: None for name in _GRADIENT_FACTS if name in known}
                notes.fact("torch", **{**stale, **_gradients(optimizers)})
            except Exception as error:
                notes.failed("torch", error)

    # The compiler skips this function without a message. The step itself breaks the graph already.
    stepped._torchdynamo_disable = True  # type: ignore[attr-defined]
    register(stepped)


def _how(optimizer: Any) -> dict[str, Any]:
    """Return how the program computes."""
    module = sys.modules["torch"]
    dtypes: dict[str, int] = {}
    devices: set[str] = set()
    size, images, channels_last, is_sharded = 0, 0, 0, False
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    for parameter in parameters[:_MOST_PARAMETERS]:
        name = str(parameter.dtype).replace("torch.", "")
        dtypes[name] = dtypes.get(name, 0) + parameter.nelement()
        devices.add(str(parameter.device))
        size += _bytes(parameter)
        is_sharded = is_sharded or type(parameter).__name__ == "DTensor"
        if parameter.dim() == 4:
            images += 1
            channels_last += parameter.is_contiguous(memory_format=module.channels_last)
    backends, distributed = module.backends, sys.modules.get("torch.distributed")
    found = {
        "threads": module.get_num_threads(),
        "parameter_dtypes": dtypes,
        "parameter_bytes": size,
        "devices": sorted(devices),
        "channels_last": None if not images else channels_last == images,
        "is_sharded": is_sharded,
        "float32_matmul_precision": _matmul_precision(module),
        "cudnn_benchmark": backends.cudnn.benchmark,
        "anomaly": module.is_anomaly_enabled(),
        **odd_layers(parameters),
    }
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        found["world_size"] = distributed.get_world_size()
        found["rank"] = distributed.get_rank()
        found["backend"] = distributed.get_backend()
    compiler = sys.modules.get("torch._dynamo.utils")
    if compiler is not None:
        counters = compiler.counters
        found["compiled_graphs"] = counters["stats"].get("unique_graphs", 0)
        found["graph_breaks"] = sum(counters["graph_break"].values())
    return found


def _gradients(optimizers: Iterable[Any]) -> dict[str, Any]:
    """Return facts about gradients that are computed and have no effect.

    `table_gradient` is about the largest table whose gradient has a value for each row, and
    `unused_gradients` about parameters that no optimizer changes. Only CPUs are asked: on a GPU,
    an answer would wait for all work before it.
    """
    changed = [one for each in optimizers for group in each.param_groups for one in group["params"]]
    known = set(map(id, changed))
    found: dict[str, Any] = {}
    tables = [one for one in changed if _is_table(one)]
    if tables:
        gradient = max(tables, key=_bytes).grad
        rows = int(gradient.shape[0])
        part = gradient[:: max(1, rows // _ROWS_EXAMINED)]
        used = int(part.ne(0).any(1).sum())
        found["table_gradient"] = {
            "rows": rows,
            "bytes": _bytes(gradient),
            "used_percent": round(100.0 * used / part.shape[0], 3),
        }
    parameter = sys.modules["torch"].nn.Parameter
    # Each object refers to its type. A list of all objects would have tuples that other threads
    # are still making: these threads would get a SystemError.
    # Only exact types: to ask a proxy for its class might start something.
    unused = [
        one.nelement()
        for one in get_referrers(parameter)
        if type(one) is parameter and id(one) not in known and one.grad is not None
    ]
    if unused:
        used_count = sum(one.nelement() for one in changed if one.grad is not None)
        found["unused_gradients"] = {"unused": sum(unused), "used": used_count}
    return found


def _is_table(parameter: Any) -> bool:
    gradient = parameter.grad
    return (
        gradient is not None
        and gradient.dim() == 2
        and not gradient.is_sparse
        and gradient.device.type == "cpu"
        and gradient.shape[0] >= _TABLE_ROWS
        and _bytes(gradient) >= _TABLE_BYTES
    )


def _matmul_precision(module: Any) -> str:
    try:
        return str(module.get_float32_matmul_precision())
    except RuntimeError:  # raised if it was set by its newer name, `fp32_precision`
        return str(module.backends.cuda.matmul.fp32_precision)


def torch_amp_autocast_mode(module: Any, notes: Notes) -> None:
    """Note that autocast is used, and its type."""
    enter = module.autocast.__enter__

    @wraps(enter)
    def entered(self: Any) -> Any:
        if "autocast" not in notes.libraries.get("torch", ()):
            dtype = getattr(self, "fast_dtype", None)
            if getattr(self, "_enabled", False):
                notes.fact("torch", autocast=str(dtype).replace("torch.", ""))
        return enter(self)

    module.autocast.__enter__ = entered


def torch_nn_parallel_distributed(module: Any, notes: Notes) -> None:
    """Note that a model is replicated, and count the backward passes: each exchanges gradients."""
    replicated = module.DistributedDataParallel
    _note_when_made(replicated, "ddp", notes, _count_exchanges)
    skip = replicated.no_sync

    @contextmanager
    @wraps(skip)
    def skipped(self: Any) -> Any:
        _exchanges.switched_off += 1
        try:
            with skip(self):
                yield
        finally:
            _exchanges.switched_off -= 1

    replicated.no_sync = skipped


class _Exchanges:
    """How often a replicated model exchanged its gradients."""

    are_counted = False
    """Whether a model is replicated."""
    count = 0
    switched_off = 0
    """Number of `no_sync` contexts that the program is in."""


_exchanges = _Exchanges()


def _count_exchanges() -> None:
    if _exchanges.are_counted:
        return
    _exchanges.are_counted = True
    autograd = sys.modules["torch"].autograd
    pass_back = autograd.backward

    @wraps(pass_back)
    def counted(*args: Any, **kwargs: Any) -> Any:
        if not _exchanges.switched_off:
            _exchanges.count += 1
        return pass_back(*args, **kwargs)

    # As for the hook after a step: `backward` breaks the compiler's graph already.
    counted._torchdynamo_disable = True  # type: ignore[attr-defined]
    autograd.backward = counted


def torch_distributed_fsdp(module: Any, notes: Notes) -> None:
    """Note that a model is sharded."""
    _note_when_made(module.FullyShardedDataParallel, "fsdp", notes)


def _note_when_made(
    model: Any, name: str, notes: Notes, then: Callable[[], None] | None = None
) -> None:
    make = model.__init__

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        notes.fact("torch", **{name: True})
        make(self, *args, **kwargs)
        if then:
            then()

    model.__init__ = made
