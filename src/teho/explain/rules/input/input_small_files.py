"""Loading spends its time opening and reading small files."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain.program_context import ProgramContext, Waiting
from teho.explain.rule import STARVED, Mutes, chosen, input_causes_after
from teho.model.finding import Evidence, Finding, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import Part

RANK = 120
SEVERITY = "critical, warning"
THRESHOLDS = {
    "opening_percent": chosen(50.0, "%", "opening files takes most of the loading time"),
    "small_kib": Threshold(
        1024.0, "KiB", "Lustre's usual stripe is 1 MiB: a smaller file is on only one server"
    ),
}
MUTES = Mutes(
    (*input_causes_after("input_small_files"), *STARVED), because="small files limit the speed"
)


def judge(context: ProgramContext) -> Iterator[Finding]:
    """Find loading that spends its time opening and reading files."""
    waiting = context.waiting()
    if waiting is None:
        return
    share = waiting.worked_percent(Part.OPENING)
    if share < context.limit("opening_percent"):
        return
    sample = _sample_bytes(context, waiting)
    if sample is None or sample > context.limit("small_kib") * 1024:
        return
    lost_percent = waiting.share_percent * share / 100
    node = context.node_of(waiting.main)
    network = node.totals.get("netfs_read_bytes", 0.0) if node else 0.0
    yield context.lost_waiting(
        waiting,
        ", mostly for opening and reading small files.",
        evidence=(
            Evidence("share of loading, opening and reading files", share, "%"),
            Evidence("read for each sample", sample, "bytes"),
            *(
                ()
                if isinstance(network, Missing) or network == 0
                else [Evidence("read from NFS and Lustre", network, "bytes")]
            ),
        ),
        judged_by=["opening_percent", "small_kib"],
        action=(
            "Unpack an archive of the files to the node's own disk at the start of the job. Or "
            "pack them into few large files before the job, and read those: `tar` with WebDataset, "
            "HDF5, LMDB or one NumPy array."
        ),
        regain_percent=(lost_percent / 2, lost_percent),
    )


def _sample_bytes(context: ProgramContext, waiting: Waiting) -> float | None:
    """Return the bytes read on the node per sample of all its ranks.

    None, and noted if it should have been recorded, if it is not known.
    """
    node, loader = context.node_of(waiting.main), waiting.main.feed.loader
    batch_size = waiting.settings.get("batch_size")
    if node is None or loader is None or not batch_size:
        return None
    found = node.totals.get("job_read_calls_bytes", Missing(Reason.UNRECORDED))
    read = context.figure(node, "job read calls", found)
    samples = max(1, loader.batches) * batch_size * context.ranks_beside(waiting.main)
    return None if read is None else read / samples
