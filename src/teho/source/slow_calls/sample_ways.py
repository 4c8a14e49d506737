"""Sentences on how to compute a whole batch, for the operations of a loop over its samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from teho.source.parsed import Loop

__all__ = ["advice_for_batch"]

_WAYS = {
    r"\baffine_grid\(|\bgrid_sample\(": (
        "make the matrices of all samples first, as one tensor of the shape (number of samples, "
        "2, 3), and call `affine_grid` and `grid_sample` once"
    ),
    r"\broll\(": (
        "shift all samples with one `take_along_dim`, with the indices `(arange - shift[:, None]) "
        "% length`"
    ),
    r"\b[hv]?flip(ud|lr)?\(": (
        "flip all samples, and choose with `torch.where(flags, flipped, batch)`"
    ),
    r" @ |\b(matmul|mm|mv|dot|outer)\(": (
        "multiply all samples with one `torch.bmm` or `torch.einsum`"
    ),
    r"\blinalg\.": "give the functions of `linalg` all matrices, with the samples as first axis",
    r"\bjnp\.|\bjax\.": (
        "write the work on one sample as a function `f`, and call `jax.jit(jax.vmap(f))` with the "
        "batch"
    ),
    r"\btorch\.(tensor|as_tensor)\(|\.to\(|\.cuda\(": (
        "put the numbers of all samples into one array, and copy it to the GPU once"
    ),
}
_GENERAL = (
    "give each operation the whole batch, with the samples as first axis, and numbers that differ "
    "between the samples as one tensor"
)
_TRANSFORMS = (
    "the transforms of `kornia.augmentation` take a whole batch and draw other numbers for each "
    "sample; those of `torchvision` draw the same numbers for the whole batch"
)
_MOST = 3


def advice_for_batch(
    loop: Loop, batch: str, last: int, code: Sequence[str], file: str, *, has_transforms: bool
) -> str:
    """Return the advice for a loop over samples: first how, then the code, as far as it is known.

    Args:
        loop: the loop.
        batch: what it goes through.
        last: the last line that the code replaces.
        code: the lines for the whole batch; empty: they are not known.
        file: the name of the file.
        has_transforms: whether the loop calls transforms of images.
    """
    text = ast.unparse(loop.node)
    ways = [way for pattern, way in _WAYS.items() if re.search(pattern, text)][:_MOST]
    if has_transforms or re.search(r"\b(TF|functional|transforms)\.(rotate|affine|crop)\(", text):
        ways = [_TRANSFORMS]
    if code:
        ways = ways[:1]
    how = f"Compute all of `{batch}` at once instead of the loop: {'; '.join(ways or [_GENERAL])}."
    if not code:
        return how
    lines = "; ".join(f"`{one}`" for one in code)
    return f"{how} Instead of lines {loop.line} to {last} of {file}, write: {lines}."
