"""A convolutional network computes with 16 bits, but its images have the channels first.

The tensor cores of NVIDIA's GPUs compute convolutions in the layout with the channels last (NHWC).
In the other layout, cuDNN converts the images before and after many convolutions.
"""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import place_of
from teho.model.program import MainProcess
from teho.patterns import lazy_pattern

RANK = 455
SEVERITY = "remark"
THRESHOLDS = {
    "busy_percent": chosen(
        80.0, "%", "if the GPU is idle for longer, something else limits the speed"
    ),
    "tensor_max_percent": chosen(
        40.0,
        "%",
        "the same value as the threshold matrix_sizes_unaligned.tensor_max_percent: above it, the "
        "tensor cores are used well",
    ),
}

_16_BITS = frozenset(("bfloat16", "float16"))
_CONVOLUTION = lazy_pattern(r"torch/nn/modules/conv\.py:.*_conv_forward$")


def judge(context: ProgramContext) -> Findings:
    """Check the layout of the weights, the type, and the use of the tensor cores."""
    for main in context.mains[:1]:
        if not _may_be_faster(main):
            continue
        use = context.gpu_use(main)
        gpus = [one for one in context.gpus_beside(main) if one.gpu.device.vendor == "nvidia"]
        if use is None or not gpus or use.busy_percent < context.limit("busy_percent"):
            continue
        tensor = [context.at_work(gpu, "gpu_tensor_percent") for gpu in gpus]
        known = [one for one in tensor if one is not None]
        if not known or max(known) >= context.limit("tensor_max_percent"):
            continue
        yield context.finding(
            Severity.REMARK,
            "The network computes its convolutions with 16 bits, but its images have the channels "
            f"first. The tensor cores were active for only {max(known):.0f} % of the time.",
            evidence=(
                Evidence("activity of the tensor cores while the GPU was busy", max(known), "%"),
                use.evidence,
            ),
            action=(
                "Try the layout with the channels last: "
                "`model = model.to(memory_format=torch.channels_last)`, and the same for each "
                "batch of images. The results stay the same except for rounding. Convolutions "
                "with many groups may become slower: `teho compare` measures both."
            ),
        )


def _may_be_faster(main: MainProcess) -> bool:
    facts = main.library
    types = facts.get("parameter_dtypes")
    names = {facts.get("autocast"), *(types if isinstance(types, dict) else ())}
    if facts.get("channels_last") is not False or not names & _16_BITS:
        return False
    if facts.get("compiled_graphs"):  # the compiler chooses the layout itself
        return False
    return any(
        seen.frames and _CONVOLUTION.search(place_of(seen.frames[0]))
        for seen in main.process.stacks
    )
