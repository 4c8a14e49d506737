"""The backward pass takes much longer than the forward pass."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import BACKWARD, IMPORTS, doing_in, place_of
from teho.model.program import Doing
from teho.model.stack import Seen, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern
from teho.units import MIB

RANK = 297
SEVERITY = "remark, hint"
CERTAINTY = Certainty.LIKELY
THRESHOLDS = {
    "times_longer": chosen(
        8.0,
        "times",
        "the backward pass usually takes about twice as long as the forward pass; with "
        "checkpointing, which computes activations again, about three times as long",
    ),
    "backward_percent": chosen(
        30.0, "%", "below this limit, a faster backward pass would save little"
    ),
    "parameters_mib": chosen(
        4.0,
        "MiB",
        "a model with smaller parameters has no large table; the probe uses the same limit for "
        "tables",
    ),
}

_OTHER_DERIVATIVES = lazy_pattern(r"torch/autograd/__init__\.py:grad$|torch/_functorch/")
"""Functions that compute derivatives which are a part of the loss."""
_COMPILED = lazy_pattern(r"torch/_inductor/|torch/_dynamo/eval_frame\.py:(?!DisableContext)")
"""Functions of compiled code, in which modules have no functions of their own."""
_NOT_FORWARD = lazy_pattern(
    r"torch/(optim/|nn/utils/(clip_grad|parametriz)|serialization\.py|cuda/)"
)
_COMPUTING = frozenset((Doing.PYTHON, Doing.NATIVE, Doing.THREADS, Doing.CORE))


def judge(context: ProgramContext) -> Findings:
    """Compare the time in `backward` with the computing outside of `backward` and the optimizer.

    The loss is often computed outside of modules, for example by a loop. So all other computing of
    the steps counts as the forward pass. Several ranks are not judged: their backward pass includes
    the exchange of gradients. Programs with a GPU are not judged: their functions end before the
    GPU has computed. Programs with compiled functions, or with derivatives in the loss, are not
    judged: their usual ratio differs. If the parameters are small, the model has no large table. It
    is then not known why the backward pass takes long, so the finding is only a hint.
    """
    main = context.mains[0] if len(context.mains) == 1 else None
    if main is None or main.process.may_use_device or context.gpus:
        return
    times = _times(main.process)
    if times is None:
        return
    backward_s, forward_s = times
    share = 100 * backward_s / main.process.wall_s
    is_long = backward_s >= context.limit("times_longer") * forward_s > 0
    if not is_long or share < context.limit("backward_percent"):
        return
    if not context.is_loss(backward_s, main):
        return
    size = main.library.get("parameter_bytes")
    may_have_table = isinstance(size, int) and size >= context.limit("parameters_mib") * MIB
    yield context.finding(
        Severity.REMARK if may_have_table else Severity.HINT,
        f"The backward pass took {share:.0f} % of the time, {backward_s / forward_s:.0f} times as "
        "long as the forward pass. Usually, the backward pass takes about twice as long.",
        evidence=(
            Evidence("time in the backward pass", backward_s, "s"),
            Evidence("time in the forward pass", forward_s, "s"),
        ),
        action=_OF_TABLES if may_have_table else _OF_PARTS,
        regain_percent=(share / 4, 0.9 * share) if may_have_table else None,
    )


_OF_TABLES = (
    "If the model has an `Embedding` with many rows, each step computes a gradient for "
    "every row, even for rows that no sample used. To compute gradients only for used "
    "rows, set `Embedding(…, sparse=True)` and use the optimizer `SGD`, `Adagrad` or "
    "`SparseAdam`."
)
_OF_PARTS = (
    "If a loop cuts parts out of one tensor, such as `x[:, t]`, the backward pass makes a gradient "
    "of the size of the whole tensor for each part. Divide the tensor once, before the loop: "
    "`for part in x.unbind(1)`."
)


def _times(process: WatchedProcess) -> tuple[float, float] | None:
    """Return the time of the backward and of the forward passes in s, without the set-up.

    None: the program has compiled functions, or derivatives in the loss.
    """
    backward_s = forward_s = 0.0
    for sign, stacks in ((1, process.stacks), (-1, process.set_up)):
        for seen in stacks:
            places = [place_of(frame) for frame in seen.frames]
            if _has(_OTHER_DERIVATIVES, places) or _has(_COMPILED, places):
                if not _has(IMPORTS, places):
                    return None
            elif _has(BACKWARD, places):
                backward_s += sign * seen.wall_s
            elif _is_forward(seen, places) and doing_in(process, seen) in _COMPUTING:
                forward_s += sign * seen.wall_s
    return backward_s, max(0.0, forward_s)


def _is_forward(seen: Seen, places: Sequence[str]) -> bool:
    """Return whether a stack may be in a forward pass, and not in the optimizer.

    The optimizer of Lightning calls the forward pass of the program.
    """
    at = next((at for at, place in enumerate(places) if _NOT_FORWARD.search(place)), None)
    return at is None or not all(is_library(frame.file) for frame in seen.frames[:at])


def _has(pattern: re.Pattern[str], places: Sequence[str]) -> bool:
    return any(map(pattern.search, places))
