"""What an address of the list asks for: filters, order and page, as text in the query."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from urllib.parse import urlencode

import msgspec

from teho.errors import InputError, UnitError
from teho.model.listed_run import ListedRun
from teho.store.search import RunFilter
from teho.units import parse_duration

__all__ = ["PAGE_ROWS", "ListQuery", "compare_address", "parse_since", "read_query", "run_key"]

PAGE_ROWS = 50
_MOST_PAGES = 10_000
_BACK = "go back in the browser, and change this field"


class ListQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of the address of the list. Each is text in the query; empty: the default."""

    text: str = ""
    outcome: str = ""
    kind: str = ""
    user: str = ""
    cluster: str = ""
    partition: str = ""
    account: str = ""
    gpu: str = ""
    command: str = ""
    tag: str = ""
    """`KEY=VALUE`, or only `KEY`."""
    since: str = ""
    """A date, or a length of time such as `7d`."""
    until: str = ""
    """The last day, or a length of time."""
    longer: str = ""
    """Shortest run time, such as `1h`."""
    cost: str = ""
    """Lowest cost, a number."""
    sort: str = "began"
    order: str = "desc"
    page: int = 1
    scope: str = msgspec.field(default="", name="of")  # the key in addresses
    """`group`: the shared runs of the group; empty: the own runs."""
    by: str = ""
    """`program`: one line for each command; empty: one line for each run."""

    def address(self, **changes: object) -> str:
        """Return the address of a list that differs in some parts; other changes go to page 1."""
        parts = msgspec.to_builtins(msgspec.structs.replace(self, **{"page": 1, **changes}))
        return "runs" + (f"?{urlencode(parts)}" if parts else "")

    def filter(self) -> RunFilter:
        """Return the filter.

        Raises:
            InputError: a date, a time or a number is not valid.
        """
        return RunFilter(
            text=self.text,
            outcome=self.outcome,
            kind=self.kind,
            user=self.user,
            cluster=self.cluster,
            partition=self.partition,
            account=self.account,
            gpu=self.gpu,
            command=self.command,
            tag=self.tag,
            since_s=parse_since(self.since) if self.since else None,
            until_s=_parse_until(self.until) if self.until else None,
            least_s=parse_duration(self.longer, "longer") if self.longer else None,
            least_cost=_parse_cost(self.cost) if self.cost else None,
        )


def run_key(run: ListedRun, *, scope: str = "") -> str:
    """Return what identifies a run in the address of a comparison: `ID`, or `USER:ID` if shared."""
    return f"{run.user}:{run.id}" if scope else run.id


def compare_address(*keys: str) -> str:
    """Return the address of a comparison.

    Args:
        keys: what `run_key` returns for each run.
    """
    return f"compare?{urlencode([('run', key) for key in keys])}"


def read_query(parameters: Mapping[str, str]) -> ListQuery:
    """Read the query of an address. Unknown parts are left out.

    Raises:
        InputError: a part is not valid.
    """
    known = {
        key: value.strip()
        for key, value in parameters.items()
        if key in ListQuery.__struct_encode_fields__ and value.strip()
    }
    if known.get("order") != "asc":
        known["order"] = "desc"
    page = known.pop("page", "1")
    if not (page.isascii() and page.isdecimal() and 0 < int(page) <= _MOST_PAGES):
        raise InputError(f"page={page[:40]}", f"a number from 1 to {_MOST_PAGES:,}")
    return msgspec.convert({**known, "page": int(page)}, ListQuery)  # all others are text


def parse_since(text: str, what: str = "since") -> float:
    """Return a moment in seconds since 1970.

    Args:
        text: a date, or the length of the time since the moment.
        what: the field, for the error.

    Raises:
        InputError: the text is neither a date nor a length of time.
    """
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone().timestamp()
    try:
        since_s = datetime.now(timezone.utc).timestamp() - parse_duration(text, what)
    except (UnitError, OverflowError):
        raise InputError(
            f"{what}={text[:40]}",
            "a date such as 2026-11-20, or a length of time such as 7d",
            _BACK,
        ) from None
    return since_s


def _parse_until(text: str) -> float:
    """Return the moment before which a run began; a day counts as a whole."""
    moment_s = parse_since(text, "until")
    with contextlib.suppress(ValueError, OverflowError):
        last = date.fromisoformat(text)
        moment_s = datetime.combine(last + timedelta(days=1), time()).astimezone().timestamp()
    return moment_s


def _parse_cost(text: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(cost := float(text)):
            return cost
    raise InputError(f"cost={text[:40]}", "a number such as 10", _BACK)
