"""Sizes and loader settings of the examples with images, and which of them are the same run."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from teho.errors import InputError
from teho.explain.wording import joined
from teho.model.bench import Point
from teho.units import counted, format_count

__all__ = [
    "ALL_IMAGES",
    "BY_TEHO_FEED",
    "FEWEST_IMAGES",
    "LOADER",
    "ImageSizes",
    "RequestedSizes",
    "effective",
    "fitting",
    "points_of",
    "settings_text",
    "sized",
]

ALL_IMAGES = 50_000
"""Size of CIFAR-10's training set."""
FEWEST_IMAGES = 32
"""Fewer images make too few batches for workers."""
LOADER = "loader"
"""The phase that has the settings workers and prefetch."""
BY_TEHO_FEED = " (teho.feed)"
"""End of the names of phases whose feed is a function of `teho.feed`."""


class ImageSizes(NamedTuple):
    """What an example with images trains on, and the settings that are compared.

    The first number of workers and the first prefetch are used for all batch sizes. The others are
    used at one batch size.
    """

    images: int
    """Images in an epoch."""
    batches: tuple[int, ...]
    """Batch sizes, rising."""
    workers: tuple[int, ...] = (4, 0, 1, 2, 8, 16)
    prefetches: tuple[int, ...] = (2, 1, 4, 8)


class RequestedSizes(NamedTuple):
    """The parts that a user chose. An empty part keeps the example's own."""

    images: int = 0
    batches: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    prefetches: tuple[int, ...] = ()


def effective(point: Point, phase: str = LOADER) -> tuple[object, ...]:
    """Return what a point's settings come to. Two rows with the same result are the same run.

    A worker needs a batch to have an effect, and an epoch has only so many batches to prefetch.

    Args:
        point: of any example.
        phase: only the loader has workers.
    """
    if "images" not in point:
        return tuple(sorted(point.items()))
    size = min(point["batch"], point["images"])
    if phase != LOADER:
        return point["images"], size
    batches = _batches_in(point)
    workers = min(point["workers"], batches)
    return point["images"], size, workers, min(workers * point["prefetch"], batches)


def _batches_in(point: Point) -> int:
    """Return the number of batches in an epoch."""
    images: int = point["images"]
    batch: int = point["batch"]
    return ceil(images / batch)


def settings_text(point: Point) -> str:
    """Return the loader's settings in words: `4 workers with prefetch 2`, or `no workers`."""
    if not point["workers"]:
        return "no workers"
    return f"{counted(point['workers'], 'worker')} with prefetch {point['prefetch']}"


def points_of(sizes: ImageSizes) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Return the points, and a sentence about settings that would be the same run as another."""
    points, left = _points(sizes)
    if not left:
        return points, ()
    settings = joined(list(dict.fromkeys(map(settings_text, left))))
    why = (
        f"An epoch has only {_epoch(left[0])}, so each of these settings would give the same run "
        "as a setting that is shown."
    )
    return points, (f"Left out: {settings}. {why}",)


def _points(sizes: ImageSizes) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """Return the points, and those whose settings have no effect of their own."""
    workers, (prefetch, *prefetches) = sizes.workers[0], sizes.prefetches
    batches = sizes.batches
    most = _most_needed(sizes)
    at = max((size for size in batches if ceil(sizes.images / size) >= most), default=min(batches))
    own: Point = {"images": sizes.images, "workers": workers, "prefetch": prefetch}
    kept: dict[tuple[object, ...], Point] = {}
    left: list[Point] = []
    for point in (
        *({"batch": size, **own} for size in batches),
        *({"batch": at, **own, "workers": one, "only": LOADER} for one in sizes.workers[1:]),
        *(
            {"batch": at, **own, "prefetch": one, "only": LOADER}
            for one in (prefetches if workers else ())
        ),
    ):
        if point["workers"] > _batches_in(point) or effective(point) in kept:
            left.append(point)
        else:
            kept[effective(point)] = point
    return tuple(kept.values()), tuple(left)


def _most_needed(sizes: ImageSizes) -> int:
    """Return the number of batches that an epoch needs so that each setting has an effect."""
    return max(max(sizes.workers) * sizes.prefetches[0], sizes.workers[0] * max(sizes.prefetches))


def fitting(own: ImageSizes, requested: RequestedSizes) -> tuple[tuple[int, ...], list[str]]:
    """Return the chosen batch sizes for which a CPU has images, and a sentence about the others."""
    least = max((requested.workers or own.workers)[0], 1)
    found = tuple(size for size in requested.batches if own.images // size >= least)
    large = [format_count(size) for size in requested.batches if size not in found]
    if not large:
        return found, []
    images = format_count(own.images)
    return found, [
        (
            f"On CPUs, batches of {joined(large)} images are not measured: an epoch has only "
            f"{images} images."
        )
    ]


def sized(own: ImageSizes, requested: RequestedSizes) -> ImageSizes:
    """Return an example's sizes with those that a user chose.

    Raises:
        InputError: a chosen setting cannot have an effect of its own.
    """
    # The two classes have the same fields, in the same order; mypy sees only their union.
    found = ImageSizes(
        *(theirs or mine for mine, theirs in zip(own, requested, strict=True))  # type: ignore[arg-type]
    )
    first = {"images": found.images, "workers": found.workers[0], "prefetch": found.prefetches[0]}
    needed = max(first["workers"] * first["prefetch"], 1)
    if not requested.batches:
        enough = (size for size in own.batches if found.images // size >= needed)
        # With fewer images, one batch size for which all settings can have an effect.
        fewest = max(found.images // max(_most_needed(found), 1), 1)
        found = found._replace(batches=tuple(enough) or (fewest,))
    if requested.prefetches and not found.workers[0]:
        more = [count for count in found.workers if count] or [4]
        listed = [more[0], 0, *more[1:]] if len(found.workers) > 1 else more
        raise InputError(
            f"--prefetch {_listed(requested.prefetches)} has no effect with 0 workers: only "
            "workers prefetch batches",
            "1 or more as the first number of --workers", f"`--workers {_listed(listed)}`",
        )  # fmt: skip
    for size in requested.batches:
        point = {"batch": size, **first}
        if size > found.images:
            raise InputError(
                f"--batch {size} is too large: an epoch has only {format_count(found.images)} "
                "images",
                f"a batch size of at most {format_count(found.images)}",
                _way_out(point, needed)[1],
            )  # fmt: skip
        if _batches_in(point) < first["workers"]:
            raise InputError(
                f"with --batch {size}, an epoch has only {_epoch(point)}, and that is too few for "
                f"{counted(point['workers'], 'worker')}", *_way_out(point, needed),
            )  # fmt: skip
    points, left = _points(found)
    for point in left:
        is_workers = point["prefetch"] == found.prefetches[0]
        if not (requested.workers if is_workers else requested.prefetches):
            continue
        key = "workers" if is_workers else "prefetch"
        same = next((one for one in points if effective(one) == effective(point)), None)
        needed = max(one["workers"] * one["prefetch"] for one in (point, same or point))
        raise InputError(
            f"--{key} {point[key]}: an epoch has only {_epoch(point)}, "
            + (
                f"so this is the same run as {settings_text(same)}"
                if same
                else "too few for all workers"
            ),
            *_way_out(point, max(needed, 1)),
        )
    return found


def _epoch(point: Point) -> str:
    """Return the number of batches: `8 batches of 1,024 images`."""
    size = min(point["batch"], point["images"])
    images = f"{format_count(size)} image{'' if size == 1 else 's'}"
    return f"{counted(_batches_in(point), 'batch')} of {images}"


def _listed(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def _way_out(point: Point, needed: int) -> tuple[str, str]:
    """Return what is expected, and the options that give an epoch this number of batches."""
    size, images = point["batch"], point["images"]
    options = f"--images {needed * size}"
    if needed * size > ALL_IMAGES:
        options = f"--batch {max(images // needed, 1)}"
        if images < needed:
            options = f"--images {ALL_IMAGES} --batch {ALL_IMAGES // needed}"
    return f"{counted(needed, 'batch')} or more in an epoch", f"`{options}`"
