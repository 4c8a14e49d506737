"""PyTorch: linear layers whose sizes are not multiples of 4 or 8.

Tensor cores need rows that begin at multiples of 16 bytes, or they work less efficiently. This is
so if the sizes of a matrix are multiples of 8 (numbers of 16 bits), or of 4 (numbers of 32 bits).
"""

from __future__ import annotations

from functools import wraps
from weakref import WeakKeyDictionary

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.notes import caller

if TYPE_CHECKING:
    from typing import Any, Sequence

    from _teho_probe.notes import Notes

_MULTIPLE = 8
_MOST_LAYERS = 64
"""Number of such layers that are known: more layers are small."""
_LEAST = 1 << 14
"""Number of weights below which a layer is not noted: it takes little time."""
_NOTED = 3

_layers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""Layer -> `[file, function, line, text]` of the place in the program that made it."""


def torch_nn_modules_linear(module: Any, notes: Notes) -> None:
    """Remember each large linear layer with such sizes."""
    layers = module.Linear
    make = layers.__init__

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        try:
            rows, columns = self.out_features, self.in_features
            is_odd = bool(rows % _MULTIPLE or columns % _MULTIPLE)
            if is_odd and rows * columns >= _LEAST and len(_layers) < _MOST_LAYERS:
                _layers[self] = caller()
        except Exception as error:
            notes.failed("torch", error)

    layers.__init__ = made


def odd_layers(parameters: Sequence[Any]) -> dict[str, Any]:
    """Return the layers with such sizes whose weights are among these parameters, largest first.

    The share is a part of all weights in matrices. A table of embeddings also counts: if it is not
    the weight of a layer too, the share is too small.
    """
    if not _layers:
        return {}
    matrices = {id(one): int(one.nelement()) for one in parameters if one.dim() == 2}
    whole = sum(matrices.values())
    found: dict[int, dict[str, Any]] = {}
    for layer, place in list(_layers.items()):
        weight = layer._parameters.get("weight")
        size = matrices.get(id(weight))
        if size:
            found[id(weight)] = {
                "rows": int(layer.out_features),
                "columns": int(layer.in_features),
                "dtype": str(weight.dtype).replace("torch.", ""),
                "share_percent": round(100.0 * size / whole, 2),
                "made_at": place,
            }
    largest = sorted(found.values(), key=lambda one: -one["share_percent"])[:_NOTED]
    if not largest:
        return {}
    convolutions = sum(one.dim() > 2 for one in parameters)
    return {"odd_layers": largest, "convolutions": convolutions}
