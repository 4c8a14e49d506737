"""What an address of the list asks for: filters, order and page, as text in the query."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime, timezone
from urllib.parse import urlencode

import msgspec

from teho.errors import InputError, UnitError
from teho.store.search import RunFilter
from teho.units import parse_duration

__all__ = ["PAGE_ROWS", "ListQuery", "parse_since", "read_query"]

PAGE_ROWS = 50
_MOST_PAGES = 10_000


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
    since: str = ""
    """A date, or a length of time such as `7d`."""
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
            InputError: the date is not valid.
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
            since_s=parse_since(self.since) if self.since else None,
        )


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


def parse_since(text: str) -> float:
    """Return the earliest start in seconds since 1970.

    Raises:
        InputError: the text is neither a date nor a length of time.
    """
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone().timestamp()
    try:
        since_s = datetime.now(timezone.utc).timestamp() - parse_duration(text, "since")
    except (UnitError, OverflowError):
        raise InputError(
            f"since={text[:40]}", "a date such as 2026-11-20, or a length of time such as 7d"
        ) from None
    return since_s
