"""Observes each known library from the moment the program has imported it."""

from __future__ import annotations

import sys
from importlib import import_module

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from _teho_probe.notes import Notes

__all__ = ["watch_imports"]

_FILES = {
    "torch": "of_torch",
    "torch.utils.data.dataloader": "of_torch",
    "torch.optim.optimizer": "of_torch",
    "torch.amp.autocast_mode": "of_torch",
    "torch.nn.modules.linear": "of_torch_layers",
    "torch.nn.parallel.distributed": "of_torch",
    "torch.distributed.fsdp": "of_torch",
    "transformers.generation.utils": "of_transformers",
    "transformers.trainer_callback": "of_transformers",
    "transformers.tokenization_utils_base": "of_transformers",
    "pytorch_lightning.trainer.trainer": "of_lightning",
    "lightning.pytorch.trainer.trainer": "of_lightning",
    "tqdm.std": "of_tqdm",
    "jax": "of_jax",
    "jax.monitoring": "of_jax",
    "tensorflow": "of_tensorflow",
    "tensorflow.python.data.ops.dataset_ops": "of_tensorflow",
    "keras.src.callbacks.callback_list": "of_keras",
    "grain._src.python.dataset.dataset": "of_grain",
    "grain._src.python.data_loader": "of_grain",
    "numpy": "of_numpy",
    "multiprocessing.util": "of_multiprocessing",
    "cupy": "of_cupy",
    "datasets.arrow_dataset": "of_datasets",
}
"""Module of a library -> the probe's file for it. This file has a function with the module's name,
with `_` for each dot. It is called with the module and the notes."""


def watch_imports(notes: Notes) -> None:
    """Observe each known library when the program has imported it."""
    sys.meta_path.insert(0, _Finder(notes))


class _Finder:
    """Asks the other finders for a module, and wraps its loader."""

    def __init__(self, notes: Notes) -> None:
        self._wanted = dict(_FILES)
        self._notes = notes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = self._wanted.pop(name, None)  # another finder may call this one
        if file is None:
            return None
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find and finder is not self else None
                if spec is not None:
                    try:
                        self._wrap(spec.loader, name, file)
                    except Exception as error:  # another kind of loader
                        self._notes.failed(name, error)
                    return spec  # type: ignore[no-any-return]
        finally:
            self._wanted[name] = file  # the program may only test whether the module exists
        return None

    def _wrap(self, loader: Any, name: str, file: str) -> None:
        execute = loader.exec_module
        attributes = vars(loader)  # a zip file's loader loads many modules

        def exec_module(module: ModuleType) -> None:
            attributes.pop("exec_module", None)  # the class's method is used again
            execute(module)
            if module.__name__ != name or self._wanted.pop(name, None) is None:
                return
            try:
                wrap = getattr(import_module("_teho_probe." + file), name.replace(".", "_"))
                wrap(module, self._notes)
            except Exception as error:  # an unknown version
                self._notes.failed(name, error)

        attributes["exec_module"] = exec_module
