"""Read lists of nodes: Slurm's `r01g[01-04,7]` and Grid Engine's host file.

`teho launch` reads them on every rank, so this file only imports small modules.
"""

from __future__ import annotations

import os

from teho.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "expand_counts",
    "expand_hosts",
    "is_number",
    "job_hosts",
    "parse_pe_hostfile",
    "qrsh_host",
]

_MOST = 100_000
"""Maximum number of names or nodes. A longer list is a typing error."""
_MOST_DIGITS = 15


def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the names in a Slurm host list such as `rack[1-2]n[01-03,9],login1`, in its order.

    Brackets contain numbers and ranges. Several pairs of brackets in a name multiply. Leading
    zeros are kept.

    Raises:
        InputError: it cannot be read.
    """
    names: list[str] = []
    for part in _split(text):
        found = [""]
        for literal, ranges in _pieces(part, text):
            numbers = _numbers(ranges, text) if ranges is not None else [""]
            if len(names) + len(found) * len(numbers) > _MOST:
                raise _unreadable(text, f"the list has more than {_MOST} names")
            found = [f"{name}{literal}{number}" for name in found for number in numbers]
        names += found
    return tuple(names)


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth not in {0, 1}:
            raise _unreadable(text, "the brackets in the list do not match")
        if sign == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    if depth:
        raise _unreadable(text, "the brackets in the list do not match")
    parts.append(text[begin:])
    if not all(parts):
        raise _unreadable(text, "a name in the list is empty")
    return parts


def _pieces(part: str, whole: str) -> list[tuple[str, str | None]]:
    """Return the text before each pair of brackets, and the text inside; None: no brackets."""
    pieces: list[tuple[str, str | None]] = []
    rest = part
    while rest:
        literal, bracket, rest = rest.partition("[")
        if any(sign.isspace() for sign in literal):
            raise _unreadable(whole, "a name in the list has a space")
        if not bracket:
            pieces.append((literal, None))
            break
        ranges, _, rest = rest.partition("]")
        pieces.append((literal, ranges))
    return pieces


def _numbers(ranges: str, whole: str) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        first, dash, last = item.partition("-")
        last = last if dash else first
        if not is_number(first) or not is_number(last) or int(last) < int(first):
            raise _unreadable(whole, f"{item[:40]!r} is not a number or a range such as 01-04")
        if len(numbers) + int(last) - int(first) >= _MOST:
            raise _unreadable(whole, f"the list has more than {_MOST} names")
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def expand_counts(text: str) -> tuple[int, ...]:
    """Return the numbers in a list such as `4(x2),3`: 4, 4, 3.

    Raises:
        InputError: it cannot be read.
    """
    counts: list[int] = []
    for item in text.split(","):
        number, repeated, times = item.partition("(x")
        times = times[:-1] if repeated and times.endswith(")") else ("" if repeated else "1")
        if not is_number(number) or not is_number(times) or len(counts) + int(times) > _MOST:
            raise InputError(
                f"the list of counts {text[:60]!r} cannot be read", "a list such as 4(x2),3"
            )
        counts += [int(number)] * int(times)
    return tuple(counts)


def parse_pe_hostfile(text: str) -> tuple[dict[str, int], list[str]]:
    """Return `(slots by host, lines that cannot be read)` of Grid Engine's PE_HOSTFILE.

    Its lines are host, slots, queue, processors (sge_pe(5)). A host has a line for each queue.
    """
    slots: dict[str, int] = {}
    strange: list[str] = []
    for words in filter(None, map(str.split, text.splitlines())):
        if len(words) > 1 and is_number(words[1]):
            slots[words[0]] = slots.get(words[0], 0) + int(words[1])
        else:
            strange.append(" ".join(words)[:60])
    return slots, strange


def job_hosts(environment: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return `(the job's nodes, its slots on each)` from Slurm's or Grid Engine's variables.

    Raises:
        InputError: the list or Grid Engine's file cannot be read.
    """
    get = environment.get
    if listed := get("SLURM_JOB_NODELIST") or get("SLURM_NODELIST"):
        hosts = expand_hosts(listed)
        slots = expand_counts(get("SLURM_TASKS_PER_NODE") or "0")
        return hosts, slots if len(slots) == len(hosts) else ()
    name = get("PE_HOSTFILE")
    if not name:
        return (), ()
    try:
        with open(name, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - loads late
            found, strange = parse_pe_hostfile(file.read(1 << 20))
    except OSError as error:
        if get("MASTER_ADDR") or qrsh_host(environment):
            # The file may only exist on the job's first node.
            return (), ()
        raise InputError(
            f"PE_HOSTFILE {name}: {error.strerror}",
            "a file that can be read, or MASTER_ADDR, the host of rank 0",
            "export MASTER_ADDR before the launch (`mpirun -x MASTER_ADDR …`)",
        ) from None
    if strange:
        raise InputError(
            f"PE_HOSTFILE {name} has a line that is not valid: {strange[0]!r}",
            "host, slots, queue, processors",
        )
    return tuple(found), tuple(found.values())


def qrsh_host(environment: Mapping[str, str]) -> str:
    """Return the job's first node from QRSH_PORT, which Grid Engine sets on the other nodes.

    `qrsh -inherit` starts the launcher's daemons there, and PE_HOSTFILE names a file of the first
    node. Empty: this is the first node, or the first node is not known.
    """
    get = environment.get
    host, name = get("QRSH_PORT", "").rpartition(":")[0], get("PE_HOSTFILE")
    # If `qrsh` started the job, the first node has the variable too, with the user's host.
    if not host or not name or os.access(name, os.R_OK):
        return ""
    # In a large job, Open MPI's daemons start each other, so this may be the host of a daemon.
    daemon = get("OMPI_MCA_orte_parent_uri", "").partition(";")[0]
    return "" if daemon and not daemon.endswith(".0") else host


def is_number(text: str) -> bool:
    """Return whether a text is a whole number from 0, and short enough for a count or an id."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _unreadable(text: str, why: str) -> InputError:
    return InputError(f"a host list {text[:60]!r}: {why}", "a list such as r01g[01-04],r02g07")
