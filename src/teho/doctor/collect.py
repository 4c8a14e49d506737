"""Collects the facts about this machine, all at once, each with a time limit."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from teho.clusters.catalogue import load_catalogue, load_cluster
from teho.clusters.current import current_cluster
from teho.devices.host.cgroup import cpu_quota
from teho.devices.host.source import describe_host
from teho.devices.procfile import read_text
from teho.doctor.conda import read_conda
from teho.doctor.files import folder_facts, read_quotas, sample
from teho.doctor.machine import (
    cores_of_numa,
    gpu_files,
    has_fabric,
    read_clock,
    read_limits,
    threads_per_core,
)
from teho.doctor.python import or_missing, read_python, see
from teho.doctor.snapshot import Conda, DataSample, DiskQuota, Folder, Proxy, Python, Snapshot
from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.missing import Missing, Reason
from teho.observe.survey import read_survey
from teho.process.isolated_call import IsolatedCall, answering, executing
from teho.schedulers.allocation import read_allocation
from teho.schedulers.task import read_task

__all__ = ["collect_snapshot"]

_DRIVER_S = 15.0
"""A driver without persistence mode first starts every GPU, which takes 1 s each."""
_FILES_S = 5.0
_QUOTA_S = 2.0
"""If a file server has no quota service, `quota` waits for a minute."""
_OF_PROJECT = 'set -- "$1" $(lfs project -d "$1"); [ "${2:-0}" -gt 0 ] && lfs quota -q -p "$2" "$1"'
"""If a folder belongs to a project, as on LUMI, the project has the limit."""
_PROXY_S = 2.0
_IN_CONTAINER = Missing(
    Reason.UNRECORDED, "Python is in a container, which cannot be read from outside"
)
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")


def collect_snapshot(
    environment: Mapping[str, str],
    *,
    python: str = "",
    data: str = "",
    cluster: str = "",
    root: Path = Path("/"),
) -> Snapshot:
    """Return all facts that the checks judge.

    A part that does not answer within 2 s to 15 s is `Missing`. Frameworks have 30 s. They are
    asked only if there is a GPU or the job should have one.

    Args:
        environment: variables of a program that would be started here.
        python: the user's; empty: the first on PATH; `-`: not this node's, but a container's.
        data: folder of which to read a sample; empty: none.
        cluster: name in the catalogue; empty: the one that is recognised.
        root: a folder with `proc`, `sys` and `dev`. Only tests change it.

    Raises:
        InputError: the cluster is unknown.
    """
    python_call = read_python(python, environment) if python != "-" else None
    known = _cluster(cluster, environment)
    folders = {
        what: IsolatedCall(
            f"the file system of {'the current folder' if what == 'here' else path}",
            answering(partial(folder_facts, path, is_home=what == "home")),
            _FILES_S,
        )
        for what, path in _folders(environment, known).items()
    }
    quotas = _ask_quotas(environment)
    drawn = (
        IsolatedCall(f"the file system of {data}", answering(partial(sample, data)), _FILES_S)
        if data
        else None
    )
    conda = IsolatedCall(
        "the file system of conda's configuration",
        answering(partial(read_conda, environment)),
        _FILES_S,
    )
    proxy = _ask_proxy(environment)
    survey = read_survey(environment, root, _DRIVER_S, signals=False)
    facts = describe_host(root)
    allocation = read_allocation(
        environment, frozenset(survey.cores), None, facts.memory_bytes, cpu_quota(root)
    )
    snapshot = Snapshot(
        environment=environment,
        survey=survey,
        allocation=allocation,
        local_size=_local_size(environment, survey.host),
        cluster=known,
        python=or_missing(python_call.answer(Python)) if python_call else _IN_CONTAINER,
        is_python_named=bool(python),
        folders={what: or_missing(call.answer(Folder)) for what, call in folders.items()},
        quotas=_quotas(quotas),
        data=or_missing(drawn.answer(DataSample)) if drawn else None,
        conda=or_missing(conda.answer(Conda)),
        limits=read_limits(),
        cores_of_numa=cores_of_numa(root),
        threads_per_core=threads_per_core(root),
        proxy=or_missing(proxy.answer(Proxy)) if proxy else None,
        clock=read_clock(),
        has_fabric=has_fabric(root),
        gpu_files=gpu_files(root),
    )
    if not snapshot.expects_gpus or snapshot.failed_drivers or isinstance(snapshot.python, Missing):
        return snapshot
    return msgspec.structs.replace(snapshot, python=see(snapshot.python, environment))


def _folders(environment: Mapping[str, str], cluster: Cluster | None) -> dict[str, str]:
    own = cluster.local_disk.variable if cluster and cluster.local_disk else ""
    variables = (own, "SLURM_TMPDIR", "LOCAL_SCRATCH")
    scratch = next(filter(None, map(environment.get, variables)), "")
    found = {
        "home": environment.get("HOME", ""),
        "here": os.curdir,
        "temporary": environment.get("TMPDIR") or "/tmp",  # noqa: S108 - only read
        "shared memory": "/dev/shm",  # noqa: S108
        "scratch": scratch,
    }
    return {what: path for what, path in found.items() if path}


def _cluster(name: str, environment: Mapping[str, str]) -> Cluster | None:
    named = name or environment.get("TEHO_CLUSTER", "")
    if named:
        return load_cluster(named, environment)
    known = load_catalogue(environment).values()
    return current_cluster(environment, socket.gethostname(), known)


def _local_size(environment: Mapping[str, str], host: str) -> int:
    try:
        return read_task(environment, host).local_size
    except InputError:
        return 1  # `teho launch` reports the mistake


def _ask_quotas(environment: Mapping[str, str]) -> list[IsolatedCall]:
    commands = [["quota", "-wp"]]
    home, user = environment.get("HOME", ""), environment.get("USER", "")
    if home and user and " - lustre " in read_text(Path("/proc/self/mountinfo")):
        for path in dict.fromkeys((home, environment.get("PWD", os.curdir))):
            commands.append(["lfs", "quota", "-q", "-u", user, path])
            commands.append(["sh", "-c", _OF_PROJECT, "lfs", path])
    return [IsolatedCall(one[0], executing(one, environment), _QUOTA_S) for one in commands]


def _quotas(calls: Sequence[IsolatedCall]) -> tuple[DiskQuota, ...] | Missing:
    """Return the quotas that the commands print; if none of them answers, the reason."""
    answers = [or_missing(call.output()) for call in calls]
    texts = [text.decode(errors="replace") for text in answers if not isinstance(text, Missing)]
    if not texts:
        return next(one for one in answers if isinstance(one, Missing))
    return tuple(dict.fromkeys(quota for text in texts for quota in read_quotas(text)))


def _ask_proxy(environment: Mapping[str, str]) -> IsolatedCall | None:
    for variable in _PROXIES:
        if environment.get(variable):
            connect = partial(_connect, variable, environment[variable])
            return IsolatedCall(f"the proxy of {variable}", answering(connect), _PROXY_S + 1)
    return None


def _connect(variable: str, url: str) -> Proxy:
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port = "", 0
    if not host:
        place = "a proxy without a valid host and port"
        return Proxy(variable=variable, place=place, why="the proxy's host or port is not valid")
    why = ""
    try:
        socket.create_connection((host, port), timeout=_PROXY_S).close()
    except OSError as error:
        why = error.strerror or str(error)
    return Proxy(variable=variable, place=f"{host}:{port}", why=why)
