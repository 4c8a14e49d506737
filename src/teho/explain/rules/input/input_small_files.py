"""Most of the loading time goes to opening and reading small files."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.program_context import Waiting
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold, chosen
from teho.model.program import Part

RANK = 120
SEVERITY = "critical, warning"
THRESHOLDS = {
    "opening_percent": chosen(
        50.0, "%", "above this limit, opening files takes most of the loading time"
    ),
    "small_kib": Threshold(
        1024.0,
        "KiB",
        "the file system Lustre usually divides files into stripes of 1 MiB: a smaller file "
        "is on only one server",
    ),
}
MUTES = (*input_causes_after("input_small_files"), *STARVED)
MUTES_BECAUSE = "small files limit the speed; other changes of the data loader help little"


def judge(context: ProgramContext) -> Findings:
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
    network = node.totals.get("netfs_read_bytes") if node else None
    over_network = []
    if isinstance(network, float) and network > 0:
        over_network = [Evidence("data read from NFS and Lustre", network, "bytes")]
    yield context.lost_waiting(
        waiting,
        ", mostly for opening and reading small files.",
        evidence=(
            Evidence("share of the loading time spent on opening and reading files", share, "%"),
            Evidence("data read for each sample", sample, "bytes"),
            *over_network,
        ),
        action=(
            "At the start of the job, unpack an archive of the files to the node's own disk. Or "
            "pack the files into a few large files before the job: `teho pack FOLDER packed`. Then "
            'read the large files with `teho.feed.packed("packed")` or with WebDataset. You can '
            "also store all samples in an HDF5 file, in an LMDB database or in a NumPy array."
        ),
        regain_percent=(lost_percent / 2, lost_percent),
    )


def _sample_bytes(context: ProgramContext, waiting: Waiting) -> float | None:
    """Return the bytes read on the node per sample of all its ranks.

    None, and noted if it should have been recorded, if it is not known.
    """
    node, batch_size = context.node_of(waiting.main), waiting.settings.get("batch_size")
    if node is None or not batch_size:
        return None
    read = context.total(node, "job_read_calls_bytes")
    samples = max(1, waiting.loader.batches) * batch_size * context.ranks_beside(waiting.main)
    return None if read is None else read / samples
