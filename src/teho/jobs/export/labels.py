"""What identifies a run and its devices in an export."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.run import Node, Run

__all__ = ["info_labels", "labels_of", "memory_labels", "run_labels"]


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


def info_labels(run: Run, owner: str) -> dict[str, str]:
    """Return the labels of the series with the run and the job of a node or GPU.

    The job is `jobid`: Prometheus itself sets a label `job` if it asks `teho serve-metrics`.
    """
    own = {name: text for name, text in run_labels(run, owner).items() if text}
    job = own.pop("job", "")
    return {**own, **({"jobid": job} if job else {})}


def memory_labels(node: Node, id_: str) -> tuple[dict[str, str], int] | None:
    """Return the labels for the size of a GPU's memory, with the model, and the size in bytes."""
    for device in node.devices:
        if device.id == id_ and device.memory_bytes:
            labels = next(own for name, own in labels_of(node, "gpu") if name == id_)
            return {
                **labels,
                **({"model": device.name} if device.name else {}),
            }, device.memory_bytes
    return None


def labels_of(node: Node, kind: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the id and the labels of a node, or of its GPUs. They do not change with the job."""
    if kind == "node":
        yield "node", {"node": node.name}
        return
    for device in node.devices:
        labels = {"node": node.name, "gpu": str(device.index), "uuid": device.id}
        yield device.id, {**labels, **({"vendor": device.vendor} if device.vendor else {})}
