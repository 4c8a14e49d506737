"""The program runs the same command again and again."""

from __future__ import annotations

from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen

RANK = 296
SEVERITY = "warning"
CERTAINTY = Certainty.POSSIBLE
THRESHOLDS = {
    "repeated_percent": chosen(
        20.0, "%", "below this limit, running the command only once would save little time"
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
MUTES = ("serial_program", "cores_unused")
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


def judge(context: RuleContext) -> Findings:
    """Find a command line that many processes had, one after the other.

    The recorder looks at the processes once in each sample, so it may miss short processes. The
    programs are those that read files and write text: with the same arguments and the same files,
    their output is the same. Whether the files changed is not known.
    """
    for node in context.run.nodes:
        if node.program_samples < context.limit("samples_min"):
            continue
        for program in node.programs:
            share = 100 * program.command_samples / node.program_samples
            if (
                program.name not in _READERS
                or program.command_processes < context.limit("processes_min")
                or share < context.limit("repeated_percent")
            ):
                continue
            least = program.command_processes
            yield context.finding(
                Severity.WARNING,
                f"The same command ran at least {least} times on {node.name}, for {share:.0f} % "
                f"of the time: `{program.command}`.",
                evidence=(
                    Evidence("share of the run time in which the command ran", share, "%"),
                    Evidence("least number of processes with this command line", float(least)),
                ),
                action=(
                    "If the files do not change between the calls, run the command only once: "
                    "write its output to a file, and read this file instead. Or read the data "
                    "only once, with one program that does the work of all calls: for example, "
                    "an `awk` program that keeps the result of each call in an array."
                ),
                regain_percent=(share / 3, share * (1 - 1 / least)),
            )
