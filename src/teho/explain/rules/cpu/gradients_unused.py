"""The backward pass computes gradients of parameters that no optimizer changes."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.where import BACKWARD, time_in

RANK = 261
SEVERITY = "critical, warning"
THRESHOLDS = {
    "unused_percent": chosen(
        30.0,
        "%",
        "below this limit, most of the backward pass is for parameters that an optimizer changes",
    ),
}
MUTES = ("backward_long",)
MUTES_BECAUSE = "this finding says why the backward pass takes long"


def judge(context: ProgramContext) -> Findings:
    """Compare the parameters that have gradients with the parameters of all optimizers.

    The probe compares them after some steps. If the first part of the model is frozen, this part
    needs no backward pass. Teho estimates the time for the unused gradients by their number.
    """
    for main in context.mains:
        found = main.library.get("unused_gradients")
        if not isinstance(found, dict) or not found.get("unused"):
            continue
        unused, used = found["unused"], found.get("used", 0)
        part = unused / (unused + used)
        if 100 * part < context.limit("unused_percent"):
            continue
        backward_s, lines = time_in(main.process, BACKWARD)
        needless_s = part * backward_s
        if not context.is_loss(needless_s, main):
            continue
        share = 100 * needless_s / main.process.wall_s
        yield context.lost(
            f"The backward pass computes gradients for {unused:,} parameters that no optimizer "
            f"changes. These are {100 * part:.0f} % of all parameters with gradients.",
            share_percent=share,
            evidence=(
                Evidence("parameters with gradients that no optimizer changes", float(unused)),
                Evidence("parameters with gradients that an optimizer changes", float(used)),
                Evidence("time in the backward pass", 100 * backward_s / main.process.wall_s, "%"),
            ),
            action=(
                "If a part of the model is not trained, freeze it: "
                "`encoder.requires_grad_(False)`. If the frozen part is the first part of the "
                "model, also compute its output without gradients: "
                "`with torch.no_grad(): features = encoder(x)`. If the part must be trained, give "
                "its parameters to the optimizer."
            ),
            regain_percent=(share / 2, share),
            lines=lines,
        )
        return
