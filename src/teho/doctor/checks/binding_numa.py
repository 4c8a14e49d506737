"""Does the program have a core near each GPU?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import numbered

__all__ = ["ABOUT", "check"]

ABOUT = "the NUMA nodes of cores and GPUs"


def check(snapshot: Snapshot) -> Outcome:
    """Find GPUs on whose NUMA node the program has no core."""
    if not snapshot.gpus:
        return not_applicable("no GPU here")
    if not snapshot.cores_of_numa:
        return unknown("the kernel does not report which core is on which NUMA node")
    if len(snapshot.cores_of_numa) == 1:
        return not_applicable("the node has only one NUMA node")
    for device in snapshot.gpus:
        if device.numa_node is None:
            return unknown(f"the kernel does not report the NUMA node of {device.name}")
    own = [number for number, cores in snapshot.cores_of_numa.items() if cores & snapshot.cores]
    far = [device for device in snapshot.gpus if device.numa_node not in own]
    if not far:
        return fine(f"the cores of this process are on NUMA node {numbered(own)}, near the GPUs")
    nodes = numbered({device.numa_node or 0 for device in far})
    return warning(
        f"GPU {numbered(device.index for device in far)} {'is' if len(far) == 1 else 'are'} on "
        f"NUMA node {nodes}, but a program started here runs on cores of another NUMA node. "
        "Copies between CPU and GPU are therefore slower.",
        "Bind each task to the cores near its GPU: `srun teho launch -- python train.py`. Slurm "
        "can also do this: `--gres-flags=enforce-binding`.",
        ("cores", numbered(snapshot.cores), ""),
        ("NUMA nodes of these cores", numbered(own), ""),
        ("NUMA nodes of these GPUs", nodes, ""),
    )
