"""Plans of environments: which GPU build of a framework fits a cluster, and how to install it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from teho.config.toml import did_you_mean
from teho.errors import InputError
from teho.model.cluster import Cluster, EnvironmentKind, Environments, Gpu, NodeKind, Software
from teho.model.software import Driver, EnvironmentPlan, Proposal, Refused
from teho.patterns import lazy_pattern
from teho.software.check import Target
from teho.software.choose import TITLES, SoftwareRequest, choose
from teho.software.drivers import (
    capability_of,
    cuda_capability,
    is_of_release,
    newest_cuda,
    numbers,
)
from teho.software.releases import releases
from teho.software.steps import Case, EnvironmentRequest, commands_for

__all__ = ["EnvironmentRequest", "NothingFits", "plan_environment", "target_of"]

_NAME = lazy_pattern(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_VERSION = lazy_pattern(r"\d+(\.\d+)*")


class NothingFits(NamedTuple):
    """Reasons why no combination fits."""

    what: str
    refused: tuple[Refused, ...]


def plan_environment(
    cluster: Cluster, request: EnvironmentRequest
) -> EnvironmentPlan | NothingFits:
    """Plan an environment: the newest release that fits, and how this site installs it.

    Raises:
        InputError: the site does not offer what is asked for, or a name, version or GPU is wrong.
    """
    _check(request)
    node, gpu, others = _node_of(cluster, request.gpu_type)
    environments = cluster.environments or Environments(kinds=("venv", "conda"), source="")
    kind, software, offered = _way(cluster, environments, request)
    driver = _driver_of(cluster, request.driver)
    case = Case(cluster, request, node, gpu, others, environments, kind, software, driver)
    if wish := _wish(case):
        _check_version(wish)
        proposal, refused = choose(wish)
        if proposal is None:
            return NothingFits(f"{TITLES[request.framework]} as {kind}", refused)
        case = case._replace(proposal=proposal)
    commands = commands_for(case)
    return EnvironmentPlan(
        cluster=cluster.name,
        title=cluster.title,
        framework=request.framework,
        kind=kind,
        name=case.name,
        gpu=_gpu_in_words(gpu),
        driver=driver if gpu.vendor == "nvidia" else None,
        proposal=case.proposal,
        steps=commands.steps,
        job=commands.job,
        cautions=(*_cautions(case), *commands.cautions),
        other_kinds=tuple(one for one in offered if one != kind),
        source="; ".join(one.source for one in (software, environments) if one and one.source),
    )


def target_of(cluster: Cluster, gpu_type: str = "", driver: str = "") -> Target:
    """Return a cluster's nodes, as the target with which an environment is compared.

    Raises:
        InputError: the cluster does not have this GPU, or has no GPUs.
    """
    node, gpu, others = _node_of(cluster, gpu_type)
    return Target(
        driver=_driver_of(cluster, driver) if gpu.vendor == "nvidia" else None,
        vendor=gpu.vendor,
        gpu=gpu.model,
        capability=cuda_capability(gpu.vendor, gpu.model),
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


def _check(request: EnvironmentRequest) -> None:
    if request.name and not _NAME.fullmatch(request.name):
        raise InputError(f"--name: {request.name!r}", "letters, digits, dots, hyphens, underscores")
    for option, value in (("--version", request.version), ("--python", request.python)):
        if value and not _VERSION.fullmatch(value):
            raise InputError(f"{option}: {value!r}", "a version such as 3.12")
    if request.driver and not _VERSION.fullmatch(request.driver):
        raise InputError(f"--driver: {request.driver!r}", "NVIDIA's version, such as 535.104.05")
    if request.place and not request.place.startswith("/"):
        raise InputError(
            f"--place {request.place} is a relative path, which jobs in other directories would "
            f"not find",
            "an absolute path",
        )


def _check_version(wish: SoftwareRequest) -> None:
    """Raise InputError for an unknown version: it may be a typing error, or newer than Teho."""
    known = [one.version for one in releases(wish.framework, wish.channel)]
    if wish.version and not any(is_of_release(wish.version, one) for one in known):
        raise InputError(
            f"--version: Teho does not know {TITLES[wish.framework]} {wish.version} for "
            f"{wish.channel}",
            f"one of {', '.join(known)}",
        )


def _node_of(cluster: Cluster, gpu_type: str) -> tuple[NodeKind, Gpu, list[str]]:
    """Return the kind of node to plan for, its GPUs, and the cluster's other types of GPU.

    Raises:
        InputError: the cluster does not have this GPU, or has no GPUs.
    """
    nodes = {node.gpu.type: (node, node.gpu) for node in cluster.nodes if node.gpu}
    if not nodes:
        next_step = "`teho clusters` lists other clusters"
        raise InputError(f"{cluster.title} has no GPUs", next_step=next_step)
    if gpu_type:
        if gpu_type not in nodes:
            near = did_you_mean(gpu_type, nodes)
            raise InputError(f"--gpu-type: {cluster.title} has no {gpu_type!r}{near}")
        return *nodes[gpu_type], []
    whole = [(node, gpu) for node, gpu in nodes.values() if not gpu.part_of]
    node, most = max(whole, key=lambda one: (one[0].count or 0) * (one[1].count or 0))
    return node, most, sorted({gpu.type for _, gpu in whole if gpu.model != most.model})


def _way(
    cluster: Cluster, environments: Environments, request: EnvironmentRequest
) -> tuple[EnvironmentKind, Software | None, list[EnvironmentKind]]:
    """Return the kind of environment, the site's software for it, and all kinds on offer.

    Raises:
        InputError: the site does not offer the requested kind, or no kind at all.
    """
    own: dict[EnvironmentKind, Software] = {
        one.kind: one
        for one in cluster.software
        if one.framework == request.framework and one.kind in {"module", "container"}
    }
    possible = {"conda", "venv", *own}
    if environments.maker in {"apptainer", "tykky"}:
        possible.add("container")
    offered = [kind for kind in environments.kinds if kind in possible]
    title = TITLES[request.framework]
    if request.kind and request.kind not in environments.kinds:
        raise InputError(
            f"--kind {request.kind}: {cluster.title} does not offer this kind of environment, or "
            f"advises against it ({environments.source})",
            " or ".join(offered) or "another cluster",
        )
    if request.kind and request.kind not in offered:
        raise InputError(
            f"--kind {request.kind}: {cluster.title} documents no {request.kind} with {title}",
            " or ".join(offered) or "another cluster",
        )
    if not offered:
        raise InputError(
            f"{cluster.title} documents no way to install {title}",
            next_step="ask the cluster's support, or plan for another cluster: "
            f"`teho env plan --framework {request.framework} --cluster NAME`",
        )
    kind = request.kind or offered[0]
    return kind, own.get(kind), offered


def _wish(case: Case) -> SoftwareRequest | None:
    """Return what a release must fit; None: the site's own builds are used as they are."""
    if case.software is not None:
        return None
    if case.kind == "venv" and case.environments.wheelhouse:
        if case.gpu.vendor == "amd":
            raise InputError(
                f"{case.cluster.title}'s wheels are for CUDA, but {case.gpu.model} is from AMD",
                "another GPU",
                "use `--gpu-type`, or ask the cluster's support for wheels for ROCm",
            )
        return None
    return SoftwareRequest(
        framework=case.request.framework,
        channel="pip" if case.kind == "venv" else "conda",
        vendor=case.gpu.vendor,
        gpu=case.gpu.model,
        capability=case.capability,
        arch=case.node.arch,
        driver=case.driver,
        version=case.request.version,
        python=case.request.python,
    )


def _gpu_in_words(gpu: Gpu) -> str:
    known = capability_of(gpu.model)
    if known is None:
        return gpu.model
    return f"{gpu.model} ({'compute capability ' if gpu.vendor == 'nvidia' else ''}{known})"


def _cautions(case: Case) -> Iterator[str]:
    cluster, request, gpu = case.cluster, case.request, case.gpu
    if cluster.status == "retired":
        successor = f"; its successor is {cluster.successor}" if cluster.successor else ""
        yield f"{cluster.title} is retired{successor}."
    if case.others:
        yield (
            f"Planned for {gpu.type}. {cluster.title} also has {', '.join(case.others)}: "
            "`--gpu-type TYPE` plans for another type."
        )
    if case.proposal and gpu.vendor == "nvidia":
        yield from _of_driver(case, case.proposal)
    software = case.software
    versions = software.versions if software and request.version else ()
    wanted = {request.version, numbers(request.version)}
    if software and versions and wanted.isdisjoint({*versions, *map(numbers, versions)}):
        yield (
            f"{cluster.title} documents the versions {', '.join(versions)}, but not "
            f"{request.version}: `module avail` lists the installed versions ({software.source})."
        )
    if software and request.version and case.kind == "container":
        yield (
            f"--version {request.version} has no effect: the cluster's container has its own "
            "version."
        )
    if software and request.python:
        yield (
            f"--python {request.python} has no effect: the cluster's {case.kind} has its own "
            "Python."
        )
    if "project_" in case.environments.place and not request.place:
        yield (
            f"{case.environments.place} is an example: set your project's directory with "
            "`--place DIR`."
        )
    if cluster.internet_on_compute_nodes is False:
        yield "Compute nodes do not reach the internet: install on a login node."
    for noun in (software, case.environments):
        if noun is not None and noun.notes:
            yield noun.notes


def _of_driver(case: Case, proposal: Proposal) -> Iterator[str]:
    """Yield uncertain facts about a build with CUDA: the driver, and code for the GPU."""
    if case.driver is None:
        yield (
            f"{case.cluster.title} does not document the version of its driver. Of the builds "
            f"that fit, the build for CUDA {numbers(proposal.toolkit)[0]} works with the oldest "
            "drivers. Run nvidia-smi in a job, and plan again with `--driver VERSION`."
        )
    elif not case.request.driver:
        yield f"The driver version is from the documentation: {case.driver.source}."
    if not proposal.capabilities_known:
        yield (
            f"The documentation does not say whether this build has code for {case.gpu.model}. "
            "First run the self-test of `teho doctor` in a job."
        )
