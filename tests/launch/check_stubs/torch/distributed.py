from __future__ import annotations

import os
from types import SimpleNamespace

_state = {}


def is_available() -> bool:
    return True


def is_nccl_available() -> bool:
    return True


def is_gloo_available() -> bool:
    return "STUB_NO_GLOO" not in os.environ


def TCPStore(host, port, size, master, timeout, wait_for_workers=True):  # noqa: N802
    assert (port == 0) == master
    return SimpleNamespace(port=port or 4711)


def init_process_group(backend, *, store, rank, world_size, timeout) -> None:
    assert store.port == 4711
    _state.update(backend=backend, size=world_size)


def all_reduce(tensor) -> None:
    assert tensor.device.type == ("cuda" if _state["backend"] == "nccl" else "cpu")
    if tensor.value:
        size = _state["size"]
        tensor.value = float(os.environ.get("STUB_WRONG") or size * (size + 1) / 2)
