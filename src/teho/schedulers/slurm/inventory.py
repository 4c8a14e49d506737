"""A cluster's facts from its live Slurm: what `scontrol` and `sacctmgr` tell to any user."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import msgspec

from teho.errors import SchedulerError
from teho.model.cluster import (
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
from teho.schedulers.inventory import UNTYPED, Ask, Host, asked, kinds_of, length, size_gib
from teho.schedulers.slurm.billing import billing_of
from teho.schedulers.slurm.rows import QOS_COLUMNS, Row, columns, settings, text_rows
from teho.units import counted, mib_text, parse_bytes, parse_duration

__all__ = ["gpus_in", "slurm_cluster", "tres_limits"]

_LIMITS_OF_QOS = (
    "min_gpus",
    "max_gpus",
    "max_gpus_per_node",
    "max_cores",
    "max_jobs",
    "max_running_jobs",
)
_NONE = frozenset({"", "N/A", "NONE", "UNLIMITED", "INFINITE"})


def slurm_cluster(ask: Ask, *, user: str, host: str, today: date, name: str = "") -> Cluster:
    """Ask Slurm what the cluster has and allows.

    What Slurm does not report is left out, named in each partition's `unknown`, and told in
    the cluster's notes. Limits of a partition are its own and those of the QOS that is
    bound to it, whichever is stricter (slurm.conf(5), sacctmgr(1)).

    Args:
        ask: runs a command; only questions are asked.
        user: whose accounts to look for.
        host: name of this machine, by which the cluster is recognised.
        today: date of the facts.
        name: of the cluster; empty: Slurm's own `ClusterName`.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    config = settings(asked(ask, "scontrol", "show", "config"))
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
    of_rows = {row.get("PartitionName", ""): row for row in partitions}
    billing = {
        key: found
        for key, row in of_rows.items()
        if (found := billing_of(row, _within(key, hosts), priority_flags, counted_gpus)) is not None
    }
    return Cluster(
        name=(name or slurm_name or "cluster").lower(),
        title=slurm_name or name,
        site="not known",
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
    """Ask for all nodes or partitions, hidden ones too."""
    return text_rows(asked(ask, "scontrol", "-a", "-o", "show", what))


def _qos(ask: Ask) -> dict[str, Row]:
    """Return every QOS by name; none if accounting cannot be asked."""
    argv = ("sacctmgr", "-nP", "show", "qos", f"format={','.join(QOS_COLUMNS)}")
    try:
        rows = columns(asked(ask, *argv), QOS_COLUMNS)
    except SchedulerError:
        rows = []
    return {row.get("Name", ""): row for row in rows}


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


def tres_limits(text: str) -> dict[str, int]:
    """Read `cpu=64,gres/gpu=2,mem=80G`: memory in MiB, the rest as numbers."""
    return {
        what: number // 1024**2 if what == "mem" else number for what, number in _tres(text).items()
    }


def _names(text: str) -> tuple[str, ...]:
    """Read a list of names; none for Slurm's words for nothing, and for all."""
    return tuple(one for one in text.split(",") if one.upper() not in _NONE | {"ALL"})


def _memory_is_counted(config: Row) -> bool | None:
    told = config.get("SelectTypeParameters")
    return None if told is None else "MEMORY" in told.upper()


def _host(row: Row, *, memory_is_counted: bool | None) -> Host:
    """Read a node. Cores are physical; a CPU of Slurm's is a core, or a thread of one."""
    cores = max(_count(row, "Sockets", 1) * _count(row, "CoresPerSocket", 1), 1)
    cpus = _count(row, "CPUTot", cores)
    cpus_per_core = _count(row, "ThreadsPerCore", 1) if cpus > cores else 1
    reserved = {cpu // cpus_per_core for cpu in _ids(row.get("CPUSpecList", ""))}
    kept = _count(row, "CoreSpecCount", len(reserved))
    usable = min(_count(row, "CPUEfctv", cpus) // cpus_per_core, cpus // cpus_per_core)
    if "CPUEfctv" not in row:  # before 22.05
        usable -= kept
    disk_mib = _count(row, "TmpDisk", 0)
    features = row.get("AvailableFeatures", "")
    return Host(
        name=row.get("NodeName", ""),
        cores=cores,
        usable_cores=usable,
        reserved_cores=tuple(sorted(reserved)),
        cpus_per_core=cpus_per_core,
        sockets=_count(row, "Sockets", 1),
        # What is kept for the system is only taken off if memory is counted.
        memory_mib=_count(row, "RealMemory", 0)
        - (memory_is_counted is not False) * _count(row, "MemSpecLimit", 0),
        # 0 too where the administrator said nothing: no job that asks for disk comes to the node.
        local_disk_gib=size_gib(disk_mib),
        gpus=gpus_in(row.get("Gres", "")),
        arch=row.get("Arch") or "x86_64",
        features=frozenset(filter(None, features.split(","))),
        partitions=tuple(filter(None, row.get("Partitions", "").split(","))),
    )


def gpus_in(gres: str) -> tuple[tuple[str, int], ...]:
    """Read `gpu:a100:4(S:0-1),gpu:a100_1g.5gb:7`; GPUs without a type are of type `gpu`."""
    found: dict[str, int] = {}
    for item in _gres_items(gres):
        name, *words = item.split(":")
        if name != "gpu":
            continue
        count = int(words.pop()) if words and words[-1].isdecimal() else 1
        gpu_type = words[0] if words else UNTYPED
        found[gpu_type] = found.get(gpu_type, 0) + count
    return tuple((gpu_type, count) for gpu_type, count in found.items() if count)


def _gres_items(gres: str) -> list[str]:
    # Behind an item stand its sockets, which may hold a comma: `gpu:4(S:0,1)`.
    return [item for item in re.sub(r"\([^)]*\)", "", gres).split(",") if item]


def _gres_names(row: Row) -> list[str]:
    return [item.partition(":")[0] for item in _gres_items(row.get("Gres", ""))]


def _unseen(partitions: Sequence[Row], hosts: Sequence[Host]) -> list[str]:
    """Return the partitions that have more nodes than Slurm shows."""
    shown = Counter(name for host in hosts for name in host.partitions)
    return [
        row["PartitionName"]
        for row in partitions
        if _count(row, "TotalNodes", 0) > shown[row["PartitionName"]]
    ]


def _within(partition: str, hosts: Sequence[Host]) -> list[Host]:
    return [host for host in hosts if partition in host.partitions]


def _partition(
    row: Row,
    config: Row,
    kinds: Mapping[NodeKind, tuple[Host, ...]],
    qos: Mapping[str, Row],
    billing: Mapping[str, Billing],
) -> Partition:
    name = row.get("PartitionName", "")
    own = {kind: [host for host in members if name in host.partitions]
           for kind, members in kinds.items()}  # fmt: skip
    own = {kind: members for kind, members in own.items() if members}
    hosts = {host.name: host for members in own.values() for host in members}.values()
    per_core = {host.cpus_per_core for host in hosts}
    bound = row.get("QoS", "") if row.get("QoS", "") not in _NONE else ""
    limits = {"limits", "safe"} & {*_names(config.get("AccountingStorageEnforce", ""))}
    rules = qos.get(bound, {}) if bound and limits else {}
    unknown = _LIMITS_OF_QOS if bound and limits and not rules else ()
    job, node = _tres(rules.get("MaxTRES", "")), _tres(rules.get("MaxTRESPerNode", ""))
    least = _tres(rules.get("MinTRES", ""))
    types = {gpu_type for host in hosts for gpu_type, _ in host.gpus}
    cpus = _limit(row, "MaxCPUsPerNode")
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
        min_nodes=max(_limit(row, "MinNodes") or 1, least.get("node", 1)),
        max_nodes=_least(_limit(row, "MaxNodes"), job.get("node")),
        max_gpus_per_node=_gpu_limit(node, types),
        min_gpus=_gpu_limit(least, types),
        max_gpus=_gpu_limit(job, types),
        max_cores=_cores(job.get("cpu"), per_core),
        max_cores_per_node=_cores(_least(cpus, node.get("cpu")), per_core),
        max_cpus_per_node=cpus if cpus and _is_of_threads(cpus, per_core) else None,
        default_cpus_per_gpu=_number(defaults.get("DefCpuPerGPU", "")),
        default_memory_per_gpu=_mib(defaults.get("DefMemPerGPU", "")),
        default_memory_per_cpu=_memory(row, config, "DefMemPerCPU", "DefMemPerNode"),
        default_memory_per_node=_memory(row, config, "DefMemPerNode", "DefMemPerCPU"),
        max_memory_per_cpu=_memory(row, config, "MaxMemPerCPU", "MaxMemPerNode"),
        max_memory=_memory(row, config, "MaxMemPerNode", "MaxMemPerCPU"),
        exclusive=row.get("OverSubscribe") == "EXCLUSIVE" or row.get("Exclusive") == "NODE",
        max_jobs=_limit(rules, "MaxSubmitPU"),
        max_running_jobs=_limit(rules, "MaxJobsPU"),
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
    """Return a partition's own amount of memory, or the cluster's where it has none.

    Slurm has either the one for a CPU or the one for a node (slurm.conf(5), DefMemPerCPU).
    """
    for place in (row, config):
        for name in (key, rival):
            amount = _number(place.get(name, ""))
            if amount:
                return mib_text(amount) if name == key else None
    return None


def _mib(text: str) -> str | None:
    amount = _number(text)
    return mib_text(amount) if amount else None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _remarks(row: Row, nodes: int) -> Iterator[str]:
    yield f"{counted(nodes, 'node')}."
    if row.get("State", "UP") != "UP":
        yield f"Its state was {row['State']}: it took no jobs then, or started none."
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
        notes=f"Without a partition jobs go to {default[0]}." if default else "",
    )


def _account(ask: Ask, config: Row, user: str) -> Account:
    argv = ("sacctmgr", "-nP", "show", "user", "where", f"user={user}", "format=DefaultAccount")
    try:
        name = asked(ask, *argv).strip()
    except SchedulerError:
        name = ""
    enforced = config.get("AccountingStorageEnforce") or "none"
    return Account(
        required=False,
        example=name or "project",
        source="SLURM sacctmgr show user; scontrol show config",
        notes=f"AccountingStorageEnforce={enforced}. Slurm takes the user's default account where "
        "a job names none; whether the site does is not known.",
    )


def _local_disk(config: Row, hosts: Sequence[Host]) -> LocalDisk | None:
    """Return TmpFS, where some node has a size for it."""
    if not any(host.local_disk_gib for host in hosts):
        return None
    return LocalDisk(
        variable="",
        path=config.get("TmpFS") or "/tmp",  # noqa: S108 - Slurm's own default
        option="--tmp={gib}G",
        source="SLURM scontrol show config: TmpFS; scontrol show node: TmpDisk",
        notes="--tmp picks nodes with so much disk; it sets none of it aside.",
    )


def _notes(
    config: Row, nodes: Sequence[Row], hosts: Sequence[Host], unseen: Sequence[str]
) -> Iterator[str]:
    """Yield what Slurm does not report, one sentence each."""
    yield (
        "Slurm does not report these facts, so this file lacks them: what a GPU-hour costs "
        "in the site's own unit, the fair share of a GPU, how software is loaded, rules on "
        "accounts, who runs the cluster."
    )
    yield "hosts names only this machine; a pattern such as login* recognises all of them."
    types = sorted({gpu_type for host in hosts for gpu_type, _ in host.gpus})
    if types:
        yield (
            f"Of GPUs ({', '.join(types)}) the product name is not known, nor the memory unless "
            "the type's name has it; the vendor is taken from that name."
        )
    others = sorted({name for row in nodes for name in _gres_names(row) if name != "gpu"})
    if others:
        yield f"Nodes also have {', '.join(others)} (Gres): Slurm does not report what that is."
    if unseen:
        yield (
            "Slurm does not show nodes that are powered down (PrivateData lacks cloud): some, or "
            f"whole kinds, of {', '.join(unseen)} are missing here, and no kind has its count."
        )
    if config.get("JobSubmitPlugins"):
        yield (
            f"JobSubmitPlugins={config['JobSubmitPlugins']}: rules of the site's own may change or "
            "refuse a job; Slurm does not report them."
        )
    if any(host.cpus_per_core > 1 for host in hosts):
        yield "Slurm counts threads here; this file counts physical cores."


def _count(row: Row, key: str, default: int) -> int:
    text = row.get(key, "")
    return int(text) if text.isdecimal() else default


def _limit(row: Row, key: str) -> int | None:
    text = row.get(key, "")
    return int(text) if text.isdecimal() else None


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _cores(cpus: int | None, per_core: set[int]) -> int | None:
    """Return a limit in cores. None too if a CPU is a core on some nodes, a thread on others."""
    return cpus // min(per_core) if cpus is not None and len(per_core) == 1 else None


def _is_of_threads(cpus: int, per_core: set[int]) -> bool:
    """Return whether a limit in CPUs is not the same on all nodes as one in whole cores."""
    return len(per_core) > 1 or any(cpus % each for each in per_core)


def _shortest(*limits: str) -> str | None:
    known = [parse_duration(text, bare_is_s=True) for text in limits if text.upper() not in _NONE]
    return length(min(known)) if known else None


def _ids(text: str) -> set[int]:
    """Read a list of CPUs such as `0,8-9`."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def _tres(text: str) -> dict[str, int]:
    """Read `cpu=64,gres/gpu=2,mem=80G`; memory in bytes."""
    found = {}
    for item in filter(None, text.split(",")):
        key, _, amount = item.partition("=")
        if amount.isdecimal() or key == "mem":
            found[key] = int(amount) if amount.isdecimal() else parse_bytes(amount)
    return found


def _gpu_limit(limits: Mapping[str, int], types: set[str]) -> int | None:
    """Return the limit on GPUs of any type, or of the only type there is."""
    if len(types) == 1:
        return limits.get("gres/gpu", limits.get(f"gres/gpu:{next(iter(types))}"))
    return limits.get("gres/gpu")
