"""Some core near each GPU is the program's."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import joined, numbered
from teho.model.finding import Severity

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "binding-numa"
ABOUT = "the cores' NUMA nodes, against those of the GPUs"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Look for a GPU on whose NUMA node the program has no core."""
    if not snapshot.gpus:
        return moot("no GPU is here")
    if not snapshot.cores_of_numa:
        return unknown("the kernel does not report which core is on which NUMA node")
    if len(snapshot.cores_of_numa) == 1:
        return moot("the node has one NUMA node")
    unknown_of = [device.name for device in snapshot.gpus if device.numa_node is None]
    if unknown_of:
        return unknown(f"the kernel does not report the NUMA node of {unknown_of[0]}")
    far = [
        device
        for device in snapshot.gpus
        if not snapshot.cores & snapshot.cores_of_numa.get(device.numa_node or 0, frozenset())
    ]
    own = [number for number, cores in snapshot.cores_of_numa.items() if cores & snapshot.cores]
    if not far:
        return fine(f"cores of NUMA {joined([str(number) for number in own])}, where the GPUs are")
    lies_on = sorted({device.numa_node or 0 for device in far})
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"GPU {numbered(device.index for device in far)} "
            f"lie{'s' if len(far) == 1 else ''} on NUMA node {numbered(lies_on)}, and all cores of "
            "a program started here lie elsewhere: every copy goes between the sockets.",
            "Let `teho launch` bind each task near its GPU: `srun teho launch -- python train.py`; "
            "or ask Slurm for it: `--gres-flags=enforce-binding`.",
            ("cores", numbered(snapshot.cores), ""),
            ("their NUMA nodes", numbered(own), ""),
            ("NUMA nodes of these GPUs", numbered(lies_on), ""),
        )
    ]
