"""The gradient of a large table has a value for each row, but a batch uses only a few rows."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.where import time_in
from teho.patterns import lazy_pattern
from teho.units import format_bytes

RANK = 262
SEVERITY = "critical, warning"
THRESHOLDS = {
    "used_max_percent": chosen(
        20.0,
        "%",
        "if a step uses more of the rows, computing gradients only for used rows would save little",
    ),
    "table_percent": chosen(
        50.0, "%", "below this limit, most of the time of a step is spent on other parameters"
    ),
}
MUTES = ("backward_long",)
MUTES_BECAUSE = "this finding says why the backward pass takes long"

_GRADIENTS = lazy_pattern(
    r"torch/(_tensor\.py:(Tensor\.)?backward|autograd/__init__\.py:backward|optim/|nn/utils/clip_grad)"
)
"""Functions that make, change or use gradients."""
_OTHERS = {
    "SGD": "The optimizer `SGD` can use sparse gradients.",
    "Adagrad": "The optimizer `Adagrad` can use sparse gradients.",
}
_SPARSE = (
    "`Adam` and `AdamW` cannot use sparse gradients: give this table to `torch.optim.SparseAdam`, "
    "and the other parameters to your optimizer."
)


def judge(context: ProgramContext) -> Findings:
    """Judge the largest table whose gradient has a value for each row.

    After some steps, the probe counts the rows with a gradient other than zero. Teho multiplies the
    time of the backward pass, of the optimizer and of resetting the gradients by the share of the
    table in all parameters.
    """
    for main in context.mains:
        table, size = main.library.get("table_gradient"), main.library.get("parameter_bytes")
        if not isinstance(table, dict) or not isinstance(size, int) or not size:
            continue
        used, part = table["used_percent"], min(1.0, table["bytes"] / size)
        too_small = 100 * part < context.limit("table_percent")
        if used > context.limit("used_max_percent") or too_small:
            continue
        spent_s, lines = time_in(main.process, _GRADIENTS, by_own_line=True)
        needless_s = part * (1 - used / 100) * spent_s
        if not context.is_loss(needless_s, main):
            continue
        share = 100 * needless_s / main.process.wall_s
        yield context.lost(
            f"Each step computes a gradient of {format_bytes(table['bytes'])} for all "
            f"{table['rows']:,} rows of an embedding table, but only {used:.2g} % of the rows "
            "were used.",
            share_percent=share,
            evidence=(
                Evidence("rows of the table", float(table["rows"])),
                Evidence("share of the rows that one step used", used, "%"),
                Evidence("time spent on gradients", 100 * spent_s / main.process.wall_s, "%"),
            ),
            action=(
                "Compute gradients only for the rows that a batch uses: `torch.nn.Embedding(..., "
                f"sparse=True)`. {_OTHERS.get(str(main.library.get('optimizer')), _SPARSE)}"
            ),
            regain_percent=(share / 3, 0.9 * share),
            lines=lines,
        )
        return
