"""What Slurm says of nodes, partitions and QOS, as rows: from its text or from its JSON.

A row maps the keys of Slurm's text (`scontrol -o show node`) to text, whatever form
the answer had, so that one reader understands all releases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from teho.units import format_clock

__all__ = ["QOS_COLUMNS", "Row", "columns", "json_rows", "settings", "text_rows"]

Row = dict[str, str]

_KEY = re.compile(r"([A-Z][A-Za-z_/]*)=(.*)", re.DOTALL)
_NODE = {
    "NodeName": "name",
    "Arch": "architecture",
    "CPUTot": "cpus",
    "CPUEfctv": "effective_cpus",
    "CoresPerSocket": "cores",
    "Sockets": "sockets",
    "ThreadsPerCore": "threads",
    "RealMemory": "real_memory",
    "MemSpecLimit": "specialized_memory",
    "CPUSpecList": "specialized_cpus",
    "TmpDisk": "temporary_disk",
    "Gres": "gres",
    "AvailableFeatures": "features",
    "Partitions": "partitions",
    "Version": "version",
}
_PARTITION = {
    "PartitionName": "name",
    "State": "partition/state",
    "AllowAccounts": "accounts/allowed",
    "AllowGroups": "groups/allowed",
    "QoS": "qos/assigned",
    "MinNodes": "minimums/nodes",
    "MaxNodes": "maximums/nodes",
    "MaxTime": "maximums/time",
    "MaxCPUsPerNode": "maximums/cpus_per_node",
    "MaxMemPerNode": "maximums/partition_memory_per_node",
    "JobDefaults": "defaults/job",
    "TRESBillingWeights": "tres/billing_weights",
    "TotalNodes": "nodes/total",
    "Exclusive": "partition/exclusive",
    "Flags": "flags",
}
_QOS = {
    "Name": "name",
    "MaxTRES": "limits/max/tres/per/job",
    "MaxTRESPerNode": "limits/max/tres/per/node",
    "MinTRES": "limits/min/tres/per/job",
    "MaxWall": "limits/max/wall_clock/per/job",
    "MaxJobsPU": "limits/max/jobs/active_jobs/per/user",
    "MaxSubmitPU": "limits/max/jobs/per/user",
}
QOS_COLUMNS = tuple(_QOS)
"""Columns to ask `sacctmgr show qos format=` for, in the order of `columns`."""
_TABLES = {"nodes": _NODE, "partitions": _PARTITION, "qos": _QOS}
_IN_MINUTES = ("MaxTime", "MaxWall")
_FLAGS = {"HIDDEN": "Hidden", "ROOT_ONLY": "RootOnly", "DEFAULT": "Default"}


def text_rows(text: str) -> list[Row]:
    """Read the lines of `scontrol -o show`: one row a line.

    A word without a key belongs to the value before it, such as the system's name. Of
    a key that comes twice the first counts: free text (a comment) stands at the end.
    """
    return [_text_row(line) for line in text.splitlines() if "=" in line]


def _text_row(line: str) -> Row:
    row: Row = {}
    key = ""
    for word in line.split():
        match = _KEY.fullmatch(word)
        if match is None:
            row[key] = f"{row.get(key, '')} {word}"
            continue
        key = match[1] if match[1] not in row else ""
        row[key] = match[2]
    row.pop("", None)
    return {key: "" if value == "(null)" else value for key, value in row.items()}


def settings(text: str) -> Row:
    """Read `scontrol show config`: lines of `Key = value`."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): "" if value.strip() == "(null)" else value.strip()
            for key, _, value in pairs}  # fmt: skip


def columns(text: str, names: Sequence[str]) -> list[Row]:
    """Read what `sacctmgr -nP` prints: columns between bars, in the order asked for."""
    lines = (line.split("|") for line in text.splitlines() if line)
    return [dict(zip(names, cells, strict=False)) for cells in lines]


def json_rows(text: str, what: Literal["nodes", "partitions", "qos"]) -> list[Row] | None:
    """Read what `--json` prints; None where it is not JSON or leaves a field out.

    The JSON of partitions has their flags (hidden, for root alone) since Slurm 26.05, that of
    nodes has reserved cores since 23.02 (slurm, src/plugins/data_parser); the text of every
    release has both.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    found = answer.get(what, answer.get(what.upper()))
    if not isinstance(found, list):
        return None
    rows = [_json_row(item, _TABLES[what]) for item in found]
    whole = [row for row in rows if row is not None]
    return whole if len(whole) == len(rows) else None


def _json_row(item: Any, table: dict[str, str]) -> Row | None:
    row: Row = {}
    for key, path in table.items():
        value = item
        for step in path.split("/"):
            if not isinstance(value, dict) or step not in value:
                return None
            value = value[step]
        row[key] = _written(value)
        if key in _IN_MINUTES and row[key].isdecimal():
            row[key] = format_clock(int(row[key]) * 60)
    for flag in filter(None, row.pop("Flags", "").split(",")):
        if flag in _FLAGS:
            row[_FLAGS[flag]] = "YES"
    return row


def _written(value: Any) -> str:
    """Write a value of the JSON as the text form does."""
    if isinstance(value, list):
        return ",".join(_written(item) for item in value)
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    if "type" in value:  # a TRES
        name = f"/{value['name']}" if value.get("name") else ""
        return f"{value['type']}{name}={value.get('count', '')}"
    if value.get("infinite"):
        return "UNLIMITED"
    return str(value["number"]) if value.get("set") and "number" in value else ""
