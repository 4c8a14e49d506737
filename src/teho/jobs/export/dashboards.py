"""Makes dashboards for Grafana out of `dashboards.toml`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from teho.config.toml import read_toml, to_noun

__all__ = ["Dashboard", "Panel", "dashboard_json", "dashboards"]

_FILE = Path(__file__).with_name("dashboards.toml")
_COLUMNS, _HEIGHT, _STAT_HEIGHT = 24, 8, 4
_SCHEMA = 39
"""`schemaVersion` of Grafana 11; newer versions read it too."""
_SOURCE = {"type": "prometheus", "uid": "${source}"}


class Panel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One panel; see the head of `dashboards.toml`."""

    title: str
    query: str
    unit: str
    legend: str = ""
    kind: str = "timeseries"
    width: int = 12


class Dashboard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dashboard."""

    title: str
    variables: dict[str, str] = {}
    """Name -> query for its values."""
    panels: tuple[Panel, ...]


class _Table(msgspec.Struct, frozen=True):
    dashboards: dict[str, Dashboard]


@cache
def dashboards() -> dict[str, Dashboard]:
    """Return every dashboard by its name."""
    return to_noun({"dashboards": read_toml(_FILE)}, _Table, _FILE).dashboards


def dashboard_json(name: str) -> str:
    """Return a dashboard as the JSON that Grafana imports."""
    own = dashboards()[name]
    panels, x, y, height = [], 0, 0, 0
    for number, panel in enumerate(own.panels, 1):
        if x + panel.width > _COLUMNS:
            x, y, height = 0, y + height, 0
        tall = _STAT_HEIGHT if panel.kind == "stat" else _HEIGHT
        place = {"x": x, "y": y, "w": panel.width, "h": tall}
        panels.append(_panel(panel, number, place))
        x, height = x + panel.width, max(height, tall)
    noun = {
        "uid": f"teho-{name}",
        "title": own.title,
        "tags": ["teho"],
        "schemaVersion": _SCHEMA,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [_source(), *map(_variable, own.variables.items())]},
        "panels": panels,
    }
    return json.dumps(noun, indent=2) + "\n"


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "datasource": _SOURCE,
                "expr": panel.query,
                "legendFormat": panel.legend,
                "instant": panel.kind == "stat",
                "range": panel.kind != "stat",
            }
        ],
    }


def _source() -> dict[str, Any]:
    """Return the variable for the store: a site names its own."""
    return {"name": "source", "label": "Store", "type": "datasource", "query": "prometheus"}


def _variable(pair: tuple[str, str]) -> dict[str, Any]:
    name, query = pair
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 4,
        "includeAll": name == "node",
        "allValue": ".*",
    }
