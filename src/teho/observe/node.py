"""A remote recorder: it records one of the nodes of a whole job.

The scheduler starts it in addition to the steps of the job; see `teho.observe.remote_recorders`.
It counts all processes of the job on this node.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from teho.observe.plan import Orders
from teho.observe.recorder import Recorder
from teho.observe.recorder_end import RecorderEnd
from teho.process.json_lines import LineReader, send, wait_for
from teho.store.layout import safe_name
from teho.store.steps import create_step_directory, write_missing_description

__all__ = ["record_node"]

_TRIES = 6
_PAUSE_S = 0.5
"""A shared file system shows a new directory to other nodes within this time."""


def record_node(control: int, back: int) -> None:
    """Wait for orders, and record this node until the supervisor or the job has ended.

    Args:
        control: descriptor from which the orders are read.
        back: descriptor for the answers.
    """
    recorder_end = RecorderEnd()
    reader = LineReader(control)
    orders = _read_orders(reader)
    if orders is None:
        return
    name = safe_name(os.environ.get("SLURMD_NODENAME") or os.uname().nodename) or "node"
    try:
        directory, is_shared = _directory(orders)
    except OSError as error:
        send(back, node=name, trouble=f"{error.filename}: {error.strerror}", elapsed_s=0.0)
        return
    send(back, node=name, place=str(directory), shared=is_shared)
    _correct_environment(orders)
    step = orders.description.step
    plan = msgspec.structs.replace(
        orders.plan,
        directory=str(directory),
        node=name,
        started_s=time.monotonic(),
        started_at=datetime.now(timezone.utc),
        began_here=step is not None and step.began_on == name,
    )
    recorder = Recorder(plan, reader, back, recorder_end=recorder_end)
    recorder.run()
    send(back, node=name, sealed=recorder.sealed)


def _read_orders(reader: LineReader) -> Orders | None:
    """Return the orders; None if the supervisor has ended already."""
    while not reader.closed:
        wait_for([reader.descriptor])
        for message in reader.messages():
            if "orders" in message:
                return msgspec.convert(message["orders"], Orders)
    return None


def _correct_environment(orders: Orders) -> None:
    """Set the job's variables as they are in the job's script."""
    # The step of this recorder is not a step of the program.
    for variable in ("SLURM_STEP_ID", "SLURM_STEPID"):
        os.environ.pop(variable, None)
    cluster = os.environ.get("SLURM_WORKING_CLUSTER", "").partition(":")[0]
    if cluster:
        os.environ.setdefault("SLURM_CLUSTER_NAME", cluster)
    os.environ.update(orders.environment)


def _directory(orders: Orders) -> tuple[Path, bool]:
    """Return the run's directory and True; if it is not visible here, a new one and False.

    Raises:
        OSError: the new directory cannot be created.
    """
    for _ in range(_TRIES):
        if orders.plan.run.is_dir():
            return orders.plan.run, True
        time.sleep(_PAUSE_S)
    directory = create_step_directory(Path(orders.home), orders.description.id)
    write_missing_description(directory, msgspec.json.encode(orders.description))
    return directory.absolute(), False
