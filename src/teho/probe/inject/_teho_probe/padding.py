"""How much of PyTorch's batches is padding: of texts, and of series of numbers."""

from __future__ import annotations

from collections import UserDict

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Sequence

    from _teho_probe.notes import Loader

_MOST_ITEMS = 64
_SHORTEST_TEXT = 16
_MOST_ELSEWHERE = 0.02
"""Share of the tokens that are not padding, but have the same number."""
_SHORTEST_SERIES = 32
_MOST_VALUES = 1 << 22
"""Larger batches of series are not examined: to compare 4 million numbers takes about 3 ms."""
_FITTING = 0.9
"""Share of the samples whose series must end at their length."""


def count_padding(batch: Any, loader: Loader) -> None:
    """Add the tokens of a batch of texts, or the time steps of a batch of series.

    Also add how many of them only fill the texts or series up.
    """
    if _count_series(batch, loader):  # its mask does not belong to a text
        return
    counted = _padding(batch)
    if counted is not None:
        tokens, padding = loader.padding[0] + counted[0], loader.padding[1] + counted[1]
        loader.padding = tokens, padding
        if tokens:
            loader.batch = {**loader.batch, "padding_percent": round(100.0 * padding / tokens, 2)}


def count_sizes(batch: Any, loader: Loader) -> None:
    """Count in how many different sizes the images or series of the first batches came.

    The number of samples does not count: the last batch of an epoch is often smaller. Whole numbers
    with few axes are labels or tokens.
    """
    tensors = []
    for one in _values(batch):
        parts = one[:_MOST_ITEMS] if isinstance(one, (list, tuple)) else [one]
        tensors += [part for part in parts if hasattr(type(part), "element_size")]
    sizes = {
        tuple(map(int, one.shape[1:]))
        for one in tensors
        if one.dim() >= (2 if one.is_floating_point() else 4)
    }
    if sizes:
        loader.sizes.add(tuple(sorted(sizes)))
        loader.batch = {**loader.batch, "sizes": len(loader.sizes)}


def _padding(batch: Any) -> tuple[int, int] | None:
    """Return the numbers of all tokens and of padding; None if the batch has no texts.

    By the mask, or by the equal token with which most texts of the batch end.
    """
    mask: Any = batch.get("attention_mask") if isinstance(batch, (dict, UserDict)) else None
    if _is_text(mask):
        return int(mask.nelement()), int(mask.eq(0).sum())
    text = next((one for one in _values(batch) if _is_text(one)), None)
    if text is None or text.shape[0] < 2:
        return None
    filling = text[:, -1].mode().values
    equal = text.flip(1).eq(filling).long()
    run = equal.cumprod(1)
    tokens, padding = int(text.nelement()), int(run.sum())
    # A number that is also elsewhere is a value, such as 0 in a table of counts.
    elsewhere = int(equal.sum()) - padding
    is_filling = 2 * int((run.sum(1) > 1).sum()) >= text.shape[0]
    is_rare = elsewhere <= _MOST_ELSEWHERE * (tokens - padding)
    return tokens, padding if is_filling and is_rare else 0


def _is_text(value: Any) -> bool:
    """Return whether a value is a batch of token numbers on the CPU."""
    return (
        hasattr(type(value), "element_size")
        and value.dim() == 2
        and value.shape[1] >= _SHORTEST_TEXT
        and str(value.dtype) in {"torch.int64", "torch.int32", "torch.bool"}
        and value.device.type == "cpu"
    )


def _values(batch: Any) -> Sequence[Any]:
    """Return the items of a batch."""
    values = list(batch.values()) if isinstance(batch, (dict, UserDict)) else batch
    return values[:_MOST_ITEMS] if isinstance(values, (list, tuple)) else [values]


def _count_series(batch: Any, loader: Loader) -> bool:
    """Add the time steps of a batch of series; return whether it has series and their lengths.

    Only zeros after the end of a series count. Time steps after the end of the longest series can
    be cut off: the model needs the lengths to ignore them.
    """
    values = _values(batch)
    series = next((one for one in values if _is_series(one)), None)
    if series is None:
        return False
    time = 1 if series.shape[1] >= series.shape[2] else 2
    steps = int(series.shape[time])
    is_used = series.ne(0).any(3 - time)
    places = is_used.long().cumsum(1).argmax(1)  # the last step with a number that is not zero
    ends = (places + 1) * is_used.any(1).long()
    for one in values:
        lengths = _lengths(one, series, steps)
        if lengths is None:
            continue
        fitting = float(lengths.eq(ends).double().mean())
        longest = int(lengths.max())
        if fitting < _FITTING or bool((ends > lengths).any()) or not longest:
            continue
        samples = int(series.shape[0])
        counts = samples * steps, samples * (steps - longest), samples * steps - int(lengths.sum())
        # The checker does not see that `counts` has three numbers.
        loader.series = tuple(map(sum, zip(loader.series, counts)))  # type: ignore[assignment]
        every, after, padding = loader.series
        loader.batch = {
            **loader.batch,
            "series_after_longest_percent": round(100.0 * after / every, 2),
            "series_padding_percent": round(100.0 * padding / every, 2),
        }
        return True
    return False


def _is_series(value: Any) -> bool:
    """Return whether a value is a batch of series on the CPU: one axis is far the longest."""
    if not hasattr(type(value), "element_size") or value.dim() != 3:
        return False
    samples, one, other = value.shape
    longer, shorter = max(one, other), min(one, other)
    return bool(
        samples >= 2
        and longer >= _SHORTEST_SERIES
        and shorter >= 1
        and value.nelement() <= _MOST_VALUES
        and value.is_floating_point()
        and value.device.type == "cpu"
        and not value.is_sparse
    )


def _lengths(value: Any, series: Any, steps: int) -> Any:
    """Return the lengths that an item of a batch has, also as a mask; None if it has none."""
    if not hasattr(type(value), "element_size") or value.device.type != "cpu" or value is series:
        return None
    samples = series.shape[0]
    is_whole = str(value.dtype) in {"torch.int64", "torch.int32", "torch.int16", "torch.bool"}
    if tuple(value.shape) == (samples,) and is_whole and str(value.dtype) != "torch.bool":
        is_length = bool(((value >= 0) & (value <= steps)).all())
        return value.long() if is_length else None
    if tuple(value.shape) != (samples, steps):
        return None
    mask = value.ne(0)
    if str(value.dtype) != "torch.bool" and not bool((value.eq(0) | value.eq(1)).all()):
        return None
    for one in (mask, ~mask):  # PyTorch's masks are true where there is padding
        lengths = one.long().sum(1)
        is_begin = bool((one.long().cumsum(1).argmax(1) + 1).eq(lengths).all())
        if is_begin and bool(lengths.gt(0).all()):
            return lengths
    return None
