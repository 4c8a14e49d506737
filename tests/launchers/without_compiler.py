"""PyTorch without its compiler, which nothing here uses and which takes seconds to load.

To import this module is enough. An optimizer and DDP import `torch._dynamo` and ask it for what is
below. If a newer PyTorch asks for something else, the real module takes its place.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

__all__: list[str] = []
_NAME = "torch._dynamo"


class _Absent(ModuleType):
    """Stands in for the compiler."""

    utils = SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    trace_rules = SimpleNamespace(clear_lru_cache=lambda: None)

    @staticmethod
    def disable(function: Callable[..., Any], *_: object, **__: object) -> Callable[..., Any]:
        return function

    @staticmethod
    def graph_break() -> None:
        """Do nothing: there is no graph."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


if _NAME not in sys.modules:
    sys.modules[_NAME] = torch._dynamo = _Absent(_NAME)
