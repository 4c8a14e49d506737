"""cuDNN searches for the fastest algorithms again and again, because the sizes of inputs change.

With `torch.backends.cudnn.benchmark = True`, PyTorch measures several algorithms for each
convolution the first time that it gets an input of a new size. If all inputs have the same size,
this costs only the first step. If each batch has another size, it costs more than the training.
"""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, chosen
from teho.explain.where import BACKWARD, LineTimes, place_of
from teho.explain.wording import listed
from teho.model.in_source import CostlyOption
from teho.model.program import MainProcess
from teho.model.stack import Frame, Seen, State
from teho.patterns import lazy_pattern

RANK = 196
SEVERITY = "critical, warning"
THRESHOLDS = {
    "sizes_min": chosen(
        4,
        "sizes",
        "of the first 20 batches of a data loader; the last batch of an epoch may have another "
        "size, and cuDNN keeps the algorithms for a few sizes",
    ),
    "convolutions_percent": chosen(
        10.0,
        "%",
        "to start a convolution takes some tens of microseconds: without a search, a program "
        "seldom waits for it for a tenth of its time",
    ),
    "busy_percent": chosen(
        50.0, "%", "during a search, the GPU computes little; if it is busy, it trains"
    ),
}
MUTES = (
    "gpu_low_use", "gpu_sm_low", "gpu_low_occupancy", "cpu_busy_gpu_idle", "gpu_launch_bound",
    "host_bound", "problem_too_small", "batch_small", "waits_for_device",
)  # fmt: skip
MUTES_BECAUSE = "the search explains why the GPU has little work"

_SETTINGS = frozenset(("cudnn_benchmark", "cudnn_benchmark_by_lightning"))
_CHANGES = "width_changes"
_CONVOLUTION = lazy_pattern(r"torch/nn/modules/conv\.py:.*_conv_forward$")
_BY_FUNCTION = lazy_pattern(r"\b(F|functional|torch)\.conv(_transpose)?[123]d\(")
_BACKWARD_STATES = (State.THREADS, State.NATIVE)
_AXES = 3
"""Least number of axes of a batch of images or series."""
_REGAIN = (0.5, 0.95)


def judge(context: ProgramContext) -> Findings:
    """Check the setting, the sizes of the batches, and the time in convolutions."""
    for main in context.mains[:1]:
        options = main.process.costly_options
        settings = [one.at for one in options if one.name in _SETTINGS]
        is_on = main.library.get("cudnn_benchmark", bool(settings))
        changes = [one for one in options if one.name == _CHANGES]
        sizes = _sizes(main)
        is_measured = sizes >= context.limit("sizes_min")
        if not is_on or not (is_measured or (changes and not sizes)):
            continue
        forward_s, backward_s, lines = _times(main)
        share = 100 * forward_s / context.work_s(main)
        use = context.gpu_use(main)
        if share < context.limit("convolutions_percent"):
            continue
        if use is None or use.busy_percent >= context.limit("busy_percent"):
            continue
        busy = f"{use.busy_percent:.{0 if use.busy_percent >= 1 else 1}f}"
        searched = min(100.0, 100 * (forward_s + backward_s) / main.process.wall_s)
        if not context.is_loss(forward_s + backward_s, main) or _is_only_at_first(context, main):
            continue
        # An array with two axes may have labels, whose widths do not change a convolution.
        is_image = any(int(one.words.get("axes", 2)) >= _AXES for one in changes)
        yield context.lost(
            "cuDNN searches for the fastest algorithm of each convolution again when a batch has a "
            f"new size ({_setting(settings)}), and the sizes of the batches change. Convolutions "
            f"and the backward pass took {searched:.0f} % of the run time, but the GPU was busy "
            f"only {busy} % of the time{use.during}.",
            share_percent=searched,
            evidence=(
                Evidence("time in convolutions, forward", share, "%"),
                Evidence("time in convolutions and the backward pass", searched, "%"),
                use.evidence,
                *([Evidence("sizes of the first batches", sizes)] if is_measured else []),
                *(Evidence("the width changes at", one.at.short_place) for one in changes[:1]),
            ),
            action=_action(settings, changes),
            regain_percent=(_REGAIN[0] * searched, _REGAIN[1] * searched),
            lines=lines,
            certainty=Certainty.LIKELY if is_measured or is_image else Certainty.POSSIBLE,
        )


def _is_only_at_first(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether convolutions take little time in the last part of a run.

    If all inputs have the same size, only the first steps search.
    """
    last = main.process.parts[-1] if main.process.parts else ()
    whole_s = sum(seen.wall_s for seen in last)
    forward_s = sum(seen.wall_s for seen in last if _is_convolution(seen))
    return whole_s > 0 and 100 * forward_s < context.limit("convolutions_percent") * whole_s


def _sizes(main: MainProcess) -> int:
    """Return in how many sizes the first batches of a data loader came; 0 if it is not known."""
    found = [one.batch.get("sizes") for one in main.process.loaders]
    return max((one for one in found if isinstance(one, int)), default=0)


def _times(main: MainProcess) -> tuple[float, float, Sequence[tuple[Frame, float]]]:
    """Return the time in convolutions, that in backward passes, in s, and the slowest lines."""
    forward_s = backward_s = 0.0
    lines = LineTimes()
    for seen in main.process.stacks:
        if _is_convolution(seen):
            forward_s += seen.wall_s
            lines.add(seen)
        elif seen.state in _BACKWARD_STATES and any(
            BACKWARD.search(place_of(frame)) for frame in seen.frames
        ):
            backward_s += seen.wall_s
    return forward_s, backward_s, lines.slowest()


def _is_convolution(seen: Seen) -> bool:
    if not seen.frames:
        return False
    first = seen.frames[0]
    is_layer = _CONVOLUTION.search(place_of(first)) is not None
    return is_layer or _BY_FUNCTION.search(first.text) is not None


def _setting(settings: Sequence[Frame]) -> str:
    if not settings:
        return "`torch.backends.cudnn.benchmark` is on"
    return listed([f"`{one.short_text}` at {one.short_place}" for one in settings])


def _action(settings: Sequence[Frame], changes: Sequence[CostlyOption]) -> str:
    places = f" at {listed([one.short_place for one in settings])}" if settings else ""
    by_trainer = any("Trainer" in one.text or "benchmark=" in one.text for one in settings)
    off = "`benchmark=False`" if by_trainer else "`torch.backends.cudnn.benchmark = False`"
    return (
        f"Switch the search off: write {off}{places}. PyTorch then chooses the algorithms without "
        f"measuring them. Or keep the search, and use few sizes: {_few_sizes(changes)}."
    )


def _few_sizes(changes: Sequence[CostlyOption]) -> str:
    if not changes or not changes[0].at.text.isidentifier():
        return "pad each batch to the next multiple of 64"
    at = changes[0].at
    return f"at {at.short_place}, write `-(-{at.text} // 64) * 64` instead of `{at.text}`"
