"""A pipeline of tf.data: the calls that made it, and the work of its stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from teho.explain.program_context import Waiting
from teho.model.finding import Evidence
from teho.model.watched import Loader

__all__ = [
    "Pipeline",
    "busiest_stage",
    "early_cache",
    "moved_cache",
    "pipeline_in",
    "pipeline_of",
    "returns_the_same",
    "with_place",
]

_MAPS = ("Map", "ParallelMap")
_ASYNCHRONOUS = ("Prefetch", "MapAndBatch", "Parallel")
"""Stages that work while the program computes."""
_OUTSIDE = "Root"
_MOST = 0.5


class Pipeline(NamedTuple):
    """A pipeline of tf.data for which a program waits."""

    calls: Sequence[dict[str, Any]]
    """In the order in which the program made them, with `at`, the file and line."""
    stages: dict[str, float]
    """Work of each stage, by TensorFlow's name, in s; empty if TensorFlow does not report it."""
    waited_s: float
    """How long the program waited while the stages did this work."""

    def all_of(self, name: str) -> list[dict[str, Any]]:
        """Return the calls of a method."""
        return [call for call in self.calls if call["call"] == name]

    def one_by_one(self, name: str) -> list[dict[str, Any]]:
        """Return the calls of a method that work on one element at a time."""
        return [call for call in self.all_of(name) if call.get("num_parallel_calls") is None]

    @property
    def serial_map_percent(self) -> float | None:
        """Share of functions of `map` that run one at a time; None if it is not known.

        TensorFlow runs some maps in parallel without being asked, but not those that it joins with
        the `batch` behind them.
        """
        maps = self.all_of("map")
        is_joined = bool(maps) and maps[-1].get("num_parallel_calls") is None
        return self._percent(("Map", "MapAndBatch") if is_joined else ("Map",), is_whole=True)

    @property
    def map_percent(self) -> float | None:
        """Share of the functions of `map` in the work of all stages; None if it is not known."""
        return self._percent(_MAPS)

    @property
    def generator_percent(self) -> float | None:
        """Share of a Python generator in the work of all stages; None if it is not known."""
        return self._percent(("Generator",))

    @property
    def serial_files_percent(self) -> float | None:
        """Share of the waiting in which an `interleave` read its files, one at a time.

        None if TensorFlow does not report stages. It does not report the reading of files that are
        done: this is the part of the waiting in which no stage worked.
        """
        if not self.stages or not self.waited_s:
            return None
        if "Interleave" not in self.stages:
            return 0.0
        work_s = sum(s for name, s in self.stages.items() if name != "Interleave")
        return max(0.0, 100 * (1 - work_s / self.waited_s))

    @property
    def is_ahead(self) -> bool | None:
        """Whether any stage works ahead while the program computes; None if it is not known."""
        if not self.stages:
            return None
        return any(name.startswith(_ASYNCHRONOUS) for name in self.stages)

    @property
    def lacks_work(self) -> bool:
        """Whether the stages that TensorFlow reports explain less than half of the waiting.

        TensorFlow does not report the work of some stages, such as of a parallel `map`.
        """
        return 0 < sum(self.stages.values()) < _MOST * self.waited_s

    def _percent(self, names: tuple[str, ...], *, is_whole: bool = False) -> float | None:
        whole_s = sum(self.stages.values())
        if not whole_s:
            return None
        part_s = sum(
            work_s
            for name, work_s in self.stages.items()
            if (name in names if is_whole else name.startswith(names))
        )
        return 100 * part_s / whole_s


def pipeline_of(waiting: Waiting) -> Pipeline | None:
    """Return the pipeline for which a program waits; None if it is not one of tf.data."""
    return pipeline_in(waiting.loader)


def pipeline_in(loader: Loader) -> Pipeline | None:
    """Return the pipeline of a loader; None if it is not one of tf.data."""
    settings = loader.settings
    if loader.library != "tf.data":
        return None
    stages = {name: s for name, s in settings.get("stages", {}).items() if name != _OUTSIDE}
    return Pipeline(settings.get("pipeline", ()), stages, settings.get("stages_waited_s", 0.0))


def busiest_stage(pipeline: Pipeline) -> Evidence:
    """Return the stage with the most work as evidence."""
    name = max(pipeline.stages, key=lambda one: pipeline.stages[one], default="not known")
    return Evidence("stage with the most work", name)


def early_cache(pipeline: Pipeline) -> dict[str, Any] | None:
    """Return the call of `cache` directly before the last `map`, with no other `map` before it.

    The program keeps its elements, but as they are before the work of `map`.
    """
    names = [call["call"] for call in pipeline.calls]
    if names.count("map") != 1 or names.count("cache") != 1:
        return None
    at = names.index("cache")
    return pipeline.calls[at] if names[at + 1 : at + 2] == ["map"] else None


def moved_cache(pipeline: Pipeline) -> str:
    """Return what to do with a `cache` directly before `map`; empty if there is none."""
    early = early_cache(pipeline)
    if early is None:
        return ""
    return (
        f"Move {with_place('.cache()', early)} to the place directly after `map`: "
        "`.map(…).cache()` instead of `.cache().map(…)`."
    )


def with_place(code: str, call: dict[str, Any]) -> str:
    """Return code with the line of a call: `` `.map(…)` in train.py:12 ``."""
    at = call.get("at")
    return f"`{code}`" + (f" in {at[0].rpartition('/')[2]}:{at[1]}" if at else "")


def returns_the_same(pipeline: Pipeline) -> bool:
    """Return whether each epoch has the same elements behind the last `map`, in the same order.

    A `cache` before the last `map` does not keep these elements.
    """
    maps = [place for place, call in enumerate(pipeline.calls) if call["call"] == "map"]
    if not maps or any(call["call"] == "cache" for call in pipeline.calls[maps[-1] :]):
        return False
    before = pipeline.calls[: maps[-1] + 1]
    # If TensorFlow cannot say whether a function is random, the key is missing.
    is_fixed = all(call.get("is_random") is False for call in before if call["call"] == "map")
    return is_fixed and not any(call["call"] == "shuffle" for call in before)
