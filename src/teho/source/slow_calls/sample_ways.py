"""Sentences on how to compute a whole batch, for the operations of a loop over its samples."""

from __future__ import annotations

import ast
import re

from teho.source.parsed import Loop

__all__ = ["ways_for_batch"]

_WAYS = {
    r"\baffine_grid\(|\bgrid_sample\(": (
        "Make the matrices of all samples first, as one tensor of the shape (number of samples, "
        "2, 3), and call `affine_grid` and `grid_sample` once."
    ),
    r"\broll\(": (
        "To shift each sample by its own number, use one `take_along_dim` with the indices "
        "`(arange - shift[:, None]) % length`."
    ),
    r"\b[hv]?flip(ud|lr)?\(": (
        "To flip only some samples, flip all of them, and choose with `torch.where(flags, flipped, "
        "batch)`."
    ),
    r"\btorch\.(tensor|as_tensor)\(|\.to\(|\.cuda\(": (
        "Put the numbers of all samples into one NumPy array, and copy this array to the GPU once."
    ),
    r" @ |\b(matmul|mm|mv|dot|outer)\(": (
        "The products of all samples are one call of `torch.bmm` or `torch.einsum`."
    ),
    r"\blinalg\.": "The functions of `linalg` take many matrices, with the samples as first axis.",
    r"\bjnp\.|\bjax\.": "With JAX, write the work on one sample as a function `f`, and call "
    "`jax.jit(jax.vmap(f))` with the batch.",
}


_TRANSFORMS = (
    "The transforms of `torchvision` draw the same random numbers for a whole batch. Those of "
    "`kornia.augmentation` draw other numbers for each sample of a batch, and are called once."
)


def ways_for_batch(loop: Loop, batch: str, *, has_transforms: bool = False) -> str:
    """Return sentences on how to compute a batch with the operations of a loop.

    Args:
        loop: the loop over the samples.
        batch: what it goes through.
        has_transforms: whether it calls transforms of `torchvision`.
    """
    text = ast.unparse(loop.node)
    found = [way for pattern, way in _WAYS.items() if re.search(pattern, text)]
    general = (
        f"Most functions take `{batch}` as a whole, with the samples as the first axis. Numbers "
        "that differ between the samples are then one tensor."
    )
    if has_transforms or re.search(r"\b(TF|functional|transforms)\.(rotate|affine|crop)\(", text):
        return " ".join([*found, _TRANSFORMS])
    return " ".join([general, *found])
