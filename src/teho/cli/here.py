"""The cluster of this machine, and what its scheduler reports for a plan."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from teho.model.cluster import Cluster
    from teho.model.member import Live

__all__ = ["chosen_cluster", "cluster_here", "live_of", "planned_for_here", "this_machine"]


def cluster_here(
    known: Iterable[Cluster] | None = None, *, ask_network: bool = False
) -> Cluster | None:
    """Return the cluster that this machine belongs to; None if Teho does not recognise it.

    Args:
        known: the clusters to choose from. None: the catalogue.
        ask_network: whether to ask for the full host name too, which may be another name.
    """
    from teho.clusters.catalogue import load_catalogue
    from teho.clusters.current import current_cluster

    known = tuple(load_catalogue().values() if known is None else known)
    found = current_cluster(os.environ, os.uname().nodename, known)
    if found is None and ask_network:
        found = current_cluster(os.environ, socket.getfqdn(), known)
    return found


def chosen_cluster(name: str | None) -> Cluster:
    """Return the cluster with this name, else the one of this machine, else the setting `cluster`.

    Raises:
        InputError: the cluster is not in the catalogue, or no cluster is chosen.
    """
    from teho.clusters.catalogue import load_cluster
    from teho.config.settings import load_settings

    if name is None and (here := cluster_here()) is not None:
        return here
    name = name or load_settings().cluster
    if name:
        return load_cluster(name)
    raise InputError(
        f"this machine, {os.uname().nodename}, does not belong to a cluster that Teho knows",
        "`--cluster NAME`",
        "`teho clusters` lists the known clusters; `teho clusters discover` describes a new one",
    )


def live_of(cluster: Cluster) -> dict[str, Live]:
    """Ask this machine's scheduler for its partitions and the user's rights.

    Args:
        cluster: the cluster that this machine belongs to.
    """
    import getpass
    import grp

    import msgspec

    from teho.schedulers.command import run
    from teho.schedulers.registry import scheduler_of

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        return {}  # a user without a name has no associations
    groups = []
    for number in os.getgroups():
        try:
            groups.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # no partition names a group that has no name
    scheduler = scheduler_of(cluster.scheduler)
    live = scheduler.live(run, user, groups)
    if live is None:
        return {}
    account = os.environ.get(scheduler.account_variable)
    if account:
        live = msgspec.structs.replace(live, default_account=account)
    return {cluster.name: live}


def planned_for_here(name: str) -> bool:
    """Return whether a cluster is this machine itself, as `this_machine` describes it."""
    return name == _NAME


_NAME = "this-machine"
_SOURCE = "HERE this machine"


def this_machine() -> Cluster:
    """Describe this machine as a cluster of one node, so that a job can be planned for it."""
    from datetime import date

    from teho.devices.host.source import describe_host
    from teho.experiment.placement import this_machine as read_machine
    from teho.model.cluster import Account, Cluster, Dialect, Gpu, NodeKind, Partition, Source
    from teho.units import GIB, MIB

    machine, memory_bytes = read_machine(), describe_host().memory_bytes
    gpu = None
    if machine.gpus:
        first = machine.gpus[0]
        memory_gib = first.memory_bytes / GIB if first.memory_bytes else None
        gpu = Gpu(
            type=first.name, typed=False, count=len(machine.gpus), model=first.name,
            vendor="amd" if first.vendor == "amd" else "nvidia", memory_gib=memory_gib,
        )  # fmt: skip
    node = NodeKind(
        name=os.uname().nodename,
        count=1,
        cores=len(machine.logical_cores),
        memory=f"{memory_bytes // MIB}MiB" if memory_bytes else None,
        memory_is_named=False,
        gpu=gpu,
        source=_SOURCE,
    )
    return Cluster(
        name=_NAME,
        title="this machine",
        site="",
        scheduler="slurm",
        status="active",
        verified_on=date.today(),  # noqa: DTZ011 - no person reads it
        sources={"HERE": Source(document="this machine")},
        nodes=(node,),
        partitions=(
            Partition(
                name="",
                label=node.name,
                kinds=(node.name,),
                takes_cpu_jobs=True,
                source=_SOURCE,
            ),
        ),
        dialect=Dialect(gpus="", partition="never", time_required=False, source=_SOURCE),
        account=Account(required=False, example="", source=_SOURCE),
    )
