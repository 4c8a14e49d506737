"""A finished run on 64 nodes with 8 GPUs each."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teho.model.run import Node

__all__ = ["run_of_512_gpus"]

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


def run_of_512_gpus(folder: Path) -> Path:
    """Make the run from an example; all nodes have the same rows."""
    run = folder / "run"
    shutil.copytree(EXAMPLE, run)
    first = msgspec.json.decode((run / "nodes/g1.json").read_bytes(), type=Node)
    others = [msgspec.structs.replace(one, id=f"{one.id}-b") for one in first.devices]
    rows = pq.read_table(run / "samples/g1.parquet")
    of_gpus = rows.filter(pc.equal(rows["kind"], "gpu"))
    ids = pc.binary_join_element_wise(of_gpus["device"].cast("string"), "b", "-")
    place = rows.schema.get_field_index("device")
    ids = ids.cast(rows.schema.field(place).type)
    more = of_gpus.set_column(place, rows.schema.field(place), ids)
    pq.write_table(pa.concat_tables([rows, more]), run / "samples/g1.parquet")
    for number in range(1, 65):
        node = msgspec.structs.replace(first, name=f"g{number}", devices=(*first.devices, *others))
        (run / f"nodes/{node.name}.json").write_bytes(msgspec.json.encode(node))
        if number > 1:
            (run / f"samples/{node.name}.parquet").hardlink_to(run / "samples/g1.parquet")
    for overview in run.glob("**/*overview*"):
        overview.unlink()
    return run
