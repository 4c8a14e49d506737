"""Matrix products took a large part of the time on one core."""

from __future__ import annotations

from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, chosen
from teho.explain.where import LineTimes
from teho.model.program import MainProcess
from teho.model.stack import Frame, State, is_library
from teho.patterns import lazy_pattern

RANK = 299
SEVERITY = "critical, warning"
THRESHOLDS = {
    "products_percent": chosen(
        20.0, "%", "below this limit, faster matrix products would save little"
    ),
    "second_core": chosen(
        0.25,
        "cores",
        "if a matrix product could use a second core, this core would be busy for most of the "
        "product's time",
    ),
    "without_core_percent": chosen(
        10.0,
        "%",
        "if the main thread waited longer for a core, other threads or programs used the cores, "
        "and a product could not use a second core",
    ),
}
MUTES = ("serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says which part of the program used only one core"

_PRODUCT = lazy_pattern(r"[\w)\]] @ [\w(]|\b(np|numpy)\.(dot|matmul|inner|tensordot)\(|\.dot\(")
"""A product as a call into native code: its line is the innermost one."""


def judge(context: ProgramContext) -> Findings:
    """Find long matrix products of NumPy that used no second core.

    NumPy's linear algebra library multiplies large arrays of real and complex numbers on all cores
    that it may use. Other types have loops of their own on one core. A sample counts if the thread
    was inside one long call, so the products are not tiny. The types of the arrays are not known.

    If the thread waited for a core, no second core was free for the products: no finding.
    """
    main = context.mains[0] if len(context.mains) == 1 else None
    if main is None or main.children:
        return
    node = context.node_of(main)
    threads = main.process.libraries.get("numpy", {}).get("blas_threads")
    if node is None or node.cores < 2 or not isinstance(threads, int) or threads < 2:
        return
    without_core_s = main.process.wait_for_core_s or 0.0
    if 100 * without_core_s > context.limit("without_core_percent") * main.process.wall_s:
        return
    spent_s, lines = _products(main)
    share = 100 * spent_s / main.process.wall_s
    used = context.figure(node, "CPU cores used", node.cpu_cores_used)
    if share < context.limit("products_percent") or used is None:
        return
    second = (used - 1) * 100 / share
    if second > context.limit("second_core") or not context.is_loss(spent_s, main):
        return
    yield context.lost(
        f"Matrix products took {share:.0f} % of the time, but used only one of {node.cores} cores.",
        share_percent=share,
        evidence=(
            Evidence("time spent on matrix products", share, "%"),
            Evidence("cores used, mean", used, "cores"),
            Evidence("threads that NumPy's linear algebra library may use", float(threads)),
        ),
        action=(
            "Look at the types of these arrays (`x.dtype`). For integers, booleans, `float16` "
            "and objects, NumPy uses a slow loop on one core. Convert such arrays to `np.float32` "
            "or `np.float64` before the product: `x.astype(np.float32)`. If the arrays already "
            "have one of these two types, multiply larger arrays at once."
        ),
        regain_percent=(share / 4, 0.95 * share),
        lines=lines,
        certainty=Certainty.POSSIBLE,
    )


def _products(main: MainProcess) -> tuple[float, tuple[tuple[Frame, float], ...]]:
    """Return the time inside long matrix products in s, and their lines."""
    total_s, lines = 0.0, LineTimes()
    for seen in main.process.stacks:
        inner = seen.frames[0] if seen.frames else None
        if inner is None or seen.state is not State.NATIVE or is_library(inner.file):
            continue
        if _PRODUCT.search(inner.text):
            total_s += seen.wall_s
            lines.add(seen)
    return total_s, lines.slowest()
