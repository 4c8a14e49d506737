"""A cluster's shape in the words of Grid Engine: the texts that its twin is set up with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from teho.model.cluster import Cluster, NodeKind, Partition
from teho.units import parse_duration, parse_mib

__all__ = ["ENVIRONMENTS", "complexes", "host_rows", "queues", "replaced", "verifier"]

ENVIRONMENTS = [
    {
        "pe_name": name,
        "allocation_rule": rule,
        # The script starts its tasks elsewhere, and takes no slot for itself.
        "job_is_first_task": "FALSE",
    }
    for name, rule in (("ib", "2"), ("nodes1", "1"), ("nodes2", "2"))
]
"""How the parallel environments across nodes differ from `smp`. `ib` has two slots on each node;
the verifier puts a job with `-l nodes=N,ppn=P` into `nodesP`."""

VERIFIER = """#!/bin/bash
# Speaks the protocol of jsv(1) and judges each job by the site's rules.
resource() {
  [[ ,${job[l_hard]}, =~ ,$1=([^,]*), ]] && found=${BASH_REMATCH[1]}
}
seconds() {
  local part
  total=0
  for part in ${1//:/ }; do total=$((total * 60 + 10#$part)); done
}
on_nodes() {
  local nodes=$found ppn
  resource ppn && ppn=$found
  echo "PARAM pe_name nodes$ppn"
  echo "PARAM pe_min $((nodes * ppn))"
  echo "PARAM pe_max $((nodes * ppn))"
  echo "PARAM l_hard $(tr , '\n' <<< "${job[l_hard]}" |
    grep -vE '^(nodes|ppn|tpp)=' | paste -sd ,)"
}
judge() {
  local found total queues=@WITHOUT@
  if ! resource h_rt; then
    echo "RESULT STATE REJECT no time: -l h_rt=HH:MM:SS is required"
    return
  fi
  seconds "$found"
  if ((total < @LEAST_S@)); then
    echo "RESULT STATE REJECT h_rt is below the least time, @LEAST_S@ s"
    return
  fi
@SHARES@
  resource nodes && on_nodes
  [[ ${job[q_hard]} ]] || echo "PARAM q_hard $queues"
  echo "RESULT STATE CORRECT"
}
while read -r word name value; do
  case $word in
    START) unset job; declare -A job; echo STARTED ;;
    PARAM) job[$name]=$value ;;
    BEGIN) judge ;;
    QUIT) exit ;;
  esac
done
"""


def verifier(cluster: Cluster) -> str:
    """Return the job verifier: what must be given, and the least time.

    It sends jobs with GPUs to the queue of those nodes, and others to the rest. Such a job has one
    slot and no parallel environment: the cores and the memory of its GPUs are not counted.
    """
    kinds = [kind for _, kind in _kinds(cluster)]
    queue = {kind.gpu.type: f"{kind.name}.q" for kind in kinds if kind.gpu}
    least_s = max(parse_duration(one.min_time) for one in cluster.partitions if one.min_time)
    shares = [
        f"  resource coproc_{share.gpu} && queues={queue[share.gpu]}"
        for share in cluster.shares
        if share.automatic
    ]
    without = ",".join(f"{kind.name}.q" for kind in kinds if kind.gpu is None)
    return (
        VERIFIER.replace("@WITHOUT@", without)
        .replace("@LEAST_S@", f"{least_s:.0f}")
        .replace("@SHARES@", "\n".join(shares))
    )


def _memory_mib(kind: NodeKind) -> int:
    return parse_mib(kind.memory) if kind.memory else 0


def complexes(shown: str, cluster: Cluster) -> str:
    """Return Grid Engine's table of resources with the cluster's own."""
    rows = [row for row in shown.splitlines() if row.split(maxsplit=1)[0] != "h_vmem"]
    least_gib = cluster.local_disk.default_gib if cluster.local_disk else None
    rows.append("h_vmem h_vmem MEMORY <= YES YES 1G 0")
    rows.append(f"disk disk MEMORY <= YES YES {least_gib or 0:g}G 0")
    rows.append("node_type nt STRING == YES NO NONE 0")
    # Consumed by the job as a whole, since its slots are cores.
    rows += [f"{name} {name} INT <= YES JOB 0 0" for name in _coprocessors(cluster)]
    return "\n".join(rows) + "\n"


def host_rows(cluster: Cluster) -> dict[str, str]:
    """Return what each host has in all: no more than the largest node.

    Grid Engine would spread one job over a host's queues, which are nodes here. GPUs
    stand here too: in a queue, a resource of the whole job makes this version forget to
    count the others by the slot.
    """
    nodes = cluster.nodes
    values: dict[str, object] = {
        "slots": max(map(_slots, nodes)),
        "h_vmem": f"{max(map(_memory_mib, nodes))}M",
        "disk": f"{max(map(_disk_gib, nodes)):g}G",
        **_coprocessors(cluster),
    }
    return {"complex_values": ",".join(f"{name}={value}" for name, value in values.items())}


def queues(cluster: Cluster, hosts: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield a queue for each kind of node, as large on each host as one such node."""
    for partition, kind in _kinds(cluster):
        values = [f"h_vmem={_memory_mib(kind)}M", f"disk={_disk_gib(kind):g}G"]
        values += [f"node_type={kind.constraint}"] if kind.constraint else []
        assert partition.max_time is not None
        yield {
            "qname": f"{kind.name}.q",
            "hostlist": " ".join(hosts),
            "load_thresholds": "NONE",
            "qtype": "BATCH",
            "pe_list": "smp",
            "rerun": "TRUE",
            "slots": str(_slots(kind)),
            "shell_start_mode": "unix_behavior",
            "complex_values": ",".join(values),
            "h_rt": f"{parse_duration(partition.max_time):.0f}",
        }


def replaced(text: str, rows: Mapping[str, str]) -> str:
    """Give some of the rows `name value` of one of Grid Engine's files another value."""
    lines = [line.split(maxsplit=1) for line in text.replace("\\\n", "").splitlines()]
    kept = [words for words in lines if words and not words[0].startswith("#")]
    unknown = set(rows) - {words[0] for words in kept}
    assert not unknown, f"no such rows: {unknown}"
    return "".join(f"{words[0]} {rows.get(words[0], ' '.join(words[1:]))}\n" for words in kept)


def _kinds(cluster: Cluster) -> Iterator[tuple[Partition, NodeKind]]:
    for partition in cluster.partitions:
        for kind in cluster.nodes:
            if kind.name in partition.kinds:
                yield partition, kind


def _coprocessors(cluster: Cluster) -> dict[str, int]:
    gpus = [kind.gpu for kind in cluster.nodes if kind.gpu is not None]
    return {f"coproc_{gpu.type}": gpu.count or 0 for gpu in gpus}


def _slots(kind: NodeKind) -> int:
    return kind.usable_cores or kind.cores


def _disk_gib(kind: NodeKind) -> float:
    # What is not documented is never the reason for a refusal.
    return 100_000 if kind.local_disk_gib is None else kind.local_disk_gib
