"""The settings to try for a program, chosen from its first run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Union

from teho.experiment.attempt import Attempt
from teho.model.tuned import Settings
from teho.units import format_bytes

__all__ = ["ALLOWABLE", "WAITED", "Coordinate", "Room", "coordinates", "merged", "serial_calls"]

WAITED = 0.05
"""Share of the time for batches above which loaders are tuned. XProf calls it moderate."""
ALLOWABLE = ("batch-size", "tf32", "autocast", "channels-last", "feed")
"""Settings that change computed numbers. They are tried only if the user allows it."""
_FILLED = 0.9
"""Share of the memory. Settings that need more, by estimate, are not tried."""
_LARGER = (2, 4, 8)
_OF_WORKERS = ("prefetch_factor", "persistent_workers")
_OF_LOADERS = ("num_workers", "pin_memory", "in_memory", *_OF_WORKERS)
"""Settings that `teho.feed.resident` does not have."""

Way = tuple[Settings, ...]
"""Changes to try one after another, as long as each is faster."""
Ways = Union[list[Way], str]
"""Ways to try until one is faster; or the reason why there is none."""


class Room(NamedTuple):
    """Cores and memory of the allocation."""

    cores: int
    memory_bytes: int | None


class Coordinate(NamedTuple):
    """A setting with its values to try."""

    ways: Callable[[Attempt], Ways]
    """Called with the run that has the best settings so far."""
    is_loaders: bool = False
    """Whether it can only shorten the time of waiting for batches."""
    patience: int = 1
    """Number of changes without a gain after which a way ends."""


def merged(settings: Settings, change: Settings) -> Settings:
    """Return settings with a change. Without workers, their settings are removed."""
    both = {**settings, **change}
    if both.get("feed"):
        return {name: value for name, value in both.items() if name not in _OF_LOADERS}
    if both.get("num_workers") == 0:
        both = {name: value for name, value in both.items() if name not in _OF_WORKERS}
    return both


def coordinates(
    base: Attempt, room: Room, allowed: frozenset[str]
) -> tuple[list[Coordinate], list[str]]:
    """Return the settings to try, in this order, and a sentence for each that is left out.

    Args:
        base: a run of the unchanged program.
        room: cores and memory of the allocation.
        allowed: of `ALLOWABLE`.
    """
    room = room._replace(cores=max(1, room.cores // base.ranks))
    found, notes = _of_loader(base, room)
    if base.facts.get("devices") == ["cpu"]:
        found.append(Coordinate(lambda best: _threads(best, room.cores)))
    more = {
        "batch-size": lambda _: _batch_sizes(base, room),
        "tf32": lambda _: _tf32(base),
        "autocast": lambda _: _autocast(base),
        "channels-last": lambda _: _channels_last(base),
        "feed": lambda _: _feed(base, room),
    }
    return found + [Coordinate(more[name]) for name in ALLOWABLE if name in allowed], notes


def _feed(base: Attempt, room: Room) -> Ways:
    """Return the trial of `teho.feed.resident`."""
    why = _not_resident(base)
    if not why and "dataset_bytes" not in _of(base):
        why = _too_large(base, room)
    return f"`teho.feed` was not tried: {why}." if why else [({"feed": True},)]


def _not_resident(base: Attempt) -> str:
    """Return why `resident` would not give the same samples; empty if it gives the same."""
    settings = _of(base)
    if base.loader is None or base.loader.library != "torch" or settings.get("is_iterable"):
        return "only a DataLoader of PyTorch with numbered samples can be replaced for a trial"
    if not settings.get("batch_size") or "batch_sampler" in settings:
        return "the loader gets whole batches from its dataset or from its `batch_sampler`"
    if settings.get("collate", "default_collate") != "default_collate":
        return f"the program makes its batches with its own function `{settings['collate']}`"
    if settings.get("shuffle") is None:
        return (
            "`resident` gives each sample once in an epoch, in order or shuffled, but the program "
            f"chooses its samples with the sampler `{settings.get('sampler')}`"
        )
    ranks = base.facts.get("world_size") or 1
    if ranks > 1 and settings["sampler"] != "DistributedSampler":
        return (
            f"each of the {ranks} ranks gets all samples in an epoch, but `resident` divides the "
            "samples between the ranks"
        )
    return ""


def _too_large(base: Attempt, room: Room) -> str:
    """Return why the samples cannot be kept in memory; empty if they can."""
    settings, batch = _of(base), base.loader.batch if base.loader else {}
    samples, size = settings.get("samples"), settings.get("batch_size")
    if not samples or not size or not batch.get("bytes"):
        return "the size of the dataset is not known"
    need = base.ranks * samples * batch["bytes"] / size
    if _fits(base.used_bytes + need, room):
        return ""
    return f"the samples would need about {format_bytes(need)} of memory, more than the job can use"


def _of_loader(base: Attempt, room: Room) -> tuple[list[Coordinate], list[str]]:
    if "pipeline" in _of(base):
        return _of_pipeline(base, room)
    if base.loader is None or base.waited is None:
        seen = "No PyTorch DataLoader, no tf.data pipeline and no Grain pipeline was seen"
        return [], [f"{seen}, so no loader settings were tried."]
    workers = _workers(base)
    if base.waited < WAITED and workers <= room.cores:
        return [], [_waits_little(base.waited)]
    numbers = Coordinate(lambda _: _numbers_of_workers(base, room), patience=2)
    if base.loader.library == "grain":
        return [numbers, Coordinate(_prefetching, is_loaders=True)], []
    return [
        numbers,
        Coordinate(_persistence, is_loaders=True),
        Coordinate(_prefetching, is_loaders=True),
        Coordinate(_pinning),
        Coordinate(lambda best: _in_memory(best, base, room), is_loaders=True),
    ], []


def _waits_little(waited: float) -> str:
    share = f"{100 * waited:.1f} % of the time"
    return f"The program waits for batches only {share}, so loader settings were not tried."


def _of_pipeline(base: Attempt, room: Room) -> tuple[list[Coordinate], list[str]]:
    """Return the settings of a tf.data pipeline. If Keras fetches batches, the wait is unknown."""
    if base.waited is not None and base.waited < WAITED:
        return [], [_waits_little(base.waited)]
    is_known = base.waited is not None
    return [
        Coordinate(lambda _: _parallel_calls(base), is_loaders=is_known),
        Coordinate(lambda _: _prefetch(base), is_loaders=is_known),
        Coordinate(lambda _: _cache(base, room), is_loaders=is_known),
    ], []


def _parallel_calls(base: Attempt) -> Ways:
    return [({"num_parallel_calls": "autotune"},)] if serial_calls(base) else []


def serial_calls(base: Attempt) -> list[dict[str, Any]]:
    """Return the calls of `map` and `interleave` in all pipelines that are not parallel."""
    loaders = base.process.loaders if base.process else ()
    found = [
        call
        for loader in loaders
        for call in loader.settings.get("pipeline", ())
        if call["call"] in {"map", "interleave"} and call.get("num_parallel_calls") is None
    ]
    return [
        call for number, call in enumerate(found) if "at" in call and call not in found[:number]
    ]


def _prefetch(base: Attempt) -> Ways:
    calls = _of(base)["pipeline"]
    if not calls or "at" not in calls[-1] or any(call["call"] == "prefetch" for call in calls):
        return []
    return [({"prefetch": _place(calls[-1])},)]


def _place(call: dict[str, Any]) -> str:
    file, line = call["at"]
    return f"{file}:{line}:{call['call']}"


def _cache(base: Attempt, room: Room) -> Ways:
    settings, batch = _of(base), base.loader.batch if base.loader else {}
    calls = settings["pipeline"]
    maps = [number for number, call in enumerate(calls) if call["call"] == "map" and "at" in call]
    if not maps or any(call["call"] == "cache" for call in calls):
        return []
    if any(call["call"] == "shuffle" for call in calls[: maps[-1]]):
        return (
            "`cache` was not tried: the pipeline calls `shuffle` before `map`, so `cache` after "
            "`map` would give all epochs the same order."
        )
    samples, size = settings.get("samples"), settings.get("batch_size")
    if not samples or not size or not batch.get("bytes"):
        return "The size of the dataset is not known, so `cache` was not tried."
    need = base.ranks * samples * batch["bytes"] / size
    if not _fits(base.used_bytes + need, room):
        return (
            f"`cache` was not tried: the samples need about {format_bytes(need)}, more memory than "
            "the job can use."
        )
    return [({"cache": _place(calls[maps[-1]])},)]


def _workers(run: Attempt) -> int:
    return int(_of(run).get("num_workers") or 0)


def _of(run: Attempt) -> dict[str, Any]:
    return run.loader.settings if run.loader else {}


def _numbers_of_workers(base: Attempt, room: Room) -> Ways:
    """Return a way up to the number of cores, in powers of two, and a way down."""
    now, most = _workers(base), room.cores
    if _of(base).get("is_iterable") and now < 2:
        return (
            "The number of workers was not changed, because the dataset is iterable: each worker "
            "may load all samples."
        )
    powers = {2**power for power in range(most.bit_length()) if 2**power <= most}
    numbers = sorted({0, most - 1, most} | powers)
    up = [number for number in numbers if number > now]
    fitting = [number for number in up if _fits(_with_workers(base, number), room)]
    ways = [
        tuple({"num_workers": number} for number in fitting),
        tuple({"num_workers": number} for number in reversed(numbers) if number < now),
    ]
    ways = [way for way in ways if way]
    if not ways and up:
        need = format_bytes(_with_workers(base, up[0]))
        return (
            f"More workers were not tried: they would need about {need} of memory, more than the "
            "job can use."
        )
    return ways


def _with_workers(base: Attempt, number: int) -> int:
    """Return the memory in bytes: in the worst case, a worker copies its parent's memory."""
    more = number - _workers(base)
    batch_bytes = (base.loader.batch.get("bytes") if base.loader else 0) or 0
    return base.used_bytes + base.ranks * more * (base.most_bytes + 2 * batch_bytes)


def _fits(need_bytes: float, room: Room) -> bool:
    return room.memory_bytes is None or need_bytes <= _FILLED * room.memory_bytes


def _persistence(best: Attempt) -> Ways:
    if not _workers(best) or _of(best).get("persistent_workers"):
        return []
    if best.loader and best.loader.epochs < 2:
        return (
            "No epoch ended in the measured time, so the gain of `persistent_workers` is not "
            "known. Try a longer `--window`."
        )
    return [({"persistent_workers": True},)]


def _prefetching(best: Attempt) -> Ways:
    if not _workers(best):
        return []
    usual = 1 if best.loader and best.loader.library == "grain" else 2
    now = _of(best).get("prefetch_factor") or usual
    return [({"prefetch_factor": 2 * now}, {"prefetch_factor": 4 * now})]


def _pinning(best: Attempt) -> Ways:
    is_on_gpu = any(device.startswith("cuda") for device in best.facts.get("devices", ()))
    return [({"pin_memory": True},)] if is_on_gpu and not _of(best).get("pin_memory") else []


def _in_memory(best: Attempt, base: Attempt, room: Room) -> Ways:
    settings = _of(base)
    if "dataset_bytes" in settings or settings.get("is_iterable"):
        return []
    if why := _too_large(base, room):
        return f"Keeping the samples in memory was not tried: {why}."
    ways: list[Way] = [({"in_memory": True, "num_workers": 0},)]
    return [*ways, ({"in_memory": True},)] if _workers(best) else ways


def _threads(best: Attempt, cores: int) -> Ways:
    now = best.facts.get("threads")
    numbers = dict.fromkeys((max(1, cores - _workers(best)), cores, 1))
    return [({"threads": number},) for number in numbers if number != now]


def _batch_sizes(base: Attempt, room: Room) -> Ways:
    size = _of(base).get("batch_size")
    if base.loader and base.loader.library != "torch":
        return (
            "The batch size was not changed: Teho changes the batch size only in a DataLoader of "
            "PyTorch."
        )
    if not size or "batch_sampler" in _of(base):
        return "The loader gets whole batches from its sampler, so the batch size was not changed."
    # In the worst case, all memory grows with the batch.
    sizes = [size * times for times in _LARGER if _fits(base.used_bytes * times, room)]
    if not sizes:
        return (
            "Larger batches were not tried: a batch of twice the size may not fit into the memory."
        )
    return [tuple({"batch_size": one} for one in sizes)]


def _tf32(base: Attempt) -> Ways:
    if not any(device.startswith("cuda") for device in base.facts.get("devices", ())):
        return "TF32 was not tried: TF32 needs a GPU, and the program uses no GPU."
    if base.facts.get("float32_matmul_precision") in {"high", "medium", "tf32"}:
        return "The program already allows TF32."
    return [({"tf32": True},)]


def _autocast(base: Attempt) -> Ways:
    if base.facts.get("autocast"):
        return f"The program already uses autocast, with {base.facts['autocast']}."
    return [({"autocast": "bfloat16"},)]


def _channels_last(base: Attempt) -> Ways:
    if base.facts.get("channels_last") is not False:
        return "`channels_last` was not tried: no image layer needs another memory layout."
    return [({"channels_last": True},)]
