"""The order of the samples in an epoch: for the same seed the same on every device."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["key_of", "shuffled", "windowed"]

_LARGE = 1 << 20
"""From this number of samples on, shuffling on one core takes longer than a copy to a GPU."""
_CHUNK = 1 << 24
_ROUNDS = 4
_MIX = (-0x61C8864680B583EB, -0x4B47D0C5A6C72E93)
"""Odd 64-bit numbers, as signed numbers."""


def key_of(*parts: int | str) -> int:
    """Return a number of 63 bits that depends on all parts."""
    digest = hashlib.sha256(" ".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def shuffled(count: int, key: int, device: Any = "cpu") -> Any:
    """Return the numbers from 0 to `count - 1` in a random order, as a tensor int64 [count].

    The order depends only on `count` and `key`. So it is the same on each rank and after a move to
    another kind of GPU, whose own random numbers may differ.

    Args:
        count: at most 2^62.
        key: of `key_of`.
        device: of the tensor.
    """
    import torch

    if count < _LARGE:
        return torch.randperm(count, generator=torch.Generator().manual_seed(key)).to(device)
    bits = (count - 1).bit_length()
    parts = [
        _permuted(torch.arange(first, min(first + _CHUNK, 1 << bits), device=device), bits, key)
        for first in range(0, 1 << bits, _CHUNK)
    ]
    # A permutation of a power of two without the numbers that are too large is still a permutation.
    return torch.cat([part[part < count] for part in parts])


def _permuted(numbers: Any, bits: int, key: int) -> Any:
    """Apply a permutation of the numbers with this many bits: a Feistel network.

    Each half of the bits is changed by a function of the other half. Such a change can be undone,
    so no two numbers get the same result.
    """
    low_bits = bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (bits - low_bits)) - 1
    high, low = numbers >> low_bits, numbers & low_mask
    for number in range(_ROUNDS):
        high ^= _mixed(low, key_of(key, number, "high")) & high_mask
        low ^= _mixed(high, key_of(key, number, "low")) & low_mask
    return (high << low_bits) | low


def _mixed(values: Any, key: int) -> Any:
    mixed = (values + key) * _MIX[0]
    return ((mixed ^ (mixed >> 29)) * _MIX[1]) >> 32


def windowed(sizes: Any, key: int, window: int) -> Any:
    """Return an order for blocks that are read one after another, as a tensor int64 [samples].

    The blocks are in a random order. Then each sample moves back by a random distance of less than
    one window.

    Args:
        sizes: number of samples of each block, as a tensor int64 [blocks].
        key: of `key_of`.
        window: number of samples.
    """
    import torch

    blocks = shuffled(len(sizes), key)
    ends = torch.cumsum(sizes, 0)
    chosen = sizes[blocks]
    count = int(ends[-1]) if len(ends) else 0
    places = torch.arange(count)
    rows = places + (ends[blocks] - torch.cumsum(chosen, 0)).repeat_interleave(chosen)
    generator = torch.Generator().manual_seed(key_of(key, "window"))
    moved = places + window * torch.rand(count, dtype=torch.float64, generator=generator)
    return rows[torch.argsort(moved, stable=True)]
