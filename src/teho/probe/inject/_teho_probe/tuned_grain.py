"""Applies the settings that `teho tune` tries to the pipelines of Grain.

`num_workers` and `prefetch_factor` (elements that each worker makes in advance) change all
pipelines of the program: Grain's pipelines have no line at which they are made as a whole.
"""

from __future__ import annotations

import json
import os
import sys
from functools import wraps

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

__all__ = ["add_workers", "tune_data_loaders", "tune_prefetch"]

_OF_DATA_LOADER = {"num_workers": "worker_count", "prefetch_factor": "worker_buffer_size"}
_OF_OPTIONS = {"num_workers": "num_workers", "prefetch_factor": "per_worker_buffer_size"}
_OPTIONS = "grain._src.python.options"


def _wanted(names: dict[str, str]) -> dict[str, Any]:
    wanted = json.loads(os.environ["TEHO_TUNE"])
    return {names[name]: wanted[name] for name in names if name in wanted}


def tune_data_loaders(loaders: Any) -> None:
    """Change the arguments of each `grain.DataLoader`."""
    make, wanted = loaders.__init__, _wanted(_OF_DATA_LOADER)

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **{**kwargs, **wanted})

    loaders.__init__ = made


def tune_prefetch(datasets: Any) -> None:
    """Change the options of each `mp_prefetch` of the program."""
    prefetch = datasets.mp_prefetch

    @wraps(prefetch)
    def prefetched(self: Any, options: Any = None, *args: Any, **kwargs: Any) -> Any:
        return prefetch(self, _options(options), *args, **kwargs)

    datasets.mp_prefetch = prefetched


def add_workers(dataset: Any) -> Any:
    """Return a pipeline without workers with the workers that `teho tune` tries."""
    options = _options(None)
    return dataset.mp_prefetch(options) if options and options.num_workers else dataset


def _options(given: Any) -> Any:
    wanted = _wanted(_OF_OPTIONS)
    if not wanted:
        return given
    make = sys.modules[_OPTIONS]
    known = {name: getattr(given, name) for name in _OF_OPTIONS.values()} if given else {}
    return make.MultiprocessingOptions(**{**known, **wanted})
