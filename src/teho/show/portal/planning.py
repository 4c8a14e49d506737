"""The form of `teho plan` as a page: what to request, on which cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from teho.clusters.catalogue import load_catalogue
from teho.errors import InputError, UnitError
from teho.model.request import Request
from teho.planner.answer import answer
from teho.show.build.plan import plan_document
from teho.show.html.page import PageParts, page_parts
from teho.units import GIB, MIB, parse_bytes, parse_duration

__all__ = ["FIELDS", "Planned", "plan_of"]

FIELDS = (
    ("gpus", "GPUs", "1"),
    ("gpu-memory", "Memory of each GPU", "30GiB"),
    ("cpus", "Cores", ""),
    ("mem", "Memory per node", "64GiB"),
    ("time", "Time", "12h"),
)
"""Options of `teho plan` in the form: name, label, and an example."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a form."""

    given: dict[str, str]
    """Field -> its text; only fields with a text."""
    cluster: str
    """Name of the only cluster to plan for; empty: all clusters."""
    clusters: tuple[str, ...]
    """Names of all clusters that take jobs."""
    parts: PageParts | None
    """None: the form is still empty."""


def plan_of(parameters: Mapping[str, str]) -> Planned:
    """Return the plan for the fields of the form. No scheduler is asked.

    Raises:
        InputError: a field is not valid.
    """
    given = {name: text for name, _, _ in FIELDS if (text := parameters.get(name, "").strip()[:40])}
    known = load_catalogue()
    cluster = parameters.get("cluster", "").strip()
    if cluster and cluster not in known:
        raise InputError(f"the catalogue has no cluster {cluster[:40]!r}", ", ".join(known))
    active = tuple(name for name, one in known.items() if one.status != "retired")
    parts = None
    if given:
        chosen = {cluster: known[cluster]} if cluster else known
        request = _request(given)
        typed = [word for name, text in given.items() for word in (f"--{name}", text)]
        if cluster:
            typed += ["--cluster", cluster]
        found = answer(request, chosen.values())
        parts = page_parts(plan_document(request, found, chosen, typed))
    return Planned(given=given, cluster=cluster, clusters=active, parts=parts)


def _request(given: Mapping[str, str]) -> Request:
    gpus = _number(given, "gpus")
    gpu_memory = _bytes(given, "gpu-memory")
    memory = _bytes(given, "mem")
    time = given.get("time", "")
    if time.isdecimal():
        raise UnitError(f"time: {time!r}", f"a time with its unit, such as {time}min")
    return Request(
        gpus=1 if gpus is None else gpus,
        gpu_memory_gib=None if gpu_memory is None else gpu_memory / GIB,
        cpus=_number(given, "cpus"),
        memory_mib=None if memory is None else math.ceil(memory / MIB),
        time_s=parse_duration(time, "time") if time else None,
    )


def _bytes(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    amount = parse_bytes(text, name)
    if amount < MIB:
        # A number without a unit means bytes to Teho and MB to Slurm.
        raise UnitError(f"{name}: {text!r} is {amount} bytes", "a size such as 512MiB or 64GiB")
    return amount


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise InputError(f"{name}: {text!r}", "a whole number such as 4")
    return int(text) if text else None
