"""Compatibility of drivers, CUDA toolkits and GPUs, from `cuda.toml`."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import msgspec

from teho.config.toml import read_toml, to_noun

__all__ = [
    "capability_of",
    "cuda_capability",
    "cudnn_fits",
    "is_of_release",
    "lowest_capability",
    "lowest_driver",
    "newest_cuda",
    "numbers",
]


class _Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    major: int
    lowest_driver: str
    lowest_capability: str
    source: str


class _Cudnn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    since: str
    lowest_capability: str
    source: str


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, str]
    family: tuple[_Family, ...]
    with_driver: dict[str, str]
    cudnn: _Cudnn
    capability: dict[str, str]


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a version: `535.104.05` is (535, 104, 5)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else ()


def is_of_release(version: str, release: str) -> bool:
    """Return whether a version belongs to a release: `2.4.1` belongs to `2.4`."""
    return numbers(version)[: len(numbers(release))] == numbers(release)


def lowest_driver(toolkit: str) -> tuple[int, ...] | None:
    """Return the oldest NVIDIA driver that runs programs of a CUDA toolkit.

    With CUDA's minor version compatibility, it depends only on the toolkit's major version.

    Args:
        toolkit: such as `12.6`, or `12`.

    Returns:
        None if the toolkit is not in `cuda.toml`.
    """
    family = _family(toolkit)
    return numbers(family.lowest_driver) if family else None


def lowest_capability(toolkit: str) -> str | None:
    """Return the lowest compute capability that a CUDA toolkit supports; None: unknown."""
    family = _family(toolkit)
    return family.lowest_capability if family else None


def newest_cuda(driver: str) -> str | None:
    """Return the newest CUDA that a driver supports, like conda's `__cuda`.

    Args:
        driver: NVIDIA's version, such as `535.104.05`.

    Returns:
        None for a driver older than any in `cuda.toml`.
    """
    known = _facts().with_driver
    fits = [cuda for cuda, least in known.items() if numbers(least) <= numbers(driver)]
    return max(fits, key=numbers, default=None)


def capability_of(model: str) -> str | None:
    """Return a GPU's compute capability, or AMD's architecture, from its product name.

    Args:
        model: name in the catalogue or driver, such as `NVIDIA A100-SXM4-40GB`.

    Returns:
        Such as `8.0` or `gfx90a`; None for a product that is not in `cuda.toml`.
    """
    words = re.split(r"[^0-9A-Za-z]+", model.upper())
    return next((one for name, one in _facts().capability.items() if name in words), None)


def cuda_capability(vendor: str, model: str) -> str:
    """Return the compute capability of NVIDIA's product; empty: not known, or another vendor's."""
    return (capability_of(model) or "") if vendor == "nvidia" else ""


def cudnn_fits(cudnn: str, capability: str) -> bool:
    """Return whether a version of cuDNN supports a GPU of this compute capability."""
    limit = _facts().cudnn
    old = numbers(capability) < numbers(limit.lowest_capability)
    return not (old and numbers(cudnn) >= numbers(limit.since))


def _family(toolkit: str) -> _Family | None:
    major = numbers(toolkit)[:1]
    return next((one for one in _facts().family if (one.major,) == major), None)


@functools.cache
def _facts() -> _Facts:
    path = Path(__file__).with_name("cuda.toml")
    return to_noun(read_toml(path), _Facts, path)
