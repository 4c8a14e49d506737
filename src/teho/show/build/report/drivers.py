"""Table of the drivers of a run's GPUs: equal GPUs are one row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

import msgspec

from teho.model.document import Table
from teho.model.missing import Missing
from teho.model.run import Run
from teho.show.build.layout import column, table
from teho.show.live_text import fact_or_why

__all__ = ["driver_table"]

_Kind = tuple[str, Union[str, Missing], Union[str, Missing], Union[str, Missing]]
"""Model, driver, platform and compute mode."""
_NAMED_NODES = 3
"""More nodes of one row are counted, not named."""


def driver_table(run: Run) -> Iterable[Table]:
    """Yield the table of drivers and compute modes, if they were recorded.

    Args:
        run: the description of the recording.
    """
    nodes: dict[_Kind, list[str]] = {}
    for node in run.nodes:
        for device in node.devices:
            facts = (device.driver, device.platform, device.compute_mode)
            if any(fact is not None for fact in facts):
                driver, platform, compute_mode = map(fact_or_why, facts)
                kind = device.name, driver, platform, compute_mode
                nodes.setdefault(kind, []).append(node.name)
    if not nodes:
        return
    made = table(
        "gpu_drivers",
        "Drivers of the GPUs",
        sorted(nodes.items(), key=lambda pair: -len(pair[1])),
        column("model", "Model", lambda pair: pair[0][0]),
        column("driver", "Driver", lambda pair: pair[0][1]),
        column("platform", "Platform", lambda pair: pair[0][2]),
        column("compute_mode", "Compute mode", lambda pair: pair[0][3]),
        column("gpus", "GPUs", lambda pair: len(pair[1])),
        column("nodes", "Nodes", lambda pair: _named(pair[1])),
        note="For NVIDIA, the column Platform shows the newest CUDA version that the driver "
        "supports. For AMD, it shows the version of ROCm on the node.",
    )
    yield msgspec.structs.replace(made, level="why")


def _named(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(names))
    if len(different) > _NAMED_NODES:
        return f"{len(different):,} nodes"
    return ", ".join(different)
