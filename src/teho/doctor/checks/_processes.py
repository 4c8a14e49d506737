"""How many cores a process of this job may count as its own."""

from __future__ import annotations

from teho.doctor.scene import Scene
from teho.model.cluster import Share

__all__ = ["cores_of_process", "promised"]


def promised(scene: Scene) -> int | None:
    """Return the cores that the job was promised on this node; None where nobody tells.

    Where cores come with the GPUs, as on ARC4, the slots of a request are not the job's cores.
    """
    asked = scene.allocation.cores_asked
    comes_by_itself = any("cores" in share.automatic for share in _shares(scene))
    if scene.allocation.scheduler == "grid_engine" and comes_by_itself and scene.expects_gpus:
        return None
    return asked


def cores_of_process(scene: Scene) -> int:
    """Return the cores that each of the tasks here has: its affinity, and no more than promised."""
    bound = len(scene.cores)
    asked = promised(scene)
    if asked is None:
        return bound
    return max(1, min(bound, asked // scene.local_size))


def _shares(scene: Scene) -> tuple[Share, ...]:
    return scene.cluster.shares if scene.cluster else ()
