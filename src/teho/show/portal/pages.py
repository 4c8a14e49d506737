"""The pages of the portal as HTML: what each shows, and the template that it fills."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from teho.explain.wording import capital
from teho.model.listed_run import ListedRun, Totals
from teho.model.metric import METRICS_BY_NAME
from teho.show.html.markup import advice
from teho.show.html.page import PageParts
from teho.show.portal.filters import filter_fields, heading, paging
from teho.show.portal.languages import say, say_count
from teho.show.portal.live import CURVES, PageNow
from teho.show.portal.query import PAGE_ROWS, ListQuery, compare_address, run_key
from teho.show.portal.render import render
from teho.show.portal.rows import COLUMNS, Row, known_columns, program_of, short_command
from teho.show.portal.savings import Saving
from teho.show.portal.words import NOT_KNOWN, finding_text, quantity_text
from teho.store.search import CHOICES
from teho.units import format_quantity

if TYPE_CHECKING:
    from teho.show.portal.planning import Planned

__all__ = [
    "USAGE_BY",
    "document_page",
    "error_page",
    "home_page",
    "list_page",
    "month_begin",
    "month_begin_s",
    "plan_page",
    "programs_page",
    "run_page",
    "usage_page",
]

USAGE_BY = {
    "month": "Month",
    "command": "Program",
    "name": "Name",
    "user": "Person",
    "account": "Project",
    "cluster": "Cluster",
    "gpu": "GPU model",
    "kind": "Finding",
}
_NO_KEY = {
    "gpu": "no GPU",
    "cluster": "not on a cluster",
    "account": "no project",
    "kind": "no finding, or no report",
}


def home_page(
    base: Mapping[str, Any],
    running: Sequence[Row],
    now: Mapping[str, Mapping[str, str]],
    newest: Sequence[Row],
    month: Totals | None,
    found: Sequence[Saving],
    next_steps: Sequence[str],
) -> str:
    """Return the page that a user sees first.

    Args:
        base: what all pages have; see `render`.
        running: the runs that continue.
        now: their figures of the present moment by their ids, as far as they are known.
        newest: the newest runs that have ended.
        month: sums over the runs of this month; None: there are none.
        found: the findings of this month with the most unused GPU hours.
        next_steps: sentences with commands.
    """
    return render(
        "home.html",
        base,
        title=say("Home"),
        here="home",
        running=running,
        now=now,
        newest=newest,
        unjudged=[
            row.run.id
            for row in newest
            if row.run.outcome in {"ok", "failed"} and not row.run.judged
        ],
        month=month,
        month_facts=_totals_facts(month) if month else (),
        found=found,
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
        title=say("Runs"),
        here="group" if query.scope else "runs",
        query=query,
        rows=rows,
        heads={
            "verdict": heading(query, "finding", "Verdict"),
            "run": heading(query, "name", "Run"),
            "user": heading(query, "user", "User"),
        },
        columns=[
            (place, heading(query, *COLUMNS[place])) for place in known_columns(rows, query.sort)
        ],
        **paging(query, count),
        **filter_fields(query, choices),
    )


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
    programs = [program_of(query, total, runs) for total, runs in groups if runs]
    has_more = len(groups) == PAGE_ROWS
    return render(
        "programs.html",
        base,
        title=say("Programs"),
        here="group" if query.scope else "runs",
        query=query,
        programs=programs,
        before=query.address(page=query.page - 1) if query.page > 1 else "",
        after=query.address(page=query.page + 1) if has_more else "",
        **filter_fields(query, choices),
    )


def run_page(
    base: Mapping[str, Any],
    run: ListedRun,
    parts: PageParts,
    files: Sequence[tuple[str, str]],
    commands: Sequence[str],
    before: ListedRun | None,
    own: ListedRun | None = None,
    now: PageNow | None = None,
) -> str:
    """Return the page of a run: its report, and during the run, its newest values.

    Args:
        base: what all pages have.
        run: the run.
        parts: its report.
        files: name and address of each file to download.
        commands: the ones that show the traces of the run in TensorBoard; empty: it has no traces.
        before: the run of the same command before this one.
        own: if this run is shared, the user's newest own run of the same command.
        now: its values of the present moment, if it continues and is watched.
    """
    scope = "group" if base.get("by") else ""
    key = run_key(run, scope=scope)
    compared = []
    if before is not None:
        address = compare_address(run_key(before, scope=scope), key)
        compared.append((say("Compare with the run before"), address))
    if own is not None:
        compared.append((say("Compare with my newest run"), compare_address(own.id, key)))
    return render(
        "run.html",
        base,
        title=parts.title,
        here=scope or "runs",
        run=run,
        parts=parts,
        files=files,
        commands=commands,
        has_json=any(name.endswith(".json.gz") for name, _ in files),
        compared=compared,
        history=ListQuery(command=run.command, scope=scope).address(),
        is_live=run.outcome == "running",
        now=now or PageNow(tables="", gpus=[], facts={}),
        meanings={name: capital(METRICS_BY_NAME[name].meaning) for name in CURVES},
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
    base: Mapping[str, Any],
    by: str,
    scope: str,
    since: str,
    totals: Sequence[Totals],
    found: Sequence[Saving],
) -> str:
    """Return the sums of the runs by person, program, month, and so on.

    Args:
        base: what all pages have.
        by: a key of `USAGE_BY`.
        scope: `group`: of the shared runs.
        since: as the user typed it.
        totals: the sums.
        found: the findings with the most unused GPU hours.
    """
    rows = [(_usage_label(by, one.key), _usage_address(by, scope, one), one) for one in totals]
    columns = [(label, [text_of(one) for one in totals]) for label, text_of in _SUMS.items()]
    return render(
        "usage.html",
        base,
        title=say("Usage"),
        columns=[(label, cells) for label, cells in columns if {*cells} != {NOT_KNOWN}],
        here="usage",
        by=by,
        scope=scope,
        since=since,
        ways=USAGE_BY,
        heading=USAGE_BY[by],
        rows=rows,
        found=found,
    )


def plan_page(base: Mapping[str, Any], planned: Planned) -> str:
    """Return the form of a plan, and the answer to it."""
    from teho.show.portal.planning import FIELDS, FLAGS, MORE_FIELDS

    return render(
        "plan.html",
        base,
        title=say("Plan"),
        here="plan",
        planned=planned,
        fields=FIELDS,
        more_fields=MORE_FIELDS,
        flags=FLAGS,
    )


def error_page(base: Mapping[str, Any], sentence: str, next_step: str = "") -> str:
    """Return a page that says what is wrong with a request."""
    return render(
        "error.html", base, title=say("Not shown"), here="", sentence=sentence, next_step=next_step
    )


def _totals_facts(total: Totals) -> list[tuple[str, str, str]]:
    """Return label, figure and remark of each sum; one that is not known says so.

    Without GPU hours, nothing is said of GPUs.
    """
    measured = total.measured_gpu_hours
    idle = total.unused_percent
    partly = say_count("of {} run with a report", "of {} runs with a report", total.judged)
    partly = partly.format(f"{total.judged:,}")

    def known(label: str, value: float | None, unit: str) -> tuple[str, str, str]:
        if value is None:
            return label, say("not known"), ""
        return label, format_quantity(value, unit), partly

    facts = [(say("Runs"), f"{total.runs:,}", "")]
    if total.gpu_hours:
        facts += [
            ("GPU hours", quantity_text(total.gpu_hours, "h"), ""),
            (
                "GPUs without a kernel",
                say("not known") if idle is None else format_quantity(idle, "%"),
                say("of {} measured GPU hours").format(format_quantity(measured, "h"))
                if measured
                else "",
            ),
            known("GPU energy", total.energy_j, "J"),
        ]
    facts.append(known("Cost", total.cost, total.cost_unit))
    if total.cost is not None:
        label, figure, _ = known("Not used", total.unused_cost, total.cost_unit)
        facts.append((label, figure, _share_text(total)))
    return facts


def _share_text(total: Totals) -> str:
    """Write which part of the measured cost was not used; empty: it is not known."""
    share = total.unused_cost_percent
    if share is None or total.measured_cost is None:
        return ""
    cost = format_quantity(total.measured_cost, total.cost_unit)
    return say("{} of {}").format(format_quantity(share, "%"), cost)


def _unused_text(total: Totals) -> str:
    """Write the cost of what was not used, and its share; a dash if it is not known."""
    amount = quantity_text(total.unused_cost, total.cost_unit)
    share = total.unused_cost_percent
    return amount if share is None else f"{amount} ({format_quantity(share, '%')})"


_SUMS: Mapping[str, Callable[[Totals], str]] = {
    "GPU hours": lambda one: quantity_text(one.gpu_hours or None, "h"),
    "GPUs without a kernel": lambda one: quantity_text(one.unused_percent, "%"),
    "GPU energy": lambda one: quantity_text(one.energy_j, "J"),
    "Cost": lambda one: quantity_text(one.cost, one.cost_unit),
    "Not used": _unused_text,
}
"""Label of a sum -> how it is written in a table."""


def _usage_label(by: str, key: str) -> str:
    if not key:
        return say(_NO_KEY[by]) if by in _NO_KEY else say("no name")
    if by == "command":
        return short_command(key)
    return finding_text(key) if by == "kind" else key


def _usage_address(by: str, scope: str, total: Totals) -> str:
    if by in CHOICES and total.key:
        return ListQuery(scope=scope).address(**{by: total.key})
    if by == "command":
        return ListQuery(scope=scope, command=total.key).address()
    return ""


def month_begin_s() -> float:
    """Return the start of this month in seconds since 1970, in local time."""
    return _month_begin().timestamp()


def month_begin() -> str:
    """Return the first day of this month, as in an address."""
    return f"{_month_begin():%Y-%m-%d}"


def _month_begin() -> datetime:
    now = datetime.fromtimestamp(time.time()).astimezone()
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
