"""The order of the samples in an epoch: for the same seed the same on every device."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

__all__ = ["key_of", "shuffled", "windowed"]

_LARGE = 1 << 20
"""From this number of samples on, a device shuffles faster than one core."""
_CHUNK_CPU, _CHUNK = 1 << 16, 1 << 24
"""Numbers that are computed together: in the cache of a core, or in 0.5 GiB of a GPU's memory."""
_MIX = (0x7FEB352D, -0x7B935975)
"""Odd numbers of 32 bits that mix well in such a product, as signed numbers."""


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
    if count < _LARGE:
        # A copy from ordinary memory would wait until the GPU has finished all its work.
        is_pinned = torch.device(device).type == "cuda"
        order = torch.empty(count, dtype=torch.int64, pin_memory=is_pinned)
        torch.randperm(count, generator=torch.Generator().manual_seed(key), out=order)
        return order.to(device, non_blocking=is_pinned)
    bits = (count - 1).bit_length()
    chunk = _CHUNK_CPU if torch.device(device).type == "cpu" else _CHUNK
    parts = [
        _permuted(torch.arange(first, min(first + chunk, 1 << bits), device=device), bits, key)
        for first in range(0, 1 << bits, chunk)
    ]
    # A permutation of a power of two without the numbers that are too large is still a permutation.
    return torch.cat([part[part < count] for part in parts])


def _permuted(numbers: Any, bits: int, key: int) -> Any:
    """Apply a permutation of the numbers with this many bits: a Feistel network of four rounds.

    Each half of the bits is changed by a function of the other half. Such a change can be undone,
    so no two numbers get the same result.
    """
    low_bits = bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (bits - low_bits)) - 1
    high, low = (numbers >> low_bits).to(torch.int32), (numbers & low_mask).to(torch.int32)
    for turn in range(2):
        high ^= _mixed(low, key_of(key, turn, "high"), high_mask)
        low ^= _mixed(high, key_of(key, turn, "low"), low_mask)
    return (high.to(torch.int64) << low_bits) | low


def _mixed(values: Any, key: int, mask: int) -> Any:
    """Return numbers within the mask that depend on each bit of the values and of the key."""
    mixed = values ^ (key & 0x7FFFFFFF)
    mixed *= _MIX[0]
    mixed ^= mixed >> 15
    mixed ^= key >> 32
    mixed *= _MIX[1]
    mixed ^= mixed >> 16
    mixed &= mask
    return mixed


def windowed(sizes: list[int], key: int, window: int) -> Any:
    """Return an order for blocks that are read one after another, as a tensor int64 [samples].

    The blocks are in a random order. Then each sample moves back by a random distance of less than
    one window.

    Args:
        sizes: number of samples of each block.
        key: of `key_of`.
        window: number of samples.
    """
    blocks = shuffled(len(sizes), key)
    counts = torch.tensor(sizes, dtype=torch.int64)
    ends = torch.cumsum(counts, 0)
    chosen = counts[blocks]
    count = int(ends[-1]) if len(ends) else 0
    places = torch.arange(count)
    rows = places + (ends[blocks] - torch.cumsum(chosen, 0)).repeat_interleave(chosen)
    generator = torch.Generator().manual_seed(key_of(key, "window"))
    moved = places + window * torch.rand(count, dtype=torch.float64, generator=generator)
    return rows[torch.argsort(moved, stable=True)]
