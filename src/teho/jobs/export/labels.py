"""What identifies a run and its devices in an export."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.device import Device
from teho.model.run import Node, Run

__all__ = ["all_labels", "run_labels"]


def run_labels(run: Run, owner: str) -> dict[str, str]:
    """Return what identifies a run and its job; unknown parts are empty."""
    first = next((node.allocation for node in run.nodes if node.allocation.job_id), None)
    return {
        "run": run.id,
        "name": run.name,
        "user": owner,
        "job": (first.job_id or "") if first else "",
        "cluster": (first.cluster or "") if first else "",
        "partition": (first.partition or "") if first else "",
        "account": (first.account or "") if first else "",
    }


def all_labels(run: Run) -> Iterator[tuple[Node, Device | None, dict[str, str]]]:
    """Yield every node and GPU of a run with its labels, none of which changes with the job."""
    for node in run.nodes:
        yield node, None, {"node": node.name}
        for device in node.devices:
            labels = {"node": node.name, "gpu": str(device.index), "uuid": device.id}
            if device.vendor:
                labels["vendor"] = device.vendor
            yield node, device, labels
