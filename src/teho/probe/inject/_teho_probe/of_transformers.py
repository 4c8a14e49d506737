"""Observes text generation with Hugging Face Transformers."""

from __future__ import annotations

from functools import wraps

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

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
