"""A recorder on one of the nodes of a job that is recorded as a whole.

The scheduler starts it, beside whatever the job runs there; see `teho.observe.remote_recorders`.
It has no program of its own: it counts the job's processes on this node.
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

_LOOKS = 6
_LOOK_S = 0.5
"""A shared file system shows a new directory to other nodes within that many looks."""


def record_node(control: int, back: int) -> None:
    """Await orders, and record this node until told to end, or until the job has left it.

    Args:
        control: where the orders come from.
        back: where it is told how it goes.
    """
    watch = RecorderEnd()
    reader = LineReader(control)
    orders = _await_orders(reader)
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
    recorder = Recorder(plan, reader, back, watch=watch)
    recorder.run()
    send(back, node=name, sealed=recorder.sealed)


def _await_orders(reader: LineReader) -> Orders | None:
    """Return what to do; None if nobody says, because it is over already."""
    while not reader.closed:
        wait_for([reader.descriptor])
        for message in reader.messages():
            if "orders" in message:
                return msgspec.convert(message["orders"], Orders)
    return None


def _correct_environment(orders: Orders) -> None:
    """Let the environment say of the job what it says in the job's script."""
    # The step that we are is none of the program's.
    for variable in ("SLURM_STEP_ID", "SLURM_STEPID"):
        os.environ.pop(variable, None)
    cluster = os.environ.get("SLURM_WORKING_CLUSTER", "").partition(":")[0]
    if cluster:
        os.environ.setdefault("SLURM_CLUSTER_NAME", cluster)
    os.environ.update(orders.environment)


def _directory(orders: Orders) -> tuple[Path, bool]:
    """Return the run's directory, or where this node does not see it, one of its own; and which.

    Raises:
        OSError: none can be made.
    """
    for _ in range(_LOOKS):
        if orders.plan.run.is_dir():
            return orders.plan.run, True
        time.sleep(_LOOK_S)
    directory = create_step_directory(Path(orders.home), orders.description.id)
    write_missing_description(directory, msgspec.json.encode(orders.description))
    return directory.absolute(), False
