"""The backward pass takes much longer than the forward pass."""

from __future__ import annotations

import re

from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import IMPORTS, place_of

RANK = 297
SEVERITY = "remark"
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
}

_BACKWARD = re.compile(r"torch/_tensor\.py:(Tensor\.)?backward$")
_OTHER_DERIVATIVES = re.compile(r"torch/autograd/__init__\.py:grad$|torch/_functorch/")
"""Functions that compute derivatives which are a part of the loss."""
_COMPILED = re.compile(r"torch/_inductor/|torch/_dynamo/eval_frame\.py:(?!DisableContext)")
"""Functions of compiled code, in which modules have no functions of their own."""
_FORWARD = re.compile(r"torch/nn/modules/module\.py:(Module\.)?_call_impl$")


def judge(context: ProgramContext) -> Findings:
    """Compare the time in `backward` with the time in modules outside of `backward`.

    Several ranks are not judged: their backward pass includes the exchange of gradients. Programs
    with a GPU are not judged: their functions end before the GPU has computed. Programs with
    compiled functions, or with derivatives in the loss, are not judged: their usual ratio differs.
    """
    main = context.mains[0] if len(context.mains) == 1 else None
    if main is None or main.process.may_use_device or context.gpus:
        return
    backward_s, forward_s = 0.0, 0.0
    for seen in main.process.stacks:
        places = [place_of(frame) for frame in seen.frames]
        if any(map(_OTHER_DERIVATIVES.search, places)) or any(map(_COMPILED.search, places)):
            if not any(map(IMPORTS.search, places)):
                return
        elif any(map(_BACKWARD.search, places)):
            backward_s += seen.wall_s
        elif any(map(_FORWARD.search, places)):
            forward_s += seen.wall_s
    share = 100 * backward_s / main.process.wall_s
    is_long = backward_s >= context.limit("times_longer") * forward_s > 0
    if not is_long or share < context.limit("backward_percent"):
        return
    if not context.is_loss(backward_s, main):
        return
    yield context.finding(
        Severity.REMARK,
        f"The backward pass took {share:.0f} % of the time, {backward_s / forward_s:.0f} times as "
        "long as the forward pass. Usually, the backward pass takes about twice as long.",
        evidence=(
            Evidence("time in the backward pass", backward_s, "s"),
            Evidence("time in the forward pass", forward_s, "s"),
        ),
        action=(
            "If the model has an `Embedding` with many rows, each step computes a gradient for "
            "every row, even for rows that no sample used. To compute gradients only for used "
            "rows, set `Embedding(…, sparse=True)` and use the optimizer `SGD`, `Adagrad` or "
            "`SparseAdam`. If the loss is built from many small operations, such as a loop over "
            "samples, use one operation for the whole batch."
        ),
        regain_percent=(share / 4, 0.9 * share),
    )
