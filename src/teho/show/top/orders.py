"""The orders of nodes and of processes on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from teho.explain.now import fullest_percent, known, total_power_w, worst_first_key
from teho.model.live import NodeNow

__all__ = ["NODE_ORDERS", "PROCESS_ORDERS", "Order"]

T = TypeVar("T")


class Order(NamedTuple):
    """An order of rows."""

    title: str
    """As the line with the keys names it."""
    key: Callable[[Any], Any]
    metric: str = ""
    """Metric of the column by which the rows are sorted."""

    def sorted(self, rows: Iterable[T]) -> list[T]:
        """Return the rows in this order."""
        return sorted(rows, key=self.key)


def _down(value: float | None) -> float:
    """Return a key that sorts large values first, and missing values last."""
    return 1.0 if value is None else -value


def _of_node(value: Callable[[NodeNow], float | None]) -> Callable[[NodeNow], Any]:
    """Return a key for nodes; the values of a silent node may have changed, so it is last."""
    return lambda node: (_down(None if node.is_silent else value(node)), node.node.name)


def _of_metric(metric: str) -> Callable[[NodeNow], Any]:
    return _of_node(lambda node: known(node.values, metric))


NODE_ORDERS = {
    "worst": Order("worst first", worst_first_key, "gpu_busy_percent"),
    "name": Order("name", lambda node: node.node.name),
    "gpu_memory": Order("GPU memory", _of_node(fullest_percent), "gpu_memory_used_bytes"),
    "power": Order("power", _of_node(total_power_w), "gpu_power_w"),
    "cores": Order("cores", _of_metric("cpu_busy_percent"), "cpu_busy_percent"),
    "memory": Order("memory", _of_metric("job_memory_bytes"), "job_memory_bytes"),
}
"""Orders of the nodes. The key `s` selects the next one."""
PROCESS_ORDERS = {
    "cpu": Order("CPU", lambda one: (_down(one.cpu_percent), one.pid)),
    "memory": Order("memory", lambda one: (_down(one.resident_bytes), one.pid)),
    "gpu_memory": Order("GPU memory", lambda one: (_down(one.gpu_total_bytes), one.pid)),
    "rank": Order("rank", lambda one: (one.rank is None, one.rank or 0, one.pid)),
}
"""Orders of the processes of a node."""
