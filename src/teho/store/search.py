"""Filters, sorts and sums the runs of the index.

All values that a user gives are bound to the query as parameters. Names of columns come only from
the tables in this file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from teho.model.listed_run import Judged, ListedRun, Totals
from teho.store.index_file import COLUMNS, HomeIndex, IndexFile

__all__ = ["CHOICES", "SORTS", "RunFilter", "Search"]

CHOICES = ("outcome", "kind", "user", "cluster", "partition", "account", "gpu")
"""Columns that a filter compares with one value. `kind` is the most important finding's."""
SORTS = {
    "began": "run.began_s",
    "time": "run.elapsed_s",
    "gpus": "run.gpus",
    "gpu_hours": "run.gpus * run.elapsed_s",
    "name": "nullif(run.name, '')",
    "tags": "nullif(run.tags, '{}')",
    "command": "run.command",
    "user": "run.user",
    "cluster": "nullif(run.cluster, '')",
    "partition": "nullif(run.partition, '')",
    "account": "nullif(run.account, '')",
    "gpu": "nullif(run.gpu, '')",
    "outcome": "run.outcome",
    "finding": "nullif(verdict.words, '')",
    "busy": "verdict.gpu_busy_percent",
    "energy": "verdict.energy_j",
    "cost": "verdict.cost",
    "unused": "run.gpus * run.elapsed_s * (100.0 - verdict.gpu_busy_percent)",
}
"""Name of an order -> the expression in SQL. A missing value is always last."""
_BY = {
    "user": "run.user",
    "command": "run.command",
    "cluster": "run.cluster",
    "account": "run.account",
    "gpu": "run.gpu",
    "name": "run.name",
    "kind": "coalesce(verdict.kind, '')",
    "month": "strftime('%Y-%m', run.began_s, 'unixepoch', 'localtime')",
}
"""What runs can be summed by -> the expression in SQL."""
_JUDGED = tuple(Judged.__struct_fields__)
_ROW = ", ".join(
    ["home.runs", "run.id", *(f"run.{name}" for name in COLUMNS)]
    + [f"verdict.{name}" for name in _JUDGED]
)


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to show. An empty text or None does not limit the list."""

    text: str = ""
    """Words that must all be in the name, the command, the tags, the id, or the id of the job."""
    outcome: str = ""
    kind: str = ""
    user: str = ""
    cluster: str = ""
    partition: str = ""
    account: str = ""
    gpu: str = ""
    command: str = ""
    """The whole command."""
    since_s: float | None = None
    """Earliest start, in seconds since 1970."""
    until_s: float | None = None
    """The runs began before this time."""
    tag: str = ""
    """`KEY=VALUE`, or only `KEY` for runs that have this tag with any value."""
    least_s: float | None = None
    """Shortest run time. Runs whose time is not known are left out."""
    least_cost: float | None = None
    """Lowest cost, in the billing unit of each run. Runs whose cost is not known are left out."""

    @property
    def needs_verdict(self) -> bool:
        """Whether the filter reads a column of the verdict."""
        return bool(self.kind) or self.least_cost is not None


class Search:
    """Queries about the recordings of some folders.

    Args:
        file: the index.
        homes: the folders.
        judge: the name of the judge whose verdicts count.
    """

    def __init__(self, file: IndexFile, homes: Sequence[HomeIndex], judge: str) -> None:
        self._file = file
        self._judge = file.judge(judge)
        self._join = (
            " left join verdict on verdict.home = run.home and verdict.id = run.id"
            f" and verdict.judge = {self._judge:d}"
        )
        self._homes = [home.number for home in homes]

    def count(self, wanted: RunFilter) -> int:
        """Return the number of runs."""
        where, values = self._where(wanted)
        join = self._join if wanted.needs_verdict else ""
        ((count,),) = self._file.rows(
            f"select count(*) from run{join} where {where}",  # noqa: S608 - values are parameters
            *values,
        ) or [(0,)]
        return int(count)

    def find(
        self,
        wanted: RunFilter = RunFilter(),  # noqa: B008 - frozen
        *,
        sort: str = "began",
        descending: bool = True,
        limit: int = 50,
        offset: int = 0,
    ) -> list[ListedRun]:
        """Return some runs.

        Args:
            wanted: which runs.
            sort: a name in `SORTS`; another name means `began`.
            descending: whether the largest value is first. Missing values are last.
            limit: number of runs at most.
            offset: number of runs to leave out at the beginning.
        """
        keys = self._keys(wanted, "", sort, limit, offset, descending=descending)
        return self._runs(keys)

    def find_counted(
        self, wanted: RunFilter, *, sort: str, descending: bool, limit: int, offset: int
    ) -> tuple[list[ListedRun], int]:
        """Return some runs, and the number of all runs that the filter lets through.

        With a filter, both come from one scan.
        """
        if wanted == RunFilter():
            found = self.find(wanted, sort=sort, descending=descending, limit=limit, offset=offset)
            return found, self.count(wanted)
        columns = ", count(*) over ()"
        keys = self._keys(wanted, columns, sort, limit, offset, descending=descending)
        runs = self._runs([(home, run_id) for home, run_id, _ in keys])
        return runs, keys[0][2] if keys else self.count(wanted)

    def _keys(
        self, wanted: RunFilter, columns: str, sort: str, limit: int, offset: int, *,
        descending: bool,
    ) -> list[Any]:  # fmt: skip
        """Return the keys of some runs, and more columns.

        The other columns of a run are read only for the runs that are shown.
        """
        order = SORTS.get(sort, SORTS["began"])
        where, values = self._where(wanted)
        if wanted != RunFilter():
            # A filter reads all rows in their order on disk; the index would read them at random.
            order = f"+{order}"
        needs_join = wanted.needs_verdict or "verdict." in order
        direction = "desc" if descending else "asc"
        query = (
            f"select run.home, run.id{columns} from run{self._join if needs_join else ''}"  # noqa: S608
            f" where {where} order by {_nulls_last(order)}{order} {direction}, run.id {direction}"
            " limit ? offset ?"
        )
        return self._file.rows(query, *values, limit, offset)

    def run(self, run_id: str, user: str = "") -> ListedRun | None:
        """Return one run; None if the index does not have it.

        Args:
            run_id: the name of its folder.
            user: only a run of this owner; empty: of any owner.
        """
        found = self._runs([(number, run_id) for number in self._homes])
        return next((run for run in found if user in {"", run.user}), None)

    def _runs(self, keys: Sequence[tuple[int, str]]) -> list[ListedRun]:
        """Return the runs with these keys, in their order."""
        if not keys:
            return []
        marks = ", ".join(["(?, ?)"] * len(keys))
        rows = self._file.rows(
            # `cross join` has SQLite look up each key, instead of reading all runs.
            f"with wanted (home, id) as (values {marks}) select run.home, {_ROW} from wanted"  # noqa: S608
            " cross join run on run.home = wanted.home and run.id = wanted.id"
            f" join home on home.id = run.home{self._join}",
            *(value for key in keys for value in key),
        )
        found = {(row[0], row[2]): _listed(row[1:]) for row in rows}
        return [found[key] for key in keys if key in found]

    def choices(self, column: str) -> list[tuple[str, int]]:
        """Return the values of a column in `CHOICES` and their number of runs, most frequent first.

        Raises:
            KeyError: the column is not in `CHOICES`.
        """
        if column not in CHOICES:
            raise KeyError(column)
        where, values = self._where(RunFilter())
        if column == "kind":
            query = (
                "select kind, count(*) as number from verdict as run"  # noqa: S608
                f" where {where} and judge = {self._judge:d} and kind <> ''"
                " group by kind order by number desc, kind"
            )
        else:
            query = (
                f"select {column}, count(*) as number from run where {where}"  # noqa: S608
                f" and {column} <> '' group by {column} order by number desc, {column} limit 200"
            )
        return [(value, count) for value, count in self._file.rows(query, *values)]

    def totals(
        self,
        by: str,
        wanted: RunFilter = RunFilter(),  # noqa: B008 - frozen
        *,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Totals]:
        """Return the sums of runs that have something in common, the newest group first.

        Args:
            by: a key of `_BY`, such as `user` or `month`; any other text: all runs are one group.
            wanted: which runs.
            limit: number of groups at most.
            offset: number of groups to leave out at the beginning.
        """
        key = _BY.get(by, "''")
        where, values = self._where(wanted)
        hours = "run.gpus * run.elapsed_s / 3600.0"
        rows = self._file.rows(
            f"""
            select {key} as key, count(*), coalesce(sum({hours}), 0.0), count(verdict.severity),
                sum({hours} * verdict.gpu_busy_percent / 100.0),
                sum(case when verdict.gpu_busy_percent is not null then {hours} end),
                sum(verdict.energy_j), sum(verdict.cost),
                group_concat(distinct nullif(verdict.cost_unit, '')), sum(verdict.unused_cost),
                sum(case when verdict.unused_cost is not null then verdict.cost end),
                sum(run.elapsed_s),
                max(run.began_s) as newest
            from run{self._join} and verdict.severity <> ''
            where {where} group by key order by newest desc limit ? offset ?
            """,  # noqa: S608 - all values are parameters
            *values,
            limit,
            offset,
        )
        return [_total(row) for row in rows]

    def times(self, command: str, limit: int = 40) -> list[ListedRun]:
        """Return the newest runs of a command, oldest first."""
        wanted = RunFilter(command=command)
        return self.find(wanted, limit=limit)[::-1]

    def _where(self, wanted: RunFilter) -> tuple[str, list[Any]]:
        homes = self._homes
        # With one folder, the newest runs can be read from the index without a sort.
        several = f"run.home in ({', '.join('?' * len(homes)) or 'null'})"
        terms = ["run.home = ?" if len(homes) == 1 else several]
        values: list[Any] = [*homes]
        for column in CHOICES:
            if value := getattr(wanted, column):
                terms.append(f"{'verdict' if column == 'kind' else 'run'}.{column} = ?")
                values.append(value)
        if wanted.outcome == "running":
            # There is an index of these few, which the planner does not choose by itself.
            few = f"select id from run where is_settled = 0 and {several.replace('run.', '')}"  # noqa: S608
            terms.append(f"run.id in ({few})")
            values += homes
        if wanted.command:
            terms.append("run.command = ?")
            values.append(wanted.command)
        for word in wanted.text.split():
            terms.append("instr(run.searched, ?)")
            values.append(word.lower())
        if wanted.since_s is not None:
            terms.append("run.began_s >= ?")
            values.append(wanted.since_s)
        if wanted.until_s is not None:
            terms.append("run.began_s < ?")
            values.append(wanted.until_s)
        if wanted.tag:
            terms.append("instr(run.tags, ?)")
            values.append(_tag_fragment(wanted.tag))
        if wanted.least_s is not None:
            terms.append("run.elapsed_s >= ?")
            values.append(wanted.least_s)
        if wanted.least_cost is not None:
            terms.append("verdict.cost >= ?")
            values.append(wanted.least_cost)
        return " and ".join(terms), values


def _tag_fragment(tag: str) -> str:
    """Return what the JSON text of all tags contains if a run has a tag.

    Quotation marks inside of a key or value are escaped in JSON, so no other text contains it.
    """
    key, sign, value = tag.partition("=")
    if not sign:
        return f"{json.dumps(key, ensure_ascii=False)}: "
    return json.dumps({key: value}, ensure_ascii=False)[1:-1]


def _nulls_last(order: str) -> str:
    # The start is never missing: without this term, the order can be read from its index.
    return "" if order.lstrip("+") == SORTS["began"] else f"({order}) is null, "


def _listed(row: Sequence[Any]) -> ListedRun:
    runs, run_id, *rest = row
    known = dict(zip(COLUMNS, rest, strict=False))
    judged = dict(zip(_JUDGED, rest[len(COLUMNS) :], strict=True))
    known["tags"] = json.loads(known["tags"])
    return ListedRun(
        runs=runs,
        id=run_id,
        judged=Judged(**judged) if judged["severity"] else None,
        **known,
    )


def _total(row: Sequence[Any]) -> Totals:
    key, runs, hours, count, busy, measured, energy_j, cost, units, *rest = row
    unused_cost, measured_cost, run_s, newest_s = rest
    is_one_unit = bool(units) and "," not in units
    return Totals(
        key=key,
        runs=runs,
        run_s=run_s,
        gpu_hours=hours,
        judged=count,
        busy_gpu_hours=busy,
        measured_gpu_hours=measured,
        energy_j=energy_j,
        cost=cost if is_one_unit else None,
        cost_unit=units if is_one_unit else "",
        unused_cost=unused_cost if is_one_unit else None,
        measured_cost=measured_cost if is_one_unit else None,
        newest_s=newest_s,
    )
