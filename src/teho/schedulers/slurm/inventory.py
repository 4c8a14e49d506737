"""Read a cluster's facts from its Slurm, with `scontrol` and `sacctmgr`, which any user may run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import msgspec

from teho.errors import SchedulerError
from teho.model.cluster import (
    UNKNOWN_SITE,
    Account,
    Billing,
    Cluster,
    Dialect,
    LocalDisk,
    NodeKind,
    Partition,
    Qos,
    Source,
)
from teho.schedulers.inventory import (
    HOSTS_NOTE,
    UNTYPED,
    Ask,
    Host,
    answer_of,
    kinds_in,
    kinds_of,
    length,
    size_gib,
)
from teho.schedulers.slurm.billing import billing_of
from teho.schedulers.slurm.resources import gpu_limit, gpus_in, gres_items, ids_in, tres_limits
from teho.schedulers.slurm.rows import Row, columns, settings, text_rows
from teho.units import counted, least, mib_text, parse_duration

__all__ = ["slurm_cluster"]

_LIMITS_OF_QOS = (
    "min_gpus",
    "max_gpus",
    "max_gpus_per_node",
    "max_cores",
    "max_jobs",
    "max_running_jobs",
)
_QOS_COLUMNS = (
    "Name,Flags,MaxTRES,MaxTRESPerNode,MinTRES,MaxTRESPU,GrpTRES,MaxWall,MaxJobsPU,MaxSubmitPU"
)
_NONE = frozenset({"", "N/A", "NONE", "UNLIMITED", "INFINITE"})


def slurm_cluster(ask: Ask, *, user: str, host: str, today: date, name: str = "") -> Cluster:
    """Ask Slurm for the cluster's nodes, partitions and limits.

    Facts that Slurm does not report are left out. Each partition's `unknown` and the cluster's
    notes name them. If a partition has a QOS, the stricter limit of the two counts (slurm.conf(5),
    sacctmgr(1)).

    Args:
        ask: runs a command that only asks.
        user: the user whose accounts are requested.
        host: name of this machine, which identifies the cluster.
        today: date of the facts.
        name: name of the cluster; empty: Slurm's `ClusterName`.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    config = settings(answer_of(ask, "scontrol", "show", "config"))
    slurm_name = config.get("ClusterName", "")
    partitions = _scontrol(ask, "partitions")
    nodes = _scontrol(ask, "nodes")
    memory_is_counted = _memory_is_counted(config)
    hosts = [_host(row, memory_is_counted=memory_is_counted) for row in nodes]
    kinds = kinds_of(hosts, "SLURM scontrol show node")
    unseen = _unseen(partitions, hosts)
    if unseen:
        kinds = {msgspec.structs.replace(kind, count=None): own for kind, own in kinds.items()}
    qos = _qos(ask)
    counted_gpus = tuple(
        name.removeprefix("gres/gpu:")
        for name in config.get("AccountingStorageTRES", "").split(",")
        if name.startswith("gres/gpu:")
    )
    priority_flags = config.get("PriorityFlags")
    billing = {}
    for row in partitions:
        key = row.get("PartitionName", "")
        own = [one for one in hosts if key in one.partitions]
        if bill := billing_of(row, own, priority_flags, counted_gpus):
            billing[key] = bill
    return Cluster(
        name=(name or slurm_name or "cluster").lower(),
        title=slurm_name or name,
        site=UNKNOWN_SITE,
        scheduler="slurm",
        status="active",
        verified_on=today,
        hosts=(host,),
        recognised_by={"SLURM_CLUSTER_NAME": slurm_name} if slurm_name else {},
        sources={
            "SLURM": Source(
                document=f"Slurm {config.get('SLURM_VERSION', '')} on {host}".replace("  ", " "),
                read_on=today,
            )
        },
        nodes=tuple(kinds),
        partitions=tuple(_partition(row, config, kinds, qos, billing) for row in partitions),
        dialect=_dialect(config, partitions, hosts),
        account=_account(ask, config, user),
        local_disk=_local_disk(config, hosts),
        billing=billing,
        qos={key: _qos_limits(key, row) for key, row in qos.items() if key},
        enforced=_names(config.get("AccountingStorageEnforce", "")),
        counted_gpus=counted_gpus,
        notes=tuple(_notes(config, nodes, hosts, unseen)),
    )


def _scontrol(ask: Ask, what: str) -> list[Row]:
    """Ask for all nodes or partitions, also hidden ones."""
    return text_rows(answer_of(ask, "scontrol", "-a", "-o", "show", what))


def _qos(ask: Ask) -> dict[str, Row]:
    """Return every QOS by name; empty: the accounting cannot be asked."""
    try:
        text = answer_of(ask, "sacctmgr", "-nP", "show", "qos", f"format={_QOS_COLUMNS}")
    except SchedulerError:
        return {}
    return {row.get("Name", ""): row for row in columns(text, _QOS_COLUMNS)}


def _qos_limits(name: str, row: Row) -> Qos:
    return Qos(
        max_of_job=tres_limits(row.get("MaxTRES", "")),
        max_of_node=tres_limits(row.get("MaxTRESPerNode", "")),
        min_of_job=tres_limits(row.get("MinTRES", "")),
        max_of_user=tres_limits(row.get("MaxTRESPU", "")),
        max_of_all=tres_limits(row.get("GrpTRES", "")),
        max_time=_shortest(row.get("MaxWall", "")),
        flags=_names(row.get("Flags", "")),
        source=f"SLURM sacctmgr show qos {name}",
    )


def _names(text: str) -> tuple[str, ...]:
    """Read a list of names; empty for Slurm's words for none and for all."""
    return tuple(one for one in text.split(",") if one.upper() not in _NONE | {"ALL"})


def _memory_is_counted(config: Row) -> bool | None:
    select = config.get("SelectTypeParameters")
    return None if select is None else "MEMORY" in select.upper()


def _host(row: Row, *, memory_is_counted: bool | None) -> Host:
    """Read a node. Cores are physical. Slurm's CPUs are cores or threads."""
    cores = max(_count(row, "Sockets", 1) * _count(row, "CoresPerSocket", 1), 1)
    cpus = _count(row, "CPUTot", cores)
    cpus_per_core = _count(row, "ThreadsPerCore", 1) if cpus > cores else 1
    reserved = {cpu // cpus_per_core for cpu in ids_in(row.get("CPUSpecList", ""))}
    usable = min(_count(row, "CPUEfctv", cpus) // cpus_per_core, cpus // cpus_per_core)
    if "CPUEfctv" not in row:  # before 22.05
        usable -= _count(row, "CoreSpecCount", len(reserved))
    return Host(
        name=row.get("NodeName", ""),
        cores=cores,
        usable_cores=usable,
        reserved_cores=tuple(sorted(reserved)),
        cpus_per_core=cpus_per_core,
        sockets=_count(row, "Sockets", 1),
        # The system's memory is only subtracted if Slurm counts memory.
        memory_mib=_count(row, "RealMemory", 0)
        - (memory_is_counted is not False) * _count(row, "MemSpecLimit", 0),
        # Also 0 if the configuration has no value: jobs that request disk do not use the node then.
        local_disk_gib=size_gib(_count(row, "TmpDisk", 0)),
        gpus=gpus_in(row.get("Gres", "")),
        arch=row.get("Arch") or "x86_64",
        features=frozenset(filter(None, row.get("AvailableFeatures", "").split(","))),
        partitions=tuple(filter(None, row.get("Partitions", "").split(","))),
    )


def _unseen(partitions: Sequence[Row], hosts: Sequence[Host]) -> list[str]:
    """Return the partitions that have more nodes than Slurm shows."""
    shown = Counter(name for host in hosts for name in host.partitions)
    return [
        row["PartitionName"]
        for row in partitions
        if _count(row, "TotalNodes", 0) > shown[row["PartitionName"]]
    ]


def _partition(
    row: Row,
    config: Row,
    kinds: Mapping[NodeKind, tuple[Host, ...]],
    qos: Mapping[str, Row],
    billing: Mapping[str, Billing],
) -> Partition:
    name = row.get("PartitionName", "")
    own = kinds_in(name, kinds)
    hosts = {host.name: host for members in own.values() for host in members}.values()
    per_core = {host.cpus_per_core for host in hosts}
    bound = ",".join(_names(row.get("QoS", "")))
    enforced = {"limits", "safe"} & {*_names(config.get("AccountingStorageEnforce", ""))}
    rules = qos.get(bound, {}) if bound and enforced else {}
    unknown = _LIMITS_OF_QOS if bound and enforced and not rules else ()
    job, node, minimum = (
        tres_limits(rules.get(key, "")) for key in ("MaxTRES", "MaxTRESPerNode", "MinTRES")
    )
    types = {gpu_type for host in hosts for gpu_type, _ in host.gpus}
    cpus = _number(row.get("MaxCPUsPerNode", ""))
    # A limit in CPUs differs from a limit in whole cores if not all nodes divide it equally.
    of_threads = len(per_core) > 1 or any((cpus or 0) % each for each in per_core)
    defaults = _job_defaults(row) or _job_defaults(config)
    return Partition(
        name=name,
        kinds=tuple(kind.name for kind in own),
        node_counts={
            kind.name: len(members)
            for kind, members in own.items()
            if kind.count is not None and len(members) != kind.count
        },
        takes_cpu_jobs=True,
        max_time=_shortest(row.get("MaxTime", ""), rules.get("MaxWall", "")),
        min_nodes=max(_count(row, "MinNodes", 1), minimum.get("node", 1), 1),
        max_nodes=least(_number(row.get("MaxNodes", "")), job.get("node")),
        max_gpus_per_node=gpu_limit(node, types),
        min_gpus=gpu_limit(minimum, types),
        max_gpus=gpu_limit(job, types),
        max_cores=_cores(job.get("cpu"), per_core),
        max_cores_per_node=_cores(least(cpus, node.get("cpu")), per_core),
        max_cpus_per_node=cpus if cpus and of_threads else None,
        default_cpus_per_gpu=_number(defaults.get("DefCpuPerGPU", "")),
        default_memory_per_gpu=_mib(defaults.get("DefMemPerGPU", "")),
        default_memory_per_cpu=_memory(row, config, "DefMemPerCPU", "DefMemPerNode"),
        default_memory_per_node=_memory(row, config, "DefMemPerNode", "DefMemPerCPU"),
        max_memory_per_cpu=_memory(row, config, "MaxMemPerCPU", "MaxMemPerNode"),
        max_memory=_memory(row, config, "MaxMemPerNode", "MaxMemPerCPU"),
        exclusive=row.get("OverSubscribe") == "EXCLUSIVE" or row.get("Exclusive") == "NODE",
        max_jobs=_number(rules.get("MaxSubmitPU", "")),
        max_running_jobs=_number(rules.get("MaxJobsPU", "")),
        purpose="restricted" if row.get("RootOnly") == "YES" else "production",
        needs_reservation=row.get("ReqResv") == "YES",
        accounts=_names(row.get("AllowAccounts", "")),
        denied_accounts=_names(row.get("DenyAccounts", "")),
        groups=_names(row.get("AllowGroups", "")),
        allowed_qos=_names(row.get("AllowQos", "")),
        denied_qos=_names(row.get("DenyQos", "")),
        qos=bound,
        billing=name if name in billing else "",
        source=f"SLURM scontrol show partition{f'; sacctmgr show qos {bound}' if rules else ''}",
        notes=" ".join(_remarks(row, _count(row, "TotalNodes", len(hosts)))),
        unknown=(*unknown, *(() if name in billing else ("billing",))),
    )


def _job_defaults(row: Row) -> dict[str, str]:
    return dict(re.findall(r"(Def\w+PerGPU)=(\w+)", row.get("JobDefaults", "")))


def _memory(row: Row, config: Row, key: str, rival: str) -> str | None:
    """Return a partition's amount of memory, or the cluster's if the partition has none.

    Slurm either uses the amount for a CPU or the amount for a node (slurm.conf(5), DefMemPerCPU).
    """
    for place in (row, config):
        for name in (key, rival):
            if amount := _mib(place.get(name, "")):
                return amount if name == key else None
    return None


def _mib(text: str) -> str | None:
    amount = _number(text)
    return mib_text(amount) if amount else None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _remarks(row: Row, nodes: int) -> Iterator[str]:
    yield f"{counted(nodes, 'node')}."
    if row.get("State", "UP") != "UP":
        yield f"The partition was {row['State']}: at that time, it did not accept or start jobs."
    for key in ("JobDefaults", "TRESBillingWeights"):
        if row.get(key):
            yield f"{key}={row[key]}."


def _dialect(config: Row, partitions: Sequence[Row], hosts: Sequence[Host]) -> Dialect:
    typed = any(gpu_type != UNTYPED for host in hosts for gpu_type, _ in host.gpus)
    default = [row["PartitionName"] for row in partitions if row.get("Default") == "YES"]
    select = config.get("SelectTypeParameters", "").upper()
    return Dialect(
        gpus="--gpus-per-node={type}:{count}" if typed else "--gpus-per-node={count}",
        partition="optional" if default else "required",
        memory_is_counted=_memory_is_counted(config),
        gives_whole="sockets" if "SOCKET" in select else "cpus" if "CR_CPU" in select else "cores",
        time_required="require_timelimit" in config.get("JobSubmitPlugins", "").split(","),
        source="SLURM sbatch(1); scontrol show config: JobSubmitPlugins",
        notes=f"Jobs without a partition go to {default[0]}." if default else "",
    )


def _account(ask: Ask, config: Row, user: str) -> Account:
    argv = ("sacctmgr", "-nP", "show", "user", "where", f"user={user}", "format=DefaultAccount")
    try:
        name = answer_of(ask, *argv).strip()
    except SchedulerError:
        name = ""
    enforced = config.get("AccountingStorageEnforce") or "none"
    return Account(
        required=False,
        example=name or "project",
        source="SLURM sacctmgr show user; scontrol show config",
        notes=f"AccountingStorageEnforce={enforced}. If a job has no account, Slurm takes the "
        "user's default account. It is not known whether the site accepts jobs without an account.",
    )


def _local_disk(config: Row, hosts: Sequence[Host]) -> LocalDisk | None:
    """Return TmpFS if a node has a size for it."""
    if not any(host.local_disk_gib for host in hosts):
        return None
    return LocalDisk(
        variable="",
        path=config.get("TmpFS") or "/tmp",  # noqa: S108 - Slurm's own default
        option="--tmp={gib}G",
        source="SLURM scontrol show config: TmpFS; scontrol show node: TmpDisk",
        notes="--tmp selects nodes with this amount of disk; it does not reserve the disk.",
    )


def _notes(
    config: Row, nodes: Sequence[Row], hosts: Sequence[Host], unseen: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each fact that Slurm does not report."""
    yield (
        "Slurm does not report these facts, so this file does not have them: what a GPU-hour costs "
        "in the site's own unit, how many cores and how much memory belong to one GPU, how "
        "software is loaded, rules on accounts, who runs the cluster."
    )
    yield HOSTS_NOTE
    types = sorted({gpu_type for host in hosts for gpu_type, _ in host.gpus})
    if types:
        yield (
            f"The product names of the GPUs ({', '.join(types)}) are not known. The memory of "
            "a GPU is known only if the name of the GPU's type contains the size of the memory. "
            "The vendor is taken from the type's name."
        )
    items = {item for row in nodes for item in gres_items(row.get("Gres", ""))}
    others = sorted({item.partition(":")[0] for item in items} - {"gpu"})
    if others:
        yield (
            f"Nodes also have {', '.join(others)} (Gres): Slurm does not describe these resources."
        )
    if unseen:
        yield (
            "Slurm does not show nodes that are powered down (PrivateData lacks cloud): nodes of "
            f"{', '.join(unseen)} are missing here, so the number of nodes of each kind is not "
            "known."
        )
    if config.get("JobSubmitPlugins"):
        yield (
            f"JobSubmitPlugins={config['JobSubmitPlugins']}: rules of the site may change or "
            "refuse a job; Slurm does not report these rules."
        )
    if any(host.cpus_per_core > 1 for host in hosts):
        yield "On this cluster, Slurm counts threads as CPUs. This file counts physical cores."


def _count(row: Row, key: str, default: int) -> int:
    found = _number(row.get(key, ""))
    return default if found is None else found


def _cores(cpus: int | None, per_core: set[int]) -> int | None:
    """Return a limit in cores. None also if CPUs are cores on some nodes and threads on others."""
    return cpus // min(per_core) if cpus is not None and len(per_core) == 1 else None


def _shortest(*limits: str) -> str | None:
    known = [parse_duration(text, bare_is_s=True) for text in limits if text.upper() not in _NONE]
    return length(min(known)) if known else None
