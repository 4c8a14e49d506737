"""The program starts many processes that run only for a short time.

If shell scripts have loops that start programs, the finding names these loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen
from teho.explain.wording import listed
from teho.model.run import ShellLoop
from teho.patterns import lazy_pattern

RANK = 452
SEVERITY = "warning"
THRESHOLDS = {
    "short_percent": chosen(
        30.0,
        "%",
        "if short processes use less than this share of the CPU time, starting them is not the "
        "main cost",
    ),
    "short_ms": chosen(
        50.0,
        "ms",
        "a process below this limit does little except starting: starting a program takes 1 to "
        "5 ms, and starting Python 20 ms or more",
    ),
    "short_min_s": chosen(
        5.0, "s", "programs that a script starts only at its beginning need less CPU time"
    ),
}
MUTES = ("serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says what the program does with the one core that it uses"

_MOST_LOOPS = 2
_READS = lazy_pattern(r"\bread\b")
_TEXT_TOOLS = frozenset(
    ("awk", "gawk", "mawk", "cut", "sed", "tr", "grep", "head", "tail", "wc", "bc", "expr", "paste")
)
"""Programs whose work one `awk` can do."""


def judge(context: RuleContext) -> Findings:
    """Divide the CPU time of ended child processes by the number of started processes.

    The kernel counts the processes and threads of all programs on the node, so the program may have
    started fewer. If other jobs may share the node, the finding is only possible. Programs in
    Python are not judged: their samples show which line starts the processes.
    """
    if context.mains:
        return
    for node in context.summary.nodes:
        whole_s = context.total(node, "job_cpu_s")
        ended_s = context.total(node, "job_ended_cpu_s")
        started = context.total(node, "tasks_started")
        if not whole_s or not ended_s or not started:
            continue
        share = 100 * ended_s / whole_s
        each_ms = 1000 * ended_s / started
        if (
            share < context.limit("short_percent")
            or ended_s < context.limit("short_min_s")
            or each_ms > context.limit("short_ms")
        ):
            continue
        per_s = started / context.summary.elapsed_s
        recorded = context.run.node(node.name)
        is_whole = recorded is not None and recorded.core_count_node == node.cores
        loops = _by_lines_first(recorded.shell_loops if recorded else ())
        yield context.finding(
            Severity.WARNING,
            f"The program started about {per_s:.0f} short processes per second on {node.name}. "
            f"These processes used {share:.0f} % of the program's CPU time.{_starts(loops)}",
            evidence=(
                Evidence("share of the CPU time that ended child processes used", share, "%"),
                Evidence("processes started on the node", per_s, "1/s"),
                Evidence("mean CPU time of a process, at least", each_ms, "ms"),
            ),
            action=_action(loops),
            subjects=(node,),
            certainty=Certainty.LIKELY if is_whole else Certainty.POSSIBLE,
            # The start of a process is a part of its time.
            regain_percent=(share / 2, share),
        )


def _by_lines_first(loops: Sequence[ShellLoop]) -> list[ShellLoop]:
    """Return the loops that may start the processes: those that read lines, if there are some."""
    reading = [one for one in loops if _READS.search(one.text)]
    found = sorted(reading or loops, key=lambda one: -len(one.commands))
    return found[:_MOST_LOOPS]


def _starts(loops: Sequence[ShellLoop]) -> str:
    """Return a sentence that says which loops of shell scripts start programs."""
    if not loops:
        return ""
    words = [
        f"the loop `{one.text}` at {one.file}:{one.line} starts "
        f"{listed([f'`{name}`' for _, name in one.commands])} (line"
        f"{'s' * (len(_lines(one)) > 1)} {listed(list(map(str, _lines(one))))})"
        for one in loops
    ]
    text = f" In each iteration, {', and '.join(words)}."
    again = _read_again(loops)
    if again:
        text += f" There, the program at line {again[0]} reads the whole file `{again[1]}` again."
    return text


def _read_again(loops: Sequence[ShellLoop]) -> tuple[int, str] | None:
    """Return the first file that a loop reads as a whole in each iteration, and the line."""
    return next((found for one in loops for found in one.read_again), None)


def _lines(loop: ShellLoop) -> list[int]:
    return sorted({line for line, _ in loop.commands})


def _action(loops: Sequence[ShellLoop]) -> str:
    again = _read_again(loops)
    if again:
        loop = next(one for one in loops if again in one.read_again)
        return (
            f"Read `{again[1]}` only once: before the loop at {loop.file}:{loop.line}, select all "
            "wanted lines with one `awk`. For lines by their number, write "
            f"`awk 'NR == FNR {{ want[$1]; next }} FNR in want' LIST {again[1]} > PICKED`, where "
            "LIST has the numbers. For lines by their first column, write `$1 in want` instead of "
            "`FNR in want`. Let the loop read PICKED."
        )
    if len(loops) == 1 and {name for _, name in loops[0].commands} <= _TEXT_TOOLS:
        loop = loops[0]
        return (
            f"Replace the loop at {loop.file}:{loop.line} by one `awk` that reads the whole file: "
            "`awk -F';' '{ print $1, $2 + $3 }' FILE`. `-F` is the character between the columns, "
            "and `$1` the first column of a line. `awk` also computes, and writes with `printf`."
        )
    return (
        "Start fewer processes, and give each process more work. For example, let one program read "
        "the whole file, instead of starting a program for each line."
    )
