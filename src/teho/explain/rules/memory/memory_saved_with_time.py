"""The backward pass computes activations again to save memory, although much memory is free."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.activities import activity_of
from teho.explain.options import option_of_rule
from teho.explain.places import gpus_of
from teho.explain.program_context import in_lines, is_on_gpu
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import LineTimes
from teho.model.missing import Missing
from teho.model.program import MainProcess
from teho.model.stack import Frame
from teho.model.watched import WatchedProcess

RANK = 203
SEVERITY = "critical, warning, remark"
CERTAINTY = Certainty.LIKELY
THRESHOLDS = {
    "used_percent": chosen(
        50.0,
        "%",
        "if the program keeps its activations, they may need as much memory as everything else "
        "together, so half of the memory must be free",
    ),
    "recomputed_min_s": chosen(
        1.0,
        "s",
        "Teho looks about 20 times per second at what the program does, so this time has about "
        "20 samples",
    ),
    "recomputed_percent": chosen(
        30.0,
        "%",
        "computing all activations again normally takes less than this share: about a quarter of "
        "the time of a step",
    ),
}

_ACTIVITY = "activations_recomputed"
_HOOK = "unpack_hook"
"""Function of `torch.utils.checkpoint` that computes activations again."""


def judge(context: ProgramContext) -> Findings:
    """Compare the time of computing activations again with the memory that was not used."""
    for main in context.mains[:1]:
        wall_s, lines = _recomputed(main.process)
        if wall_s < context.limit("recomputed_min_s"):
            continue
        share = 100 * wall_s / main.process.wall_s
        if share < context.limit("lost_percent"):
            continue
        used = _used_percent(context, main)
        remove = option_of_rule(main, "memory_saved_with_time") or (
            "remove `torch.utils.checkpoint` (`gradient_checkpointing=False` in Transformers)"
        )
        if used is not None and used < context.limit("used_percent"):
            yield context.lost(
                f"{_sentence(lines, share)}, although only {used:.0f} % of the memory was used.",
                share_percent=share,
                evidence=(
                    Evidence("time spent on computing activations again", share, "%"),
                    Evidence("used share of the memory, highest", used, "%"),
                ),
                action=(
                    f"Keep the activations: {remove}. If the activations do not fit into the "
                    "memory, use `torch.utils.checkpoint` only for some layers."
                ),
                judged_by=["used_percent"],
                regain_percent=(0.7 * share, share),
                lines=lines,
            )
        elif share >= context.limit("recomputed_percent"):
            yield context.finding(
                Severity.REMARK,
                f"{_sentence(lines, share)}.",
                evidence=(
                    Evidence("time spent on computing activations again", share, "%"),
                    *in_lines(lines),
                ),
                action=(
                    "If the memory is large enough, use `torch.utils.checkpoint` only for some "
                    "layers. First check the highest memory use."
                ),
                judged_by=["recomputed_percent"],
                certainty=Certainty.POSSIBLE,
            )


def _recomputed(process: WatchedProcess) -> tuple[float, Sequence[tuple[Frame, float]]]:
    """Return the time of computing activations again in s, and the lines that led to it."""
    wall_s, lines = 0.0, LineTimes()
    for seen in process.stacks:
        if not any(frame.function.endswith(_HOOK) for frame in seen.frames):
            continue  # most stacks: their activity is not needed
        activity = activity_of(seen)
        if activity is not None and activity.name == _ACTIVITY:
            wall_s += seen.wall_s
            lines.add(seen)
    return wall_s, lines.slowest()


def _sentence(lines: Sequence[tuple[Frame, float]], share: float) -> str:
    frame = lines[0][0] if lines else None
    place = f" at {frame.short_place}" if frame else ""
    return (
        f"The backward pass{place} computed activations again (checkpointing) for {share:.0f} % "
        "of the time"
    )


def _used_percent(context: ProgramContext, main: MainProcess) -> float | None:
    """Return the highest used share of the memory for activations; None if it is not known."""
    node = context.node_of(main)
    if node is None:
        return None
    if is_on_gpu(main):
        shares = []
        for gpu in gpus_of(node):
            used = context.stat(gpu, "gpu_memory_used_bytes")
            total = context.gpu_memory_total(gpu) if used else None
            shares.append(100 * used.max / total if used and total else None)
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None
    peak, limit = node.memory_peak_bytes, node.memory_limit_bytes
    if isinstance(peak, Missing) or isinstance(limit, Missing) or not limit:
        return None
    return 100 * peak / limit
