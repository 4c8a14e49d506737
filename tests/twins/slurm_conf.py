"""A cluster of the catalogue as the text of Slurm's files. Pure.

What Slurm has no word for is left out; sites hold it with a plugin of their own:
`min_time`, `gpu_counts`, `gpu_multiple`, `whole_nodes_if_several`, `max_local_disk_gib`,
a share that is `enforced`, `automatic`, and `purpose = "restricted"`. A partition that the
file has twice under one name is one here, with the laxer limits of the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from teho.model.cluster import Cluster, NodeKind, Partition
from teho.units import parse_duration, parse_mib

__all__ = [
    "Count",
    "Place",
    "accounts_of",
    "conf_text",
    "gres_text",
    "limits_of",
    "live_names",
    "lua_text",
    "nodes_of",
    "places_of",
]

_SLICES_PER_NODE = 7
_NODES_IF_UNKNOWN = 8
_MEMORY_MIB_IF_UNKNOWN = 4 * 1024 * 1024
_NO_ACCOUNT = "none"
_LARGER = "-allocation"


class Count(NamedTuple):
    """Nodes of one kind."""

    live: int
    """Those that have a slurmd and run jobs."""
    all: int


class Place(msgspec.Struct, frozen=True):
    """A partition of the twin."""

    name: str
    parts: tuple[Partition, ...]
    """What of the catalogue's file it stands for: several if they share a name."""
    kinds: tuple[NodeKind, ...]
    with_allocation: bool = False
    """Whether it is the one for accounts with an allocation."""

    @property
    def named(self) -> bool:
        """Whether a job names it."""
        return bool(self.parts[0].name)

    @property
    def has_gpus(self) -> bool:
        """Whether some of its nodes have GPUs."""
        return any(kind.gpu for kind in self.kinds)

    def most(self, limit: Callable[[Partition], float | None]) -> float | None:
        """Return the laxest upper limit; None where one part has none."""
        found = [limit(part) for part in self.parts]
        known = [value for value in found if value is not None]
        return max(known) if len(known) == len(found) else None

    def least(self, limit: Callable[[Partition], float | None]) -> float | None:
        """Return the laxest lower limit; None where one part has none."""
        found = [limit(part) for part in self.parts]
        known = [value for value in found if value is not None]
        return min(known) if len(known) == len(found) else None


def places_of(cluster: Cluster) -> list[Place]:
    """Return the twin's partitions: one for each name, and one for each that has none."""
    kinds = {kind.name: kind for kind in cluster.nodes}
    labels = Counter(_slug(part.label) for part in cluster.partitions if not part.name)
    groups: dict[str, list[Partition]] = {}
    for part in cluster.partitions:
        name = part.name or _slug(part.label)
        if name == "default":  # a word of slurm.conf itself
            name = _slug(part.kinds[0])
        if not part.name and labels[name] > 1:
            name += f"-{_slug(part.kinds[0])}"
        groups.setdefault(name, []).append(part)
    places = []
    for name, parts in groups.items():
        held = tuple(kinds[kind] for kind in dict.fromkeys(k for p in parts for k in p.kinds))
        places.append(Place(name, tuple(parts), held))
        if any(part.max_nodes_with_allocation for part in parts):
            places.append(Place(name + _LARGER, tuple(parts), held, with_allocation=True))
    return places


def accounts_of(cluster: Cluster) -> list[str]:
    """Return the user's accounts, the default one first; it takes no job if one must be named."""
    account = cluster.account
    named = [account.example or "everyone"]
    named += [f"{prefix}someuser" for prefix in account.allocations]
    return [_NO_ACCOUNT, *named] if account.required else named


def limits_of(place: Place) -> str:
    """Return the limits of a partition's QOS, as sacctmgr reads them; empty where it has none."""
    groups = {
        "MaxTRESPerJob": {
            "gres/gpu": place.most(lambda part: part.max_gpus),
            "cpu": place.most(lambda part: part.max_cores),
        },
        "MaxTRESPerNode": {
            "gres/gpu": place.most(lambda part: part.max_gpus_per_node),
            "cpu": place.most(lambda part: part.max_cores_per_node),
        },
        "MinTRESPerJob": {
            "gres/gpu": place.least(lambda part: part.min_gpus or part.min_gpus_per_node),
        },
    }
    words = []
    for option, limits in groups.items():
        known = [f"{name}={value:g}" for name, value in limits.items() if value is not None]
        if known:
            words.append(f"{option}={','.join(known)}")
    for option, value in (
        ("MaxSubmitJobsPerUser", place.most(lambda part: part.max_jobs)),
        ("MaxJobsPerUser", place.most(lambda part: part.max_running_jobs)),
    ):
        if value is not None:
            words.append(f"{option}={value:g}")
    return " ".join(words)


def lua_text(cluster: Cluster) -> str:
    """Return the routing of jobs that name no partition, as a site's job_submit.lua does it."""
    nameless = [p for p in places_of(cluster) if not p.named and not p.with_allocation]
    of_type: dict[str, str] = {}
    for place in nameless:
        for kind in place.kinds:
            of_type.setdefault(kind.gpu.type if kind.gpu else "", place.name)
    routes = [f'["{kind}"] = "{name}"' for kind, name in of_type.items()]
    untyped = next((p.name for p in nameless if p.has_gpus), "")
    larger = [
        f'["{p.name.removesuffix(_LARGER)}"] = true'
        for p in places_of(cluster)
        if p.with_allocation
    ]
    prefixes = ", ".join(f'"{prefix}"' for prefix in cluster.account.allocations)
    return f"""\
local of_type = {{ {", ".join(routes)} }}
local with_larger = {{ {", ".join(larger)} }}
local prefixes = {{ {prefixes} }}

function slurm_job_submit(job, partitions, user)
   if job.partition ~= nil then return slurm.SUCCESS end
   local asked = (job.tres_per_node or "") .. (job.tres_per_job or "")
   local place = of_type[""]
   if string.find(asked, "gpu") then
      place = of_type[string.match(asked, "gpu:(%a[^:,]*)") or "-"] or "{untyped}"
   end
   for _, prefix in ipairs(prefixes) do
      local theirs = string.sub(job.account or "", 1, #prefix) == prefix
      if theirs and with_larger[place] then
         place = place .. "{_LARGER}"
         break
      end
   end
   if place ~= nil and place ~= "" then job.partition = place end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, user)
   return slurm.SUCCESS
end

return slurm.SUCCESS
"""


def nodes_of(cluster: Cluster, kind: NodeKind) -> int:
    """Return how many nodes of a kind there are, or one more than its partitions give a job."""
    if kind.count is not None:
        return kind.count
    most = [part.max_nodes for part in cluster.partitions if kind.name in part.kinds]
    return max((count for count in most if count is not None), default=_NODES_IF_UNKNOWN) + 1


def conf_text(cluster: Cluster, counts: Mapping[str, Count], ports: range, host: str) -> str:
    """Return the lines of slurm.conf on nodes and partitions.

    Args:
        cluster: the cluster to stand for.
        counts: its nodes, by kind.
        ports: one for each live node, and one that the others share.
        host: the name of this machine.
    """
    lines = []
    next_port = ports.start
    for kind in cluster.nodes:
        count = counts[kind.name]
        # Jobs go to the nodes that have a slurmd first: the others would never start one.
        for first, last, words in (
            (1, count.live, f"Port=[{next_port}-{next_port + count.live - 1}] Weight=1"),
            (count.live + 1, count.all, f"Port={ports[-1]} Weight=1000 State=CLOUD"),
        ):
            if last >= first:
                lines.append(
                    f"NodeName={_names(kind, first, last)} NodeHostname={host} "
                    f"NodeAddr=127.0.0.1 {_hardware(cluster, kind)} {words}"
                )
        next_port += count.live
    lines += [
        _partition_line(cluster, place, counts)
        for place in places_of(cluster)
        if any(counts[kind.name].all for kind in place.kinds)
    ]
    return "\n".join(lines) + "\n"


def gres_text(cluster: Cluster, counts: Mapping[str, Count], devices: str) -> str:
    """Return gres.conf; live nodes' GPUs are the files `devices` + number."""
    lines = []
    for kind in cluster.nodes:
        count = counts[kind.name]
        for first, last in ((1, count.live), (count.live + 1, count.all)):
            if last < first:
                continue
            node = f"NodeName={_names(kind, first, last)}"
            if kind.gpu:
                gpus = kind.gpu.count or _SLICES_PER_NODE
                alive = last == count.live
                what = f"File={devices}[0-{gpus - 1}]" if alive else f"Count={gpus}"
                lines.append(f"{node} Name=gpu Type={kind.gpu.type} {what}")
            if _has_nvme(cluster) and kind.local_disk_gib:
                lines.append(f"{node} Name=nvme Count={kind.local_disk_gib:.0f}")
    return "\n".join(lines) + "\n"


def live_names(cluster: Cluster, counts: Mapping[str, Count]) -> list[str]:
    """Return the names of the nodes that have a slurmd, in the order of their ports."""
    return [
        f"{_slug(kind.name)}-n{number + 1}"
        for kind in cluster.nodes
        for number in range(counts[kind.name].live)
    ]


def _has_nvme(cluster: Cluster) -> bool:
    return bool(cluster.local_disk and cluster.local_disk.joins_gres)


def _names(kind: NodeKind, first: int, last: int) -> str:
    return f"{_slug(kind.name)}-n[{first}-{last}]"


def _hardware(cluster: Cluster, kind: NodeKind) -> str:
    # Cores that are the system's are not there at all: CoreSpecCount would let a job name them.
    cores = kind.usable_cores or kind.cores
    sockets = kind.sockets or 1
    sockets = sockets if cores % sockets == 0 else 1
    words = [f"CPUs={cores} Sockets={sockets} CoresPerSocket={cores // sockets} ThreadsPerCore=1"]
    words.append(f"RealMemory={_memory_mib(kind)}")
    if kind.local_disk_gib:
        words.append(f"TmpDisk={kind.local_disk_gib * 1024:.0f}")
    gres = [f"gpu:{kind.gpu.type}:{kind.gpu.count or _SLICES_PER_NODE}"] if kind.gpu else []
    gres += (
        [f"nvme:{kind.local_disk_gib:.0f}"] if _has_nvme(cluster) and kind.local_disk_gib else []
    )
    words += [f"Gres={','.join(gres)}"] if gres else []
    words += [f"Feature={kind.constraint}"] if kind.constraint else []
    return " ".join(words)


def _memory_mib(kind: NodeKind) -> int:
    return parse_mib(kind.memory) if kind.memory else _MEMORY_MIB_IF_UNKNOWN


def _partition_line(cluster: Cluster, place: Place, counts: Mapping[str, Count]) -> str:
    nodes = [
        _names(kind, 1, counts[kind.name].all) for kind in place.kinds if counts[kind.name].all
    ]
    words = [f"PartitionName={place.name} Nodes={','.join(nodes)}"]
    longest_s = place.most(lambda part: parse_duration(part.max_time) if part.max_time else None)
    words.append(f"MaxTime={longest_s / 60:.0f}" if longest_s else "MaxTime=UNLIMITED")
    words.append(f"MinNodes={place.least(lambda part: part.min_nodes) or 1:g}")
    most_nodes = place.most(
        lambda part: part.max_nodes_with_allocation if place.with_allocation else part.max_nodes
    )
    words += [f"MaxNodes={most_nodes:g}"] if most_nodes else []
    if place.with_allocation:
        prefixes = cluster.account.allocations
        allowed = [name for name in accounts_of(cluster) if name.startswith(prefixes)]
        words.append(f"AllowAccounts={','.join(allowed)}")
    words += ["OverSubscribe=EXCLUSIVE"] if all(part.exclusive for part in place.parts) else []
    most_mib = place.most(lambda part: parse_mib(part.max_memory) if part.max_memory else None)
    words += [f"MaxMemPerNode={most_mib:.0f}"] if most_mib else []
    words.append(_default_memory(cluster, place))
    words += [f"QOS={place.name}"] if limits_of(place) else []
    return " ".join(words)


def _default_memory(cluster: Cluster, place: Place) -> str:
    """Return what memory a job has that names none: its GPUs' share, or its cores' part."""
    types = {kind.gpu.type for kind in place.kinds if kind.gpu}
    shares = [share.memory for share in cluster.shares if share.gpu in types]
    known = [parse_mib(memory) for memory in shares if memory is not None]
    if known:
        return f"DefMemPerGPU={min(known)}"
    parts = [_memory_mib(kind) // (kind.usable_cores or kind.cores) for kind in place.kinds]
    return f"DefMemPerCPU={min(parts)}"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
