"""The data are many small files, and opening them takes the time."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, Waiting, waited
from teho.explain.rule import STARVED, Mutes, input_causes_after
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import Part

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_small_files"
RANK = 120
SAYS = "loading spends its time opening and reading small files"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "opening_percent": Threshold(50.0, "%", "Teho's own choice: most of the loading"),
    "small_kib": Threshold(
        1024.0, "KiB", "Lustre's usual stripe, 1 MiB: a file below it is on only one server"
    ),
}
MUTES = Mutes(
    (
        *input_causes_after(KIND),
        *STARVED,
    ),
    because="the files set the pace",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at loading that spends its time in opening and reading files."""
    waiting = context.waiting()
    if waiting is None:
        return []
    share = waiting.worked_percent(Part.OPENING)
    if share < context.limit("opening_percent"):
        return []
    sample = _sample_bytes(context, waiting)
    if sample is None or sample > context.limit("small_kib") * 1024:
        return context.outcome([])
    lost_percent = waiting.share_percent * share / 100
    return [
        context.lost(
            f"{waited(waiting)}, most of it in opening and reading small files.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("of loading, opening and reading files", share, "%"),
                Evidence("read for each sample", sample, "bytes"),
                *_from_network(context, waiting),
            ),
            judged_by=["opening_percent", "small_kib"],
            action=(
                "Unpack an archive of them to the node's own disk at the job's start; or pack them "
                "into few large files before the job, and read those: `tar` with WebDataset, HDF5, "
                "LMDB or one NumPy array."
            ),
            regain_percent=(lost_percent / 2, lost_percent),
            lines=waiting.main.feed.lines,
        )
    ]


def _sample_bytes(context: ProgramContext, waiting: Waiting) -> float | None:
    """Return what was read on the node for each sample of all its ranks.

    None if that is not known, which is noted where it was to be recorded.
    """
    node, loader = context.node_of(waiting.main), waiting.main.feed.loader
    batch_size = waiting.settings.get("batch_size")
    if node is None or loader is None or not batch_size:
        return None
    found = node.totals.get("job_read_calls_bytes", Missing(Reason.UNRECORDED))
    read = context.figure(node, "job read calls", found)
    samples = max(1, loader.batches) * batch_size * context.ranks_beside(waiting.main)
    return None if read is None else read / samples


def _from_network(context: ProgramContext, waiting: Waiting) -> tuple[Evidence, ...]:
    """Return what the node read from file systems of the network, where it is known to have."""
    node = context.node_of(waiting.main)
    read = node.totals.get("netfs_read_bytes", 0.0) if node else 0.0
    if isinstance(read, Missing) or read == 0:
        return ()
    return (Evidence("read from NFS and Lustre", read, "bytes"),)
