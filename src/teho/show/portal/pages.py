"""The pages of the portal as HTML: what each shows, and the template that it fills."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import jinja2
import msgspec

from teho.model.listed_run import Judged, ListedRun, Totals
from teho.show.cells import SEVERITY_WORDS, format_moment, plain
from teho.show.html.markup import advice, prose
from teho.show.html.page import PageParts, shipped
from teho.show.portal.query import PAGE_ROWS, ListQuery
from teho.show.portal.spark import spark_line
from teho.store.search import CHOICES
from teho.units import counted, format_duration, format_quantity
from teho.version import __version__

__all__ = ["Row", "asset", "document_page", "error_page", "home_page", "list_page", "programs_page",
           "row_of", "run_page", "usage_page"]  # fmt: skip

_OUTCOMES = {
    "running": "Running",
    "ok": "Ended well",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "damaged": "Damaged",
}
_TONES = {"running": "accent", "failed": "critical", "interrupted": "warning", "damaged": "warning"}
"""Colour of a run without a verdict."""
_LABELS = {
    "outcome": "End",
    "kind": "Finding",
    "user": "User",
    "cluster": "Cluster",
    "partition": "Partition",
    "gpu": "GPU",
}
COLUMNS = (
    ("began", "Began"),
    ("time", "Time"),
    ("gpus", "GPUs"),
    ("busy", "GPU busy"),
    ("energy", "GPU energy"),
    ("cost", "Cost"),
)
"""Columns of the list with figures: the name of their order, and their heading."""
USAGE_BY = {
    "month": "Month",
    "command": "Program",
    "name": "Name",
    "user": "Person",
    "cluster": "Cluster",
    "gpu": "GPU model",
    "kind": "Finding",
}
_STYLES = (
    "vendor/uPlot.min.css",
    "templates/report.css",
    "portal/templates/portal.css",
)
_SCRIPTS = {
    "report.js": ("vendor/uPlot.iife.min.js", "templates/report.js"),
    "portal.js": ("portal/templates/portal.js",),
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a list, as text."""

    run: ListedRun
    address: str
    title: str
    tone: str
    """Severity, which sets the colour of the mark."""
    mark: str
    """The verdict in a few words, or how the run ended."""
    sentence: str
    """The verdict; empty: it is not known."""
    cells: tuple[str, ...]
    """One for each of `COLUMNS`; a value that is not known is a dash."""


def asset(name: str) -> bytes | None:
    """Return the content of a style or script; None if there is none with this name."""
    if name == "style.css":
        return "".join(map(shipped, _STYLES)).encode()
    if name in _SCRIPTS:
        return "\n".join(map(shipped, _SCRIPTS[name])).encode()
    return None


def row_of(run: ListedRun, running: Judged | None = None, *, of: str = "") -> Row:
    """Return a run as a row.

    Args:
        run: the run.
        running: its verdict until now, if it goes on.
        of: `group`: it is a shared run.
    """
    judged = run.judged or running
    outcome = _OUTCOMES[run.outcome]
    if judged and judged.severity:
        mark = judged.words.capitalize()
        tone = judged.severity
        if run.outcome not in {"ok", "running"} and judged.severity in {"good", "unknown"}:
            mark, tone = outcome, _TONES[run.outcome]
    else:
        mark, tone = outcome, _TONES.get(run.outcome, "unknown")
    address = {"id": run.id, **({"by": run.user} if of else {})}
    return Row(
        run=run,
        address=f"run?{urlencode(address)}",
        title=run.name or run.id,
        tone=tone,
        mark=mark,
        sentence=judged.verdict if judged else "",
        cells=_cells(run, judged),
    )


def _cells(run: ListedRun, judged: Judged | None) -> tuple[str, ...]:
    return (
        _moment(run.began_s) if run.began_s else "–",
        _seconds(run.elapsed_s),
        f"{run.gpus} × {run.gpu}" if run.gpus and run.gpu else str(run.gpus or "–"),
        _quantity(judged.gpu_busy_percent if judged else None, "%"),
        _quantity(judged.energy_j if judged else None, "J"),
        _quantity(judged.cost, judged.cost_unit) if judged else "–",
    )


def home_page(
    base: Mapping[str, Any],
    running: Sequence[Row],
    newest: Sequence[Row],
    month: Totals | None,
    findings: Sequence[Totals],
    next_steps: Sequence[str],
) -> str:
    """Return the page that a user sees first.

    Args:
        base: what all pages have; see `render`.
        running: the runs that go on.
        newest: the newest runs that have ended.
        month: sums over the runs of this month; None: there are none.
        findings: the runs of this month by finding, the most unused GPU hours first.
        next_steps: sentences with commands.
    """
    return render(
        "home.html",
        base,
        title="Home",
        here="home",
        running=running,
        newest=newest,
        month=month,
        month_facts=_totals_facts(month) if month else (),
        findings=[(one, _kind(one.key)) for one in findings],
        next_steps=[advice(step) for step in next_steps],
    )


def list_page(
    base: Mapping[str, Any],
    query: ListQuery,
    rows: Sequence[Row],
    count: int,
    choices: Mapping[str, Sequence[tuple[str, int]]],
) -> str:
    """Return the list of runs.

    Args:
        base: what all pages have.
        query: what the address asks for.
        rows: the runs of this page.
        count: number of runs that the filter lets through.
        choices: column -> its values with their number of runs.
    """
    return render(
        "runs.html",
        base,
        title="Runs",
        here="group" if query.of else "runs",
        query=query,
        rows=rows,
        columns=[_heading(query, *column) for column in COLUMNS],
        **_paging(query, count),
        **_filters(query, choices),
    )


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one command."""

    total: Totals
    newest: Row
    history: str
    """Address of the list with only these runs."""
    change: str
    """How the newest run differs from the run before."""
    tone: str
    compared: str
    """Address of the comparison with the run before; empty: there is none."""
    spark: str
    """SVG."""


def programs_page(
    base: Mapping[str, Any],
    query: ListQuery,
    groups: Sequence[tuple[Totals, Sequence[ListedRun]]],
    choices: Mapping[str, Sequence[tuple[str, int]]],
) -> str:
    """Return the list with one line for each program.

    Args:
        base: what all pages have.
        query: what the address asks for.
        groups: the sums of each program, and its newest runs, oldest first.
        choices: column -> its values with their number of runs.
    """
    programs = [_program(query, total, runs) for total, runs in groups if runs]
    has_more = len(groups) == PAGE_ROWS
    return render(
        "programs.html",
        base,
        title="Programs",
        here="group" if query.of else "runs",
        query=query,
        programs=programs,
        before=query.address(page=query.page - 1) if query.page > 1 else "",
        after=query.address(page=query.page + 1) if has_more else "",
        **_filters(query, choices),
    )


def _program(query: ListQuery, total: Totals, runs: Sequence[ListedRun]) -> Program:
    ended = [run for run in runs if run.outcome == "ok" and run.elapsed_s]
    change, tone, compared = "", "unknown", ""
    if len(ended) > 1:
        last, before = ended[-1], ended[-2]
        ratio = (last.elapsed_s or 0.0) / (before.elapsed_s or 1.0)
        percent = 100 * (ratio - 1)
        change = (
            "same time as the run before"
            if abs(percent) < 5
            else f"{abs(percent):.0f} % {'more' if percent > 0 else 'less'} time than the run before"
        )
        tone = "unknown" if abs(percent) < 5 else "warning" if percent > 0 else "good"
        if not query.of:
            compared = f"compare?{urlencode([('run', before.id), ('run', last.id)])}"
    return Program(
        total=total,
        newest=row_of(runs[-1], of=query.of),
        history=query.address(by="", command=total.key),
        change=change,
        tone=tone,
        compared=compared,
        spark=spark_line([run.elapsed_s for run in ended]),
    )


def run_page(
    base: Mapping[str, Any],
    run: ListedRun,
    parts: PageParts,
    files: Sequence[tuple[str, str]],
    before: ListedRun | None,
) -> str:
    """Return the page of a run: its report, and while it goes on, its newest values.

    Args:
        base: what all pages have.
        run: the run.
        parts: its report.
        files: name and address of each file to download.
        before: the run of the same command before this one.
    """
    compared = ""
    if before is not None and not base.get("by"):
        compared = f"compare?{urlencode([('run', before.id), ('run', run.id)])}"
    return render(
        "run.html",
        base,
        title=parts.title,
        here="runs",
        run=run,
        parts=parts,
        files=files,
        compared=compared,
        history=ListQuery(command=run.command).address(),
        is_live=run.outcome == "running",
    )


def document_page(base: Mapping[str, Any], here: str, parts: PageParts, more: str = "") -> str:
    """Return a page with a document: a comparison, the catalogue, a cluster.

    Args:
        base: what all pages have.
        here: the entry of the navigation.
        parts: the document.
        more: HTML in front of the sections.
    """
    return render("document.html", base, title=parts.title, here=here, parts=parts, more=more)


def usage_page(
    base: Mapping[str, Any], by: str, of: str, since: str, totals: Sequence[Totals]
) -> str:
    """Return the sums of the runs by person, program, month, and so on.

    Args:
        base: what all pages have.
        by: a key of `USAGE_BY`.
        of: `group`: of the shared runs.
        since: as the user typed it.
        totals: the sums.
    """
    rows = [(_usage_label(by, one.key), _usage_address(by, of, one), one) for one in totals]
    return render(
        "usage.html",
        base,
        title="Usage",
        here="usage",
        by=by,
        of=of,
        since=since,
        ways=USAGE_BY,
        heading=USAGE_BY[by],
        rows=rows,
    )


def error_page(base: Mapping[str, Any], sentence: str, next_step: str = "") -> str:
    """Return a page that says what is wrong with a request."""
    return render(
        "error.html", base, title="Not shown", here="", sentence=sentence, next_step=next_step
    )


def render(template: str, base: Mapping[str, Any], **values: Any) -> str:
    """Fill a template.

    Args:
        template: its name.
        base: what all pages have: `has_group`, and for a static copy `static`.
        values: what only this page has.
    """
    return _environment().get_template(template).render(base=base, **values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("teho.show.portal"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        # Names and commands come from outside: no control characters, no marks of direction.
        finalize=lambda value: plain(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "seconds": _seconds,
        "moment": _moment,
        "quantity": _quantity,
        "hours": lambda hours: _quantity(None if hours is None else hours, "h"),
        "counted": counted,
        "prose": prose,
    }
    environment.globals |= {
        "severity_words": SEVERITY_WORDS,
        "version": __version__,
        "asset_address": _asset_address,
    }
    return environment


@cache
def _asset_address(name: str) -> str:
    """Return the address of a style or script; it changes with the content, for the cache."""
    return f"{name}?v={sha256(asset(name) or b'').hexdigest()[:12]}"


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)


def _moment(moment_s: float) -> str:
    return format_moment(datetime.fromtimestamp(moment_s, timezone.utc))


def _quantity(value: float | None, unit: str) -> str:
    return "–" if value is None else format_quantity(value, unit)


def _kind(kind: str) -> str:
    return kind.replace("_", " ").capitalize()


def _heading(query: ListQuery, sort: str, label: str) -> dict[str, str]:
    """Return a heading of the list: a second click turns the order round."""
    is_sorted = query.sort == sort
    turned = "asc" if is_sorted and query.order == "desc" else "desc"
    state = {"desc": "descending", "asc": "ascending"}[query.order] if is_sorted else ""
    return {"label": label, "address": query.address(sort=sort, order=turned), "state": state}


def _paging(query: ListQuery, count: int) -> dict[str, Any]:
    first = (query.page - 1) * PAGE_ROWS
    last = min(count, first + PAGE_ROWS)
    return {
        "count": count,
        "shown": f"{first + 1:,}–{last:,} of {count:,}" if count > PAGE_ROWS else "",
        "before": query.address(page=query.page - 1) if query.page > 1 else "",
        "after": query.address(page=query.page + 1) if last < count else "",
    }


def _filters(query: ListQuery, choices: Mapping[str, Sequence[tuple[str, int]]]) -> dict[str, Any]:
    """Return the fields of the filter; a choice with one value and no filter is left out."""
    given = msgspec.to_builtins(query)
    fields = []
    for column in CHOICES:
        values = [
            (value, f"{_value_label(column, value)} ({count:,})")
            for value, count in choices.get(column, ())
        ]
        chosen = getattr(query, column)
        if chosen and chosen not in dict(values):
            values.append((chosen, _value_label(column, chosen)))
        if len(values) > 1 or chosen:
            fields.append((column, _LABELS[column], values, chosen))
    hidden = [
        (key, value)
        for key, value in given.items()
        if key in {"sort", "order", "of", "by", "command"}
    ]
    active = [key for key in given if key in {"text", "since", "command", *CHOICES}]
    return {
        "fields": fields,
        "hidden": hidden,
        "is_filtered": bool(active),
        "all_runs": ListQuery(of=query.of, by=query.by).address(),
        "as_runs": query.address(by=""),
        "as_programs": query.address(by="program"),
    }


def _value_label(column: str, value: str) -> str:
    if column == "outcome":
        return _OUTCOMES.get(value, value)
    return _kind(value) if column == "kind" else value


def _totals_facts(total: Totals) -> list[tuple[str, str, str]]:
    """Return label, figure and remark of each sum; one that is not known says so."""
    measured = total.measured_gpu_hours
    idle = total.unused_percent
    partly = f"of {counted(total.judged, 'run')} with a report"
    return [
        ("Runs", f"{total.runs:,}", ""),
        ("GPU hours", _quantity(total.gpu_hours, "h"), ""),
        (
            "GPUs without a kernel",
            "not known" if idle is None else format_quantity(idle, "%"),
            f"of {format_quantity(measured, 'h')} measured GPU hours" if measured else "",
        ),
        ("GPU energy", "not known" if total.energy_j is None else
         format_quantity(total.energy_j, "J"), partly if total.energy_j is not None else ""),
        ("Cost", "not known" if total.cost is None else
         format_quantity(total.cost, total.cost_unit), partly if total.cost is not None else ""),
    ]  # fmt: skip


def _usage_label(by: str, key: str) -> str:
    if not key:
        return {
            "gpu": "no GPU",
            "cluster": "not on a cluster",
            "kind": "no finding or no report",
        }.get(by, "no name")
    return _kind(key) if by == "kind" else key


def _usage_address(by: str, of: str, total: Totals) -> str:
    if by in CHOICES and total.key:
        return ListQuery(of=of, **{by: total.key}).address()
    if by == "command":
        return ListQuery(of=of, command=total.key).address()
    return ""


def month_begin_s() -> float:
    """Return the start of this month in seconds since 1970, in local time."""
    now = datetime.fromtimestamp(time.time()).astimezone()
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
