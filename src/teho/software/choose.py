"""The newest release of a framework that fits a driver, a GPU and a Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal, NamedTuple

from teho.model.software import Driver, EnvironmentPlan, Framework, Proposal, Refused
from teho.software.drivers import is_of_release, lowest_driver, numbers
from teho.software.releases import Channel, Offer, Release, has_code_for, releases

__all__ = ["ACCELERATORS", "TITLES", "SoftwareRequest", "choose", "driver_runs", "purpose_of"]

TITLES: dict[str, str] = {
    "pytorch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "cupy": "CuPy",
}
ACCELERATORS = {
    "cuda": "CUDA",
    "rocm": "ROCm",
    "xpu": "Intel's GPUs",
    "cpu": "CPU-only",
    "unknown": "not known",
}
"""Kind of a build, in words."""
_KINDS = {
    "module": "the cluster's module",
    "conda": "an environment of conda",
    "venv": "a virtual environment",
    "container": "a container",
}


class SoftwareRequest(NamedTuple):
    """The driver, GPU and Python that a release must fit."""

    framework: Framework
    channel: Channel
    vendor: Literal["nvidia", "amd"]
    gpu: str
    """Product name."""
    capability: str
    """NVIDIA's compute capability; empty: not known."""
    arch: str
    driver: Driver | None
    version: str = ""
    """Required release, such as `2.12`; empty: any."""
    python: str = ""
    """Required release of Python, such as `3.12`; empty: any."""


def choose(wish: SoftwareRequest) -> tuple[Proposal | None, tuple[Refused, ...]]:
    """Return the newest combination that fits, and newer ones with the reason against each.

    In a release, the build with the newest CUDA that fits is taken. If the driver is not known, it
    is the build that needs the oldest driver.
    """
    refused: list[tuple[Release, Offer | None, str]] = list(_not_in_channel(wish))
    for release in releases(wish.framework, wish.channel):
        if wish.version and not is_of_release(wish.version, release.version):
            continue
        if why := _against(release, wish):
            refused.append((release, None, why))
            continue
        fitting = []
        for offer in release.builds:
            reason = _against_build(offer, wish)
            if reason:
                refused.append((release, offer, reason))
            elif reason is not None:
                fitting.append(offer)
        if fitting:
            offer = fitting[0]
            if wish.driver is None and wish.vendor == "nvidia":
                offer = min(fitting, key=lambda one: lowest_driver(one.cuda) or ())
                refused += [
                    (release, one, _needs(one, "but the driver of the nodes is not known"))
                    for one in fitting[: fitting.index(offer)]
                ]
            return _proposal(release, offer, wish, refused), ()
    return None, tuple(_grouped(refused))


def driver_runs(driver: Driver, toolkit: str) -> bool | None:
    """Return whether a driver runs a CUDA toolkit, from its version, or from the CUDA it supports.

    Returns:
        None if the toolkit is not known.
    """
    least = lowest_driver(toolkit)
    if least is None:
        return None
    if driver.version:
        return numbers(driver.version) >= least
    return numbers(driver.cuda)[:1] >= numbers(toolkit)[:1]


def _not_in_channel(wish: SoftwareRequest) -> Iterator[tuple[Release, None, str]]:
    """Yield newer releases that only the other channel has."""
    here = releases(wish.framework, wish.channel)
    other: Channel = "conda" if wish.channel == "pip" else "pip"
    for release in releases(wish.framework, other):
        if wish.version or numbers(release.version) <= numbers(here[0].version):
            return
        name = "conda-forge" if wish.channel == "conda" else "PyPI"
        yield release, None, f"{name} has no version newer than {here[0].version}"


def _against(release: Release, wish: SoftwareRequest) -> str:
    """Return why no build of a release fits; empty: some may."""
    lowest, highest = release.python
    if wish.python and not numbers(lowest) <= numbers(wish.python)[:2] <= numbers(highest):
        return f"this version is for Python {lowest} to {highest}, but {wish.python} was requested"
    if release.x86_64_only and wish.arch != "x86_64":
        return f"this version has no GPU build for {wish.arch}"
    if wish.vendor == "amd" and not any(one.rocm for one in release.builds):
        return "this version has no build with ROCm"
    return ""


def _against_build(offer: Offer, wish: SoftwareRequest) -> str | None:
    """Return why a build does not fit; empty: it does; None: it is another vendor's."""
    if bool(offer.cuda) != (wish.vendor == "nvidia"):
        return None
    if wish.vendor == "amd":
        return ""
    if wish.capability and has_code_for(wish.capability, offer, wish.arch) is False:
        return f"this build has no code for {wish.gpu} (compute capability {wish.capability})"
    if wish.driver is not None and driver_runs(wish.driver, offer.cuda) is False:
        has = f"is {wish.driver.version}" if wish.driver.version else (
            f"supports CUDA {wish.driver.cuda}"
        )  # fmt: skip
        return _needs(offer, f"but the driver of {wish.driver.where} {has}")
    return ""


def _needs(offer: Offer, but: str) -> str:
    least = ".".join(map(str, lowest_driver(offer.cuda) or ()))
    return f"this build needs driver {least} or newer, {but}"


def _proposal(
    release: Release,
    offer: Offer,
    wish: SoftwareRequest,
    refused: list[tuple[Release, Offer | None, str]],
) -> Proposal:
    known = bool(wish.capability) and has_code_for(wish.capability, offer, wish.arch) is True
    return Proposal(
        version=release.version,
        python=wish.python or release.python[1],
        accelerator="cuda" if offer.cuda else "rocm",
        toolkit=offer.cuda or offer.rocm,
        capabilities_known=known,
        source=release.source,
        refused=tuple(_grouped(refused)),
    )


def _grouped(refused: list[tuple[Release, Offer | None, str]]) -> Iterator[Refused]:
    """Yield the refused builds; builds and releases with the same reason are put together."""
    for (title, why, source), same in groupby(refused, key=lambda one: (
        TITLES[one[0].framework], one[2], one[0].source
    )):  # fmt: skip
        versions: dict[str, list[str]] = {}
        for release, offer, _ in same:
            versions.setdefault(release.version, [])
            versions[release.version] += [_toolkit(offer)] if offer else []
        newest, oldest = next(iter(versions)), next(reversed(versions))
        what = f"{title} {newest}" if newest == oldest else f"{title} {oldest} to {newest}"
        toolkits = list(dict.fromkeys(one for known in versions.values() for one in known))
        what += f" with {' or '.join(toolkits)}" if toolkits else ""
        yield Refused(what=what, why=why, source=source)


def _toolkit(offer: Offer) -> str:
    return f"CUDA {offer.cuda}" if offer.cuda else f"ROCm {offer.rocm}"


def purpose_of(plan: EnvironmentPlan) -> str:
    """Return a sentence: what a plan installs, for which GPU, and how."""
    title = TITLES[plan.framework]
    if plan.proposal:
        label = ACCELERATORS[plan.proposal.accelerator]
        title += f" {plan.proposal.version} with {label} {plan.proposal.toolkit}"
        title += f" and Python {plan.proposal.python}" if plan.kind != "venv" else ""
    return f"{title} for the {plan.gpu} of {plan.title}: {_KINDS[plan.kind]}."
