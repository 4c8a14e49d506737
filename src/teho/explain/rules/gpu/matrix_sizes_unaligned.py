"""A large layer has sizes with which the tensor cores work less efficiently.

NVIDIA's guide to matrix multiplication says that tensor cores are most efficient if all sizes of a
matrix are multiples of 16 bytes: multiples of 8 for numbers of 16 bits, and of 4 for TF32. A usual
case is a vocabulary of 50,257 tokens. The probe notes the sizes of linear layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from teho.explain.peaks import peaks_of
from teho.explain.program_context import is_on_gpu
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.model.program import MainProcess
from teho.model.stack import Frame

RANK = 233
SEVERITY = "warning"
THRESHOLDS = {
    "weights_percent": chosen(
        25.0,
        "%",
        "a layer with a smaller share of the weights takes a smaller share of the time; on an "
        "H200, a layer with 58 % of the weights cost 10 % of the time",
    ),
    "busy_percent": chosen(
        50.0, "%", "if the GPU is idle for most of the steps, its speed is not what limits them"
    ),
    "tensor_max_percent": chosen(
        40.0,
        "%",
        "on an H200, the tensor cores were active for 55 % of the time in a transformer whose "
        "sizes are multiples of 64, and for 22 % with a vocabulary of 50,257 tokens",
    ),
}
MUTES = ("gpu_low_occupancy", "gpu_tensor_cores_idle")
MUTES_BECAUSE = "this finding names the layer with which the tensor cores work badly"

_16_BITS = frozenset(("bfloat16", "float16"))
_TF32 = frozenset(("high", "medium", "tf32"))
_LARGE_MULTIPLE, _SMALL_MULTIPLE = 64, 8
_LARGE = 256
"""Sizes from this one on are rounded up to a multiple of 64."""
_VOCABULARY = 1000
"""Outputs from which on they may be a vocabulary."""
_CHOSEN = "odd_size"
"""Name of the option that the search in the source finds."""
_MOST_CONVOLUTIONS = 2
"""With more convolutions, the numbers of weights do not show what takes the time."""
_REGAIN = (0.05, 0.4)
"""Part of the layer's share that better sizes save. On an H200, 10 % of the steps were saved, of
58 % of the weights (17 %). Others report 4 % to 25 % of the steps for GPT-2's vocabulary."""


class _Layer(NamedTuple):
    """A layer with such sizes."""

    rows: int
    columns: int
    share_percent: float
    made_at: Frame | None
    multiple: int
    """What its sizes must be multiples of."""


def judge(context: ProgramContext) -> Findings:
    """Check the sizes of the largest layers, and whether the tensor cores were little used."""
    for main in context.mains[:1]:
        layers = list(_layers(main))
        share = sum(one.share_percent for one in layers)
        if share < context.limit("weights_percent") or not is_on_gpu(main):
            continue
        gpus = [gpu for gpu in context.gpus_beside(main) if _has_tensor_cores(gpu.gpu.device)]
        use = context.gpu_use(main)
        if not gpus or use is None or use.busy_percent < context.limit("busy_percent"):
            continue
        tensor = [context.at_work(gpu, "gpu_tensor_percent") for gpu in gpus]
        known = [one for one in tensor if one is not None]
        if not known or max(known) >= context.limit("tensor_max_percent"):
            continue
        layer = layers[0]
        computing = _steps_percent(main) * use.busy_percent / 100
        least, most = (part * share * computing / 100 for part in _REGAIN)
        yield context.finding(
            Severity.WARNING,
            f"{_name(layer)}. {_why(layer)}, so the tensor cores of the GPU work less efficiently. "
            f"{'This layer has' if len(layers) == 1 else 'Such layers have'} {share:.0f} % of the "
            "weights of all matrices.",
            evidence=(
                Evidence("share of the weights of all matrices", share, "%"),
                Evidence("activity of the tensor cores while the GPU was busy", max(known), "%"),
                use.evidence,
                Evidence("sizes of the layer", f"{layer.columns} x {layer.rows}"),
                *([Evidence("made at", layer.made_at.short_place)] if layer.made_at else []),
            ),
            action=_action(layer, _place(main, layer)),
            regain_percent=(least, most),
        )


def _layers(main: MainProcess) -> Iterator[_Layer]:
    """Yield the layers whose sizes do not fit the type with which they compute."""
    facts = main.library
    found = facts.get("odd_layers")
    if not isinstance(found, list) or _number(facts.get("convolutions")) > _MOST_CONVOLUTIONS:
        return
    for one in found:
        multiple = _multiple(facts, str(one.get("dtype")))
        rows, columns = int(one["rows"]), int(one["columns"])
        if multiple and (rows % multiple or columns % multiple):
            place = one.get("made_at")
            at = Frame(*place) if place else None
            yield _Layer(rows, columns, float(one["share_percent"]), at, multiple)


def _multiple(facts: Mapping[str, object], dtype: str) -> int:
    """Return what sizes must be multiples of; 0 if the layer does not use the tensor cores."""
    if {facts.get("autocast"), dtype} & _16_BITS:
        return 8
    is_tf32 = dtype == "float32" and facts.get("float32_matmul_precision") in _TF32
    return 4 if is_tf32 else 0


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _has_tensor_cores(device: Any) -> bool:
    """Return whether a device has tensor cores, as far as its peaks are known."""
    peaks = peaks_of(device)
    return device.vendor == "nvidia" and (peaks is None or peaks.has_tensor_cores)


def _steps_percent(main: MainProcess) -> float:
    """Return the share of a process's time from its first step to its last one."""
    progress = main.process.progress
    if not progress:
        return 100.0
    steps_s = progress[-1].last_s - progress[0].first_s
    return min(100.0, 100 * steps_s / main.process.wall_s)


def _odd(layer: _Layer) -> int:
    """Return the size that is no such multiple: the number of outputs, or that of inputs."""
    return layer.rows if layer.rows % layer.multiple else layer.columns


def _name(layer: _Layer) -> str:
    place = f", made at {layer.made_at.short_place}," if layer.made_at else ""
    which = "outputs" if layer.rows % layer.multiple else "inputs"
    other = f"{layer.columns:,} inputs" if which == "outputs" else f"{layer.rows:,} outputs"
    return f"A linear layer{place} has {_odd(layer):,} {which} ({other})"


def _why(layer: _Layer) -> str:
    kind = "numbers of 16 bits" if layer.multiple == 8 else "TF32 numbers"
    return f"{_odd(layer):,} is not a multiple of {layer.multiple} ({kind})"


def _rounded(size: int) -> int:
    multiple = _LARGE_MULTIPLE if size >= _LARGE else _SMALL_MULTIPLE
    return -(-size // multiple) * multiple


def _place(main: MainProcess, layer: _Layer) -> str:
    """Return the advice for the place in the source that chooses the size; empty if unknown."""
    for one in main.process.costly_options:
        if one.name == _CHOSEN and one.words.get("size") == str(_odd(layer)):
            new, old = one.words["new"], one.words["old"]
            return f"At {one.at.short_place}, write `{new}` instead of `{old}`"
    return ""


def _action(layer: _Layer, place: str) -> str:
    size, new = _odd(layer), _rounded(_odd(layer))
    multiple = _LARGE_MULTIPLE if size >= _LARGE else _SMALL_MULTIPLE
    where = f"Write {new} instead of {size} where the program sets the size of this layer"
    begin = f"{place or where}: the next multiple of {multiple}."
    if layer.rows % layer.multiple == 0:
        return f"{begin} Fill the additional inputs with zeros."
    if layer.rows < _VOCABULARY:
        return f"{begin} Do not use the additional outputs: `outputs[..., :{size}]`."
    return (
        f"{begin} If the size is that of a vocabulary, the {new - size} additional tokens are "
        "never in the data, so the model soon never predicts them. If the program samples tokens, "
        f"cut them off: `logits[..., :{size}]`. A model of Transformers: "
        "`model.resize_token_embeddings(pad_to_multiple_of=64)`, before the optimizer is made."
    )
