"""Read the environment of a rank of the check."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["CheckTask", "TaskError", "name_ranks", "read_check_task", "spans"]

_NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_PORT")
_PORTS = range(1, 65536)


class TaskError(Exception):
    """The environment does not describe a rank."""


@dataclass(frozen=True)
class CheckTask:
    """One rank of the checked step."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node_rank: int
    address: str
    """MASTER_ADDR: the host of rank 0."""
    port: int
    hosts: tuple[str, ...] = ()
    """Names of the nodes of the step, by node rank; empty if unknown."""
    step: str = ""
    """Unique name of the step; empty if unknown."""
    host: str = field(default_factory=lambda: socket.gethostname().partition(".")[0])
    """Host name of this machine."""

    @property
    def node(self) -> str:
        """Name of the node in the step, or else the host name."""
        return self.hosts[self.node_rank] if self.node_rank < len(self.hosts) else self.host

    @property
    def name(self) -> str:
        """The rank and its node, such as `rank 5 on r01g02`."""
        return f"rank {self.rank} on {self.node}"

    @property
    def place(self) -> str:
        """Address of the rendezvous, such as `r01g01:14242`."""
        return f"{self.address}:{self.port}"


def read_check_task(environ: Mapping[str, str]) -> CheckTask:
    """Return the rank that the environment describes.

    Raises:
        TaskError: a variable is missing, is not a number, or contradicts another.
    """
    numbers = {name: _number(environ, name) for name in _NUMBERS}
    address = environ.get("MASTER_ADDR", "")
    if not address:
        raise TaskError(_missing("MASTER_ADDR"))
    rank, size = numbers["RANK"], numbers["WORLD_SIZE"]
    if rank >= size:
        raise TaskError(f"RANK is {rank}, but WORLD_SIZE is {size}: ranks are counted from 0")
    if numbers["MASTER_PORT"] not in _PORTS:
        raise TaskError(f"MASTER_PORT is {numbers['MASTER_PORT']}; expected 1 to {_PORTS[-1]}")
    return CheckTask(
        rank=rank,
        world_size=size,
        local_rank=numbers["LOCAL_RANK"],
        local_world_size=numbers["LOCAL_WORLD_SIZE"],
        node_rank=numbers["NODE_RANK"],
        address=address,
        port=numbers["MASTER_PORT"],
        hosts=tuple(filter(None, environ.get("TEHO_HOSTS", "").split(","))),
        step=environ.get("TEHO_STEP", ""),
    )


def name_ranks(ranks: Iterable[int]) -> str:
    """Write ranks for a sentence: `rank 5`, `ranks 4–7`."""
    listed = list(ranks)
    return f"rank {listed[0]}" if len(listed) == 1 else f"ranks {spans(listed)}"


def spans(numbers: Iterable[int]) -> str:
    """Write numbers as ranges: `0–3, 5`."""
    ends: list[list[int]] = []
    for number in sorted(numbers):
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in ends)


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not text:
        raise TaskError(_missing(name))
    # int() would accept " 1_000" and "-1".
    if not (text.isascii() and text.isdigit()):
        raise TaskError(f"{name} is {text!r}; expected a whole number")
    return int(text)


def _missing(name: str) -> str:
    return f"{name} is not set. Next: start the check as `srun teho launch --check`"
