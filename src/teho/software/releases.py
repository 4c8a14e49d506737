"""The GPU builds of each framework, from `frameworks.toml`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.model.software import Framework
from teho.software.drivers import is_of_release, lowest_capability, numbers

__all__ = ["Channel", "Offer", "Release", "has_code_for", "releases", "supports"]

Channel = Literal["pip", "conda"]


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU build of a release, with either `cuda` or `rocm`."""

    cuda: str = ""
    rocm: str = ""
    cudnn: str = ""
    capabilities: str = ""
    """Name of a set; empty: not documented."""
    arm: str = ""
    """Name of the set for aarch64; empty: not documented."""


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A minor version of a framework in one channel."""

    framework: Framework
    channel: Channel
    version: str
    python: tuple[str, str]
    """Lowest and highest."""
    x86_64_only: bool = False
    builds: tuple[Offer, ...]
    """Newest toolkit first."""
    source: str


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, str]
    capabilities: dict[str, tuple[str, ...]]
    release: tuple[Release, ...]


def releases(framework: str, channel: str) -> list[Release]:
    """Return a channel's releases of a framework, newest first."""
    found = [one for one in _all() if (one.framework, one.channel) == (framework, channel)]
    return sorted(found, key=lambda one: numbers(one.version), reverse=True)


def has_code_for(capability: str, offer: Offer, arch: str = "x86_64") -> bool | None:
    """Return whether a CUDA build has code for a GPU of this compute capability.

    Code for 8.0 runs on 8.0 and all later 8.x. For newer GPUs, the build must have other code, or
    an intermediate form that the driver compiles: a `+` in the data.

    Returns:
        None if it is not documented.
    """
    least = lowest_capability(offer.cuda)
    if least is not None and numbers(capability) < numbers(least):
        return False
    name = offer.capabilities if arch == "x86_64" else offer.arm
    if not name:
        return None
    wanted = numbers(capability)
    return any(
        numbers(one) <= wanted and (one.endswith("+") or numbers(one)[0] == wanted[0])
        for one in _facts().capabilities[name]
    )


def supports(
    capability: str,
    framework: str,
    version: str,
    toolkit: str,
    channel: str = "pip",
    arch: str = "x86_64",
) -> bool | None:
    """Return whether a framework's build has code for a GPU of this compute capability.

    Args:
        capability: such as `7.0`.
        framework: such as `pytorch`.
        version: as installed, such as `2.14.0+cu126`.
        toolkit: version of CUDA that it was built with; `12` if only this is known.
        channel: `pip` or `conda`.
        arch: architecture of the node, such as `aarch64`.

    Returns:
        None if the release or its build is not in `frameworks.toml`.
    """
    for release in releases(framework, channel):
        if is_of_release(version, release.version):
            answers = {has_code_for(capability, one, arch) for one in release.builds
                       if one.cuda and _same(one.cuda, toolkit)}  # fmt: skip
            return answers.pop() if len(answers) == 1 else None
    return None


def _same(built: str, toolkit: str) -> bool:
    """Return whether two versions of a toolkit agree in the numbers that both have."""
    one, other = numbers(built)[:2], numbers(toolkit)[:2]
    return all(a == b for a, b in zip(one, other, strict=False))


@functools.cache
def _all() -> tuple[Release, ...]:
    """Return all releases, with the full text of their sources."""
    facts = _facts()
    return tuple(
        msgspec.structs.replace(
            one, source="; ".join(facts.sources.get(key, key) for key in one.source.split("; "))
        )
        for one in facts.release
    )


@functools.cache
def _facts() -> _Facts:
    path = Path(__file__).with_name("frameworks.toml")
    return to_noun(read_toml(path), _Facts, path)
