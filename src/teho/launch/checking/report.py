"""Write the result of the check as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from teho.launch.checking.findings import Problem, group_by
from teho.launch.checking.task import CheckTask, spans

__all__ = ["LinkTiming", "NodeClock", "Result", "as_json", "as_text"]

_MOST_NODES = 32
"""A longer table would not be read; the slowest nodes are shown."""
_CLOCK_S = 0.1
"""NTP keeps clocks within some milliseconds. A tenth of a second blurs samples of 1 s."""


class NodeClock(NamedTuple):
    """Difference between a node's clock and the clock of rank 0's node."""

    ahead_s: float
    uncertainty_s: float
    """Half of the shortest round trip: the maximum error of `ahead_s`."""

    @property
    def differs(self) -> bool:
        """Whether the difference exceeds the uncertainty and the usual difference."""
        return abs(self.ahead_s) > max(_CLOCK_S, 3 * self.uncertainty_s)


class LinkTiming(NamedTuple):
    """One size of the all_reduce."""

    size_bytes: int
    elapsed_s: float
    """Time of one all_reduce: the median of the slowest rank."""
    algorithm_bytes_per_s: float
    """`size_bytes / elapsed_s`."""
    bus_bytes_per_s: float | None
    """Rate on the link of each rank; None if there is only one rank."""


@dataclass
class Result:
    """The results so far; stages that were not reached are empty or None."""

    task: CheckTask
    """Rank 0."""
    findings: list[Problem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Remarks, which are not problems."""
    hellos: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By rank, its first message."""
    met_s: float | None = None
    """Time until all ranks had arrived."""
    last: int | None = None
    """The rank that came last."""
    clocks: dict[int, NodeClock] = field(default_factory=dict)
    """By node rank, without the node of rank 0."""
    work_s: dict[int, float] = field(default_factory=dict)
    """By rank, the time of the same work on its cores."""
    round_trip_s: dict[int, float] = field(default_factory=dict)
    """By rank, to the next rank and back."""
    link_bytes_per_s: dict[int, float] = field(default_factory=dict)
    """By rank, to the next rank."""
    torch: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By rank, the facts about its torch."""
    backend: str = ""
    """Backend of the collective; empty: no collective was run."""
    no_collective: str = ""
    """Why no collective was run."""
    timings: list[LinkTiming] = field(default_factory=list)
    device_work_s: dict[int, float] = field(default_factory=dict)
    """By rank, the time of a matrix product on its device."""
    waited_s: dict[int, float] = field(default_factory=dict)
    """By rank, the time in the all_reduce after it, which waits for all ranks."""

    @property
    def verdict(self) -> str:
        """One sentence: the first problem, or that all is well."""
        if self.findings:
            return f"{self.findings[0].sentence}."
        if self.task.world_size == 1:
            return "The step has only one rank, so it has no other rank to reach."
        nodes = len(self.by_node())
        where = f"{nodes} nodes" if nodes > 1 else "1 node"
        return f"{self.task.world_size} ranks on {where} reach each other."

    def by_node(self) -> dict[int, list[int]]:
        """Return the ranks that arrived, by the rank of their node."""
        nodes = group_by(sorted(self.hellos), lambda rank: self.hellos[rank]["node_rank"])
        return dict(sorted(nodes.items()))

    def name(self, rank: int) -> str:
        """Return a rank with its node, such as `rank 5 on r01g02`."""
        return f"rank {rank} on {self.hellos[rank]['node']}"

    def work(self) -> dict[int, float]:
        """Return the time of the same work by rank: on its device, or else on its cores."""
        return self.device_work_s or self.work_s


def as_json(result: Result) -> str:
    """Return the whole result as one JSON object, in base units, on one line."""
    return json.dumps(
        {
            "ok": not result.findings,
            "verdict": result.verdict,
            "findings": [finding._asdict() for finding in result.findings],
            "remarks": result.remarks,
            "world_size": result.task.world_size,
            "met_s": result.met_s,
            "last_rank": result.last,
            "nodes": [_node_json(result, node, ranks) for node, ranks in result.by_node().items()],
            "ranks": [_rank_json(result, rank) for rank in sorted(result.hellos)],
            "backend": result.backend or None,
            "no_collective": result.no_collective or None,
            "all_reduce": [timing._asdict() for timing in result.timings],
            "slowest_rank": _slowest(result),
        }
    )


def as_text(result: Result) -> str:
    """Return the report as text, the verdict first."""
    lines = []
    for finding in result.findings:
        lines += [f"{finding.sentence}.", f"  Next: {finding.next_step}."]
    if not result.findings:
        lines.append(result.verdict)
    if result.hellos:
        lines += ["", *_table(_node_rows(result))]
    details = list(_details(result))
    return "\n".join([*lines, *([""] if details else []), *details])


def _details(result: Result) -> Iterator[str]:
    count = len(result.by_node())
    if count > _MOST_NODES:
        yield (
            f"The table shows only the {_MOST_NODES} nodes with the slowest links, of {count} "
            "nodes in total. --json prints all nodes."
        )
    if result.met_s is not None and result.last is not None and len(result.hellos) > 1:
        last = result.name(result.last)
        yield f"All ranks arrived in {_time(result.met_s)}; {last} was the last."
    for node, clock in sorted(result.clocks.items()):
        if clock.differs:
            name = result.hellos[result.by_node()[node][0]]["node"]
            yield (
                f"The clock of {name} is {_time(abs(clock.ahead_s))} "
                f"{'ahead of' if clock.ahead_s > 0 else 'behind'} the clock of {result.task.node} "
                f"(uncertainty: {_time(clock.uncertainty_s)})."
            )
    if result.link_bytes_per_s:
        yield _ring_line(result)
    if result.backend:
        yield from _collective_lines(result)
    elif result.no_collective:
        yield f"No collective was tested: {result.no_collective}."
    slowest = _slowest(result)
    if slowest is not None:
        yield _slowest_line(result, slowest)
    yield from (f"Note: {remark}." for remark in result.remarks)


def _ring_line(result: Result) -> str:
    links = result.link_bytes_per_s
    slowest = min(links, key=links.__getitem__)
    following = (slowest + 1) % result.task.world_size
    return (
        f"TCP: the median rate per link is {_rate(median(links.values()))} with all {len(links)} "
        f"links of the ring in use. The slowest link, from {result.name(slowest)} to "
        f"{result.name(following)}, reaches {_rate(links[slowest])}."
    )


def _collective_lines(result: Result) -> Iterator[str]:
    version = result.torch[0]["version"]
    library = result.torch[0]["library"] if result.backend == "nccl" else "gloo"
    if result.timings:
        yield f"all_reduce through torch {version}, {library}:"
        rows = [("size", "time", "algorithm", "bus")]
        for one in result.timings:
            bus = "" if one.bus_bytes_per_s is None else _rate(one.bus_bytes_per_s)
            size = f"{one.size_bytes >> 20} MiB"
            rows.append((size, _time(one.elapsed_s), _rate(one.algorithm_bytes_per_s), bus))
        yield from (f"  {line}" for line in _table(rows))


def _slowest(result: Result) -> int | None:
    work = result.work()
    return max(work, key=work.__getitem__) if len(work) > 1 else None


def _slowest_line(result: Result, slowest: int) -> str:
    work = result.work()
    what = "a matrix product" if result.device_work_s else "a checksum"
    line = (
        f"The slowest rank is {result.name(slowest)}: it took {_time(work[slowest])} for {what} "
        f"(median of all ranks: {_time(median(work.values()))})"
    )
    if result.waited_s and result.device_work_s:
        others = median(s for rank, s in result.waited_s.items() if rank != slowest)
        if others > result.waited_s[slowest]:
            longer = _time(others - result.waited_s[slowest])
            line += f"; the other ranks waited {longer} longer than this rank"
    return f"{line}."


def _node_rows(result: Result) -> list[tuple[str, ...]]:
    nodes = list(result.by_node().items())
    if len(nodes) > _MOST_NODES:
        nodes.sort(key=lambda item: min(result.link_bytes_per_s.get(r, 0.0) for r in item[1]))
        nodes = sorted(nodes[:_MOST_NODES])
    rows = [
        (
            result.hellos[ranks[0]]["node"],
            spans(ranks),
            _cores([result.hellos[rank]["cores"] for rank in ranks]),
            _devices(result, ranks),
            _median_of(result.link_bytes_per_s, ranks, _rate),
            _median_of(result.round_trip_s, ranks, _time),
            _median_of(result.work(), ranks, _time),
        )
        for _, ranks in nodes
    ]
    return [("node", "ranks", "cores", "device", "link", "round trip", "work"), *rows]


def _cores(sets: Sequence[Sequence[int]]) -> str:
    """Return the cores of the ranks of a node: `7 each`, or `8 shared`."""
    together = {core for cores in sets for core in cores}
    if sum(map(len, sets)) > len(together):
        return f"{len(together)} shared"
    return f"{spans({len(cores) for cores in sets})}{' each' if len(sets) > 1 else ''}"


def _devices(result: Result, ranks: Sequence[int]) -> str:
    names = {result.torch[rank].get("device", "") for rank in ranks if rank in result.torch}
    return ", ".join(sorted(filter(None, names)))


def _median_of(figures: Mapping[int, float], ranks: Sequence[int], write: Any) -> str:
    known = [figures[rank] for rank in ranks if rank in figures]
    return write(median(known)) if known else ""


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align columns, without columns that are empty below their title."""
    kept = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in kept}
    return [
        "  ".join(row[column].ljust(widths[column]) for column in kept).rstrip() for row in rows
    ]


def _node_json(result: Result, node: int, ranks: Sequence[int]) -> dict[str, Any]:
    clock = result.clocks.get(node)
    return {
        "node_rank": node,
        "name": result.hellos[ranks[0]]["node"],
        "ranks": list(ranks),
        "clock_ahead_s": clock and clock.ahead_s,
        "clock_uncertainty_s": clock and clock.uncertainty_s,
    }


def _rank_json(result: Result, rank: int) -> dict[str, Any]:
    hello = result.hellos[rank]
    torch = result.torch.get(rank, {})
    kept = ("rank", "local_rank", "node", "host", "pid", "cores", "visible")
    return {
        **{key: hello[key] for key in kept},
        "torch": torch.get("version") or None,
        "device": torch.get("device") or None,
        "link_bytes_per_s": result.link_bytes_per_s.get(rank),
        "round_trip_s": result.round_trip_s.get(rank),
        "work_s": result.work_s.get(rank),
        "device_work_s": result.device_work_s.get(rank),
        "waited_s": result.waited_s.get(rank),
    }


def _rate(bytes_per_s: float) -> str:
    if bytes_per_s < 0.9995e9:
        return f"{_three_digits(bytes_per_s / 1e6)} MB/s"
    return f"{_three_digits(bytes_per_s / 1e9)} GB/s"


def _time(seconds: float) -> str:
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def _three_digits(value: float) -> str:
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"
