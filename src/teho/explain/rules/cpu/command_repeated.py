"""The program runs the same command again and again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen
from teho.model.run import Node, ProgramUse

RANK = 296
SEVERITY = "warning"
CERTAINTY = Certainty.POSSIBLE
THRESHOLDS = {
    "repeated_percent": chosen(
        20.0, "%", "below this limit, running the command only once would save little time"
    ),
    "explains_percent": chosen(
        50.0,
        "%",
        "above this limit, the command is the main reason why the program starts many processes",
    ),
    "samples_min": chosen(
        10.0, "samples", "with fewer samples, the share of the run time is too uncertain"
    ),
    "processes_min": chosen(
        5.0,
        "processes",
        "a script may read the same file a few times for different purposes, for example to count "
        "its lines first",
    ),
}
MUTES = ("short_processes", "serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says which command takes the time"

_READERS = frozenset(
    (
        "awk", "gawk", "mawk", "sed", "grep", "egrep", "fgrep", "zgrep", "rg", "cut", "sort",
        "uniq", "wc", "cat", "zcat", "gzip", "gunzip", "bzip2", "bzcat", "xz", "xzcat", "zstd",
        "zstdcat", "lz4", "pigz", "unzip", "tar", "7z", "jq", "xmllint", "samtools", "bcftools",
        "bedtools", "seqkit", "seqtk", "gdalinfo", "gdal_translate", "ogr2ogr", "ncdump", "ncks",
        "cdo", "h5dump", "ffmpeg", "ffprobe", "convert", "identify", "sqlite3", "duckdb",
    )
)  # fmt: skip
"""Programs whose output depends only on their arguments and on the files that they read."""
_PATTERNS_FIRST = frozenset(
    ("awk", "gawk", "mawk", "sed", "grep", "egrep", "fgrep", "zgrep", "rg", "jq")
)
"""Programs whose first argument is not a file, unless an option gives the pattern or program."""
_PATTERN_OPTIONS = ("-e", "-f", "--regexp", "--file", "--expression", "--from-file")
_WITH_VALUE = {
    "sort": ("-k", "-t", "-o", "-S", "-T"), "cut": ("-f", "-d", "-c", "-b"),
    "uniq": ("-f", "-s", "-w"), "awk": ("-F", "-v"), "gawk": ("-F", "-v"), "mawk": ("-F", "-v"),
    "grep": ("-m", "-A", "-B", "-C"), "egrep": ("-m", "-A", "-B", "-C"),
    "fgrep": ("-m", "-A", "-B", "-C"), "xz": ("-T",), "zstd": ("-T",), "pigz": ("-p",),
}  # fmt: skip
"""Options that are followed by a value which is not a file."""
_FILTERS = frozenset((*_PATTERNS_FIRST, *_WITH_VALUE, "wc", "cat", "zcat", "gzip", "gunzip",
                      "bzip2", "bzcat", "xzcat", "zstdcat", "lz4"))  # fmt: skip
"""Programs that read their standard input if no file is among their arguments."""
_DECOMPRESSORS = frozenset(
    ("zcat", "gzip", "gunzip", "bzip2", "bzcat", "xz", "xzcat", "zstd", "zstdcat", "lz4", "pigz",
     "unzip", "tar", "7z", "cat")
)  # fmt: skip
_SELECTORS = ("awk", "gawk", "mawk", "grep", "egrep", "fgrep", "rg", "sed")
"""Programs that a loop often gives another pattern or value each time."""


def judge(context: RuleContext) -> Findings:
    """Find a command line that many processes had, one after the other.

    The recorder lists the processes once in each sample, so it may miss short processes. The
    programs are those that read files and write text: with the same arguments and the same files,
    their output is the same. A program that reads its standard input has other data each time, so
    it does not count. Whether the files changed is not known.
    """
    for node in context.run.nodes:
        if node.program_samples < context.limit("samples_min"):
            continue
        found = list(_repeated(context, node))
        is_main = any(share >= context.limit("explains_percent") for _, share in found)
        for program, share in found:
            least = program.command_processes
            other = _selector(context, node, program)
            yield context.finding(
                Severity.WARNING,
                f"The same command ran at least {least} times on {node.name}, for {share:.0f} % "
                f"of the time: `{program.command}`.",
                evidence=(
                    Evidence("share of the run time in which the command ran", share, "%"),
                    Evidence("least number of processes with this command line", float(least)),
                    *(
                        [Evidence("program that ran beside it, with other arguments", other)]
                        if other
                        else []
                    ),
                ),
                action=_action(is_selected=bool(other)),
                regain_percent=(share / 3, share * (1 - 1 / least)),
                doubts=() if is_main else ("short_processes",),
            )


def _repeated(context: RuleContext, node: Node) -> Iterator[tuple[ProgramUse, float]]:
    """Yield programs with a repeated command, each with its share of the time, longest first."""
    for program in sorted(node.programs, key=lambda one: -one.command_samples):
        share = 100 * program.command_samples / node.program_samples
        if (
            program.name in _READERS
            and program.command_processes >= context.limit("processes_min")
            and share >= context.limit("repeated_percent")
            and _has_file(program)
        ):
            yield program, share


def _has_file(program: ProgramUse) -> bool:
    """Return whether a command reads a file that is among its arguments."""
    if program.name not in _FILTERS:
        return True
    try:
        words = shlex.split(program.command.rstrip("…"))[1:]
    except ValueError:  # its end was cut off
        words = program.command.split()[1:]
    return bool(_files(program.name, words))


def _files(name: str, words: Sequence[str]) -> list[str]:
    found: list[str] = []
    has_pattern = name not in _PATTERNS_FIRST
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith(_PATTERN_OPTIONS) and name in _PATTERNS_FIRST:
            has_pattern = True
            is_value = word in _PATTERN_OPTIONS
        elif word in _WITH_VALUE.get(name, ()):
            is_value = True
        elif word.startswith("-"):
            continue
        elif not has_pattern:
            has_pattern = True
        else:
            found.append(word)
    return found


def _selector(context: RuleContext, node: Node, program: ProgramUse) -> str:
    """Return a program beside a decompressor that ran as often, with other arguments each time."""
    if program.name not in _DECOMPRESSORS:
        return ""
    for one in node.programs:
        is_often = one.processes >= context.limit("processes_min")
        varies = 2 * one.command_processes <= one.processes
        if one.name in _SELECTORS and is_often and varies:
            return one.name
    return ""


def _action(*, is_selected: bool) -> str:
    if is_selected:
        return (
            "Remove the loop, and read the file only once, with one `awk` program for all values "
            "of the loop. For example, if the loop runs `$3 == key { n[$2]++ }` for each `key`, "
            "use column 3 as part of the array's index instead: `{ n[$3, $2]++ } END { for (k in "
            'n) { split(k, p, SUBSEP); print p[2], n[k] > (p[1] ".txt") } }`.'
        )
    return (
        "If the files do not change between the calls, run the command only once: "
        "write its output to a file, and read this file instead. Or read the data "
        "only once, with one program that does the work of all calls: for example, "
        "an `awk` program that keeps the result of each call in an array."
    )
