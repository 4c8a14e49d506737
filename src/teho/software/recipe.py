"""From nothing to a GPU build of a framework on one cluster: the commands, and why these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from teho.config.toml import did_you_mean
from teho.errors import InputError
from teho.model.cluster import Cluster, EnvironmentKind, Environments, Gpu, NodeKind, Software
from teho.model.software import (
    Activation,
    Driver,
    EnvironmentPlan,
    Framework,
    Proposal,
    Refused,
)
from teho.software import steps
from teho.software.check import Target
from teho.software.choose import TITLES, SoftwareRequest, choose
from teho.software.drivers import capability_of, newest_cuda, numbers
from teho.software.releases import releases
from teho.software.steps import Made

__all__ = ["Asked", "NothingFits", "plan_environment", "target_of"]

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_VERSION = re.compile(r"\d+(\.\d+)*")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants."""

    framework: Framework
    version: str = ""
    python: str = ""
    extra: tuple[str, ...] = ()
    """Packages beside it, as pip or conda name them."""
    kind: EnvironmentKind | None = None
    """None: as the site advises."""
    name: str = ""
    """Of the environment; empty: such as `pytorch-gpu`."""
    gpu_type: str = ""
    driver: str = ""
    """NVIDIA's version on the compute nodes, where the user knows it better."""
    place: str = ""
    """Directory for environments; empty: the site's."""
    tool: str = ""
    """The user's own `conda`, `mamba` or `micromamba`; empty: the site's conda."""


class NothingFits(NamedTuple):
    """Why there is no combination."""

    what: str
    refused: tuple[Refused, ...]


class _Case(NamedTuple):
    """What a plan is made from."""

    cluster: Cluster
    asked: Asked
    node: NodeKind
    others: list[str]
    """Other types of GPU that the cluster has."""
    environments: Environments
    kind: EnvironmentKind
    offered: list[EnvironmentKind]
    software: Software | None
    """The site's own; None: the environment is the user's."""
    driver: Driver | None
    proposal: Proposal | None = None

    @property
    def gpu(self) -> Gpu:
        """The node's GPUs."""
        return _gpu_of(self.node)

    @property
    def name(self) -> str:
        """Of the environment."""
        return self.asked.name or f"{self.asked.framework}-gpu"


def plan_environment(cluster: Cluster, asked: Asked) -> EnvironmentPlan | NothingFits:
    """Plan an environment: the newest release that fits, and how this site installs it.

    Raises:
        InputError: what is asked for is not offered there, or is no name, version or GPU.
    """
    _check(asked)
    node, others = _node_of(cluster, asked.gpu_type)
    environments = cluster.environments or Environments(kinds=("venv", "conda"), source="")
    kind, software, offered = _way(cluster, environments, asked)
    driver = _driver_of(cluster, asked.driver)
    case = _Case(cluster, asked, node, others, environments, kind, offered, software, driver)
    if wish := _wish(case):
        _check_version(wish)
        proposal, refused = choose(wish)
        if proposal is None:
            return NothingFits(f"{TITLES[asked.framework]} as {kind}", refused)
        case = case._replace(proposal=proposal)
    made = _made(case)
    return EnvironmentPlan(
        cluster=cluster.name,
        title=cluster.title,
        framework=asked.framework,
        kind=kind,
        name=case.name,
        gpu=_gpu_in_words(case.gpu),
        driver=driver if case.gpu.vendor == "nvidia" else None,
        proposal=case.proposal,
        steps=made.steps,
        job=Activation(lines=made.job, run_prefix=made.run_prefix),
        cautions=(*_cautions(case), *made.cautions),
        other_kinds=tuple(one for one in offered if one != kind),
        source="; ".join(one.source for one in (software, environments) if one and one.source),
    )


def target_of(cluster: Cluster, gpu_type: str = "", driver: str = "") -> Target:
    """Return what an environment is compared with that is to run on a cluster's nodes.

    Raises:
        InputError: the cluster has no such GPU, or none.
    """
    node, others = _node_of(cluster, gpu_type)
    gpu = _gpu_of(node)
    return Target(
        driver=_driver_of(cluster, driver) if gpu.vendor == "nvidia" else None,
        vendor=gpu.vendor,
        gpu=gpu.model,
        capability=_capability(gpu),
        arch=node.arch,
        cluster=cluster.name,
        others=tuple(others),
    )


def _driver_of(cluster: Cluster, given: str) -> Driver | None:
    """Return the driver of a cluster's compute nodes: as given, or as documented; None: unknown."""
    where = f"{cluster.title}'s compute nodes"
    if given:
        return Driver(version=given, cuda=newest_cuda(given) or "", where=where, source="--driver")
    known = cluster.driver
    if known is None:
        return None
    seen = f"{known.source}; seen on {known.seen_on.isoformat()}"
    return Driver(version=known.version, cuda=known.cuda, where=where, source=seen)


def _gpu_of(node: NodeKind) -> Gpu:
    """Return a node's GPUs, which the caller knows to be there."""
    assert node.gpu is not None  # noqa: S101 - chosen for them
    return node.gpu


def _check(asked: Asked) -> None:
    if asked.name and not _NAME.fullmatch(asked.name):
        raise InputError(f"--name: {asked.name!r}", "letters, digits, dots, hyphens, underscores")
    for option, value in (("--version", asked.version), ("--python", asked.python)):
        if value and not _VERSION.fullmatch(value):
            raise InputError(f"{option}: {value!r}", "a version such as 3.12")
    if asked.driver and not _VERSION.fullmatch(asked.driver):
        raise InputError(f"--driver: {asked.driver!r}", "NVIDIA's version, such as 535.104.05")
    if asked.place and not asked.place.startswith("/"):
        raise InputError(
            f"--place {asked.place}: a job that starts elsewhere would not find it",
            "a directory from / on",
        )


def _check_version(wish: SoftwareRequest) -> None:
    """Refuse a version of which nothing is known: it may be a slip, or newer than this Teho."""
    known = [one.version for one in releases(wish.framework, wish.channel)]
    if wish.version and not any(
        numbers(wish.version)[: len(numbers(one))] == numbers(one) for one in known
    ):
        raise InputError(
            f"--version: Teho knows no {TITLES[wish.framework]} {wish.version} of {wish.channel}",
            f"one of {', '.join(known)}",
        )


def _node_of(cluster: Cluster, gpu_type: str) -> tuple[NodeKind, list[str]]:
    """Return the kind of node to plan for, and the other types of GPU that the cluster has.

    Raises:
        InputError: it has no such GPU, or none.
    """
    nodes = {one.gpu.type: one for one in cluster.nodes if one.gpu}
    if not nodes:
        raise InputError(f"{cluster.title} has no GPUs", next_step="`teho clusters` lists others")
    if gpu_type:
        if gpu_type not in nodes:
            near = did_you_mean(gpu_type, nodes)
            raise InputError(f"--gpu-type: {cluster.title} has no {gpu_type!r}{near}")
        return nodes[gpu_type], []
    whole = [one for one in nodes.values() if not _gpu_of(one).part_of]
    most = max(whole, key=lambda one: (one.count or 0) * (_gpu_of(one).count or 0))
    different = {_gpu_of(one).type for one in whole if _gpu_of(one).model != _gpu_of(most).model}
    return most, sorted(different)


def _way(
    cluster: Cluster, environments: Environments, asked: Asked
) -> tuple[EnvironmentKind, Software | None, list[EnvironmentKind]]:
    """Return how the framework is had there, the site's own software for it, and every way.

    Raises:
        InputError: not in the way that is asked for, or in none.
    """
    own: dict[EnvironmentKind, Software] = {
        one.kind: one
        for one in cluster.software
        if one.framework == asked.framework and one.kind in {"module", "container"}
    }

    def is_possible(kind: EnvironmentKind) -> bool:
        if kind == "module":
            return "module" in own
        if kind == "container":
            return "container" in own or environments.maker in {"apptainer", "tykky"}
        return True

    offered = [kind for kind in environments.kinds if is_possible(kind)]
    title = TITLES[asked.framework]
    if asked.kind and asked.kind not in environments.kinds:
        raise InputError(
            f"--kind {asked.kind}: {cluster.title} does not offer it, or advises against it "
            f"({environments.source})",
            " or ".join(offered) or "another cluster",
        )
    if asked.kind and asked.kind not in offered:
        raise InputError(
            f"--kind {asked.kind}: {cluster.title} documents none with {title}",
            " or ".join(offered) or "another cluster",
        )
    if not offered:
        raise InputError(
            f"{cluster.title} documents no way to {title}",
            next_step=f"ask its support, or `teho env plan --framework {asked.framework}` for "
            "another cluster",
        )
    kind = asked.kind or offered[0]
    return kind, own.get(kind), offered


def _wish(case: _Case) -> SoftwareRequest | None:
    """Return what a release must fit; None: the site's own builds are taken as they are."""
    if case.software is not None or (case.kind == "venv" and case.environments.wheelhouse):
        return None
    return SoftwareRequest(
        framework=case.asked.framework,
        channel="pip" if case.kind == "venv" else "conda",
        vendor=case.gpu.vendor,
        gpu=case.gpu.model,
        capability=_capability(case.gpu),
        arch=case.node.arch,
        driver=case.driver,
        version=case.asked.version,
        python=case.asked.python,
    )


def _made(case: _Case) -> Made:
    asked, environments, software = case.asked, case.environments, case.software
    needs = steps.Needs(
        framework=asked.framework,
        name=case.name,
        version=asked.version,
        python=asked.python,
        extra=asked.extra,
        cluster=case.cluster.name,
        environments=environments,
        proposal=case.proposal,
        cuda=_override(case.driver, case.proposal),
        vendor=case.gpu.vendor,
        capability=_capability(case.gpu),
        tool=asked.tool,
        place=asked.place,
    )
    if software is not None:
        return (steps.of_module if case.kind == "module" else steps.of_container)(needs, software)
    if case.kind == "conda":
        return steps.of_conda(needs)
    if case.kind == "container":
        return (steps.of_tykky if environments.maker == "tykky" else steps.of_apptainer)(needs)
    if not environments.wheelhouse:
        return steps.of_venv(needs)
    if case.gpu.vendor == "amd":
        raise InputError(
            f"{case.cluster.title}'s wheels are for CUDA, and {case.gpu.model} is AMD's",
            "another GPU",
            "`--gpu-type`, or ask its support for ROCm",
        )
    return steps.of_wheelhouse(needs)


def _override(driver: Driver | None, proposal: Proposal | None) -> str:
    """Return the CUDA that conda may believe in: the driver's, or the least of the family."""
    if driver is not None and driver.cuda:
        return driver.cuda
    return f"{numbers(proposal.toolkit)[0]}.0" if proposal else ""


def _capability(gpu: Gpu) -> str:
    return (capability_of(gpu.model) or "") if gpu.vendor == "nvidia" else ""


def _gpu_in_words(gpu: Gpu) -> str:
    known = capability_of(gpu.model)
    if known is None:
        return gpu.model
    return f"{gpu.model} ({'compute capability ' if gpu.vendor == 'nvidia' else ''}{known})"


def _cautions(case: _Case) -> Iterator[str]:
    cluster, asked, gpu = case.cluster, case.asked, case.gpu
    if cluster.status == "retired":
        successor = f"; its successor is {cluster.successor}" if cluster.successor else ""
        yield f"{cluster.title} is retired{successor}."
    if case.others:
        yield (
            f"Planned for {gpu.type}; {cluster.title} also has {', '.join(case.others)}: "
            "`--gpu-type` plans for another."
        )
    if case.proposal and gpu.vendor == "nvidia":
        yield from _of_driver(case, case.proposal)
    software = case.software
    versions = software.versions if software and asked.version else ()
    if software and versions and not any(_is_version(asked.version, one) for one in versions):
        yield (
            f"{cluster.title} documents the versions {', '.join(versions)}, and not "
            f"{asked.version}: `module avail` shows what is there ({software.source})."
        )
    if software and asked.version and case.kind == "container":
        yield f"--version {asked.version} chooses nothing: the site's container has its own."
    if software and asked.python:
        yield f"--python {asked.python} chooses nothing: the site's {case.kind} has its own."
    if "project_" in case.environments.place and not asked.place:
        yield f"{case.environments.place} stands for your own project's: `--place` says which."
    if cluster.internet_on_compute_nodes is False:
        yield "Compute nodes do not reach the internet: install on a login node."
    for noun in (software, case.environments):
        if noun is not None and noun.notes:
            yield noun.notes


def _of_driver(case: _Case, proposal: Proposal) -> Iterator[str]:
    """Yield what is not certain of a build with CUDA: the driver, and code for the GPU."""
    if case.driver is None:
        yield (
            f"The driver of {case.cluster.title}'s compute nodes is not documented: this asks for "
            f"CUDA {numbers(proposal.toolkit)[0]}, which needs the oldest of those that fit. "
            "Run nvidia-smi in a job, and plan again with `--driver VERSION`."
        )
    elif not case.asked.driver:
        yield f"The driver is as documented: {case.driver.source}."
    if not proposal.capabilities_known:
        yield (
            f"It is not documented that this build has code for {case.gpu.model}: look at the "
            "self-test of `teho doctor` in a job first."
        )


def _is_version(asked: str, offered: str) -> bool:
    return offered == asked or numbers(offered) == numbers(asked)
