"""Observes text generation and training with Hugging Face Transformers."""

from __future__ import annotations

from functools import wraps
from weakref import ref

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

    from _teho_probe.notes import Notes


def transformers_generation_utils(module: Any, notes: Notes) -> None:
    """Note whether each call of `generate` keeps the keys and values of earlier tokens."""
    models = module.GenerationMixin
    generate = models.generate

    @wraps(generate)
    def generated(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            settings = kwargs.get("generation_config")
            if settings is None:
                settings = next((one for one in args if hasattr(one, "use_cache")), None)
            if settings is None:
                settings = getattr(self, "generation_config", None)
            keeps = kwargs.get("use_cache", getattr(settings, "use_cache", None))
            if keeps is not None:
                name = "generated_with_cache" if keeps else "generated_without_cache"
                known = notes.libraries.get("transformers", {})
                notes.fact("transformers", **{name: known.get(name, 0) + 1})
        except Exception as error:
            notes.failed("transformers", error)
        return generate(self, *args, **kwargs)

    models.generate = generated


def transformers_trainer_callback(module: Any, notes: Notes) -> None:
    """Note the number of steps that a `Trainer` has made and will make."""
    handlers = module.CallbackHandler
    begin = handlers.on_train_begin

    @wraps(begin)
    def begun(self: Any, args: Any, state: Any, *rest: Any, **others: Any) -> Any:
        try:
            known = ref(state)
            notes.knows_total("transformers", lambda: _steps_of(known()))
        except Exception as error:
            notes.failed("transformers", error)
        return begin(self, args, state, *rest, **others)

    handlers.on_train_begin = begun


def _steps_of(state: Any) -> Optional[Tuple[int, int]]:
    return None if state is None else (state.global_step, state.max_steps)
