"""The form of `teho plan` as a page: what to request, on which cluster, and the batch script."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from teho.clusters.catalogue import load_catalogue
from teho.errors import InputError
from teho.explain.wording import capital
from teho.launchers.registry import launchers
from teho.model.cluster import Cluster
from teho.model.plan import Answer
from teho.model.request import Request
from teho.planner.answer import answer
from teho.planner.read_request import read_request
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.write import write_script
from teho.show.build.plan import plan_document
from teho.show.html.page import PageParts, page_parts

__all__ = ["FIELDS", "FLAGS", "MORE_FIELDS", "Planned", "plan_of"]

FIELDS = (
    ("gpus", "GPUs", "1"),
    ("gpu-memory", "Memory of each GPU", "30GiB"),
    ("cpus", "Cores", ""),
    ("mem", "Memory per node", "64GiB"),
    ("time", "Time", "12h"),
)
"""Options of `teho plan` that the form always shows: name, label, and an example."""
MORE_FIELDS = (
    ("gpu-type", "Type of GPU", "a100"),
    ("nodes", "Nodes", "2"),
    ("cpus-per-gpu", "Cores for each GPU", "8"),
    ("mem-per-gpu", "Memory for each GPU", "60GiB"),
    ("mem-per-cpu", "Memory for each core", "4GiB"),
    ("local-disk", "Local disk per node", "200GiB"),
    ("partition", "Partition", "gpu"),
    ("account", "Project", "project_1"),
    ("qos", "Quality of service", "debug"),
    ("reservation", "Reservation", ""),
    ("licenses", "Licenses", "matlab:2"),
    ("name", "Name of the job", ""),
)
"""Options that the form shows on request."""
FLAGS = (
    ("exclusive", "Whole nodes, without other jobs"),
    ("even-if-retired", "Also retired clusters"),
    ("record", "Record the program with Teho"),
)
"""Options without a value. `record` changes only the script."""
_NUMBERS = {"gpus": 0, "nodes": 1, "cpus-per-gpu": 1, "cpus": 1}
"""Options with a whole number, and the smallest one."""
_LONGEST = 40
_LONGEST_COMMAND = 2000
_YES = "yes"


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a form."""

    given: dict[str, str]
    """Field -> its text; only fields with a text."""
    cluster: str
    """Name of the only cluster to plan for; empty: all clusters."""
    clusters: tuple[str, ...]
    """Names of all clusters that take jobs."""
    launchers: tuple[str, ...]
    parts: PageParts | None
    """None: the form is still empty."""
    script: tuple[str, ...] = ()
    """The lines of the batch script of the first option; empty: there is none."""
    script_for: str = ""
    """Title of the cluster that the script is for."""
    remarks: tuple[str, ...] = ()
    """Sentences about the script."""
    is_several: bool = False
    """Whether there is no script only because options on several clusters fit."""

    @property
    def has_more(self) -> bool:
        """Whether a field that the form shows on request has a text."""
        shown = {name for name, _, _ in FIELDS} | {"command"}
        return bool(self.given.keys() - shown)


def plan_of(parameters: Mapping[str, str]) -> Planned:
    """Return the plan for the fields of the form. No scheduler is asked.

    Raises:
        InputError: a field is not valid.
    """
    given = _given(parameters)
    known = load_catalogue()
    cluster = parameters.get("cluster", "").strip()
    if cluster and cluster not in known:
        raise InputError(f"the catalogue has no cluster {cluster[:40]!r}", ", ".join(known))
    empty = Planned(
        given=given,
        cluster=cluster,
        clusters=tuple(name for name, one in known.items() if one.status != "retired"),
        launchers=tuple(launchers()),
        parts=None,
    )
    if not given:
        return empty
    chosen = {cluster: known[cluster]} if cluster else known
    request = _request(given)
    found = answer(request, chosen.values(), even_if_retired="even-if-retired" in given)
    parts = page_parts(plan_document(request, found, chosen, _typed(given, request, cluster)))
    return _with_script(msgspec.structs.replace(empty, parts=parts), request, found, chosen)


def _given(parameters: Mapping[str, str]) -> dict[str, str]:
    names = [name for name, _, _ in (*FIELDS, *MORE_FIELDS)]
    given = {name: text for name in names if (text := parameters.get(name, "").strip()[:_LONGEST])}
    launcher = parameters.get("launcher", "").strip()[:_LONGEST]
    if launcher and launcher != "plain":
        given["launcher"] = launcher
    given |= {name: _YES for name, _ in FLAGS if parameters.get(name)}
    if command := parameters.get("command", "").strip()[:_LONGEST_COMMAND]:
        given["command"] = command
    return given


def _request(given: Mapping[str, str]) -> Request:
    values: dict[str, Any] = {
        name.replace("-", "_"): given.get(name) for name, _, _ in (*FIELDS, *MORE_FIELDS)
    }
    for name, least in _NUMBERS.items():
        values[name.replace("-", "_")] = _number(given, name, least)
    if values["gpus"] is None:
        values["gpus"] = 1
    launcher = given.get("launcher", "plain")
    if launcher not in launchers():
        raise InputError(f"launcher: {launcher!r}", " or ".join(launchers()))
    values |= {
        "launcher": launcher,
        "exclusive": "exclusive" in given,
        "name": given.get("name", ""),
    }
    try:
        argv = tuple(shlex.split(given.get("command", "")))
    except ValueError as error:
        raise InputError(
            f"command: {error}", "a command as in a shell, with each quotation mark closed"
        ) from None
    return read_request(values, argv)


def _number(given: Mapping[str, str], name: str, least: int) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 7 and int(text) >= least):
        raise InputError(f"{name}: {text!r}", f"a whole number from {least}")
    return int(text)


def _typed(given: Mapping[str, str], request: Request, cluster: str) -> list[str]:
    """Return the words of the same plan on the command line, after `teho plan`."""
    flags = {name for name, _ in FLAGS}
    typed = []
    for name, text in given.items():
        if name != "command":
            typed += [f"--{name}"] if name in flags else [f"--{name}", text]
    if cluster:
        typed += ["--cluster", cluster]
    return [*typed, *(("--", *request.command) if request.command else ())]


def _with_script(
    planned: Planned, request: Request, found: Answer, chosen: Mapping[str, Cluster]
) -> Planned:
    """Add the batch script of the first option, if the form has a command."""
    if not request.command or not found.options:
        return planned
    option = found.options[0]
    if any(one.cluster != option.cluster for one in found.options):
        return msgspec.structs.replace(planned, is_several=True)
    cluster = chosen[option.cluster]
    script = write_script(option, cluster, ScriptOptions(record="record" in planned.given))
    return msgspec.structs.replace(
        planned,
        script=tuple(script.text.splitlines()),
        script_for=cluster.title,
        remarks=tuple(f"{capital(remark)}." for remark in script.remarks),
    )
