"""Observes text generation and training with Hugging Face Transformers."""

from __future__ import annotations

from functools import wraps
from weakref import ref

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.notes import caller

if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

    from _teho_probe.notes import Notes

_CALLS_EXAMINED = 20
"""Calls of tokenizers whose padding is counted."""
_MOST_TEXTS = 256
_SHORTEST_TEXT = 16


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


def transformers_tokenization_utils_base(module: Any, notes: Notes) -> None:
    """Count how many of the tokens of the first calls of tokenizers are padding."""
    tokenizers = module.PreTrainedTokenizerBase
    tokenize = tokenizers.__call__
    calls = tokens = padding = 0

    @wraps(tokenize)
    def tokenized(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls, tokens, padding
        encoded = tokenize(self, *args, **kwargs)
        if calls < _CALLS_EXAMINED:
            try:
                counted = _padding_of(encoded.get("attention_mask"))
                if counted is not None:
                    calls, tokens, padding = calls + 1, tokens + counted[0], padding + counted[1]
                    facts = notes.libraries.get("transformers", {})
                    notes.fact(
                        "transformers",
                        tokenized_at=facts.get("tokenized_at") or caller(),
                        token_padding_percent=round(100.0 * padding / tokens, 2),
                    )
            except Exception as error:
                notes.failed("transformers", error)
        return encoded

    tokenizers.__call__ = tokenized


def _padding_of(mask: Any) -> Optional[Tuple[int, int]]:
    """Return the numbers of all tokens and of padding of a call; None if it has no batch."""
    if isinstance(mask, list):
        rows = mask[:_MOST_TEXTS] if mask and isinstance(mask[0], list) else [mask]
        tokens = sum(map(len, rows))
        if tokens < _SHORTEST_TEXT * len(rows) or not isinstance(rows[0][0], int):
            return None
        return tokens, sum(row.count(0) for row in rows)
    is_array = type(mask).__module__.partition(".")[0] in ("numpy", "torch")
    if not is_array or len(mask.shape) != 2 or mask.shape[1] < _SHORTEST_TEXT:
        return None
    part = mask[:_MOST_TEXTS]
    return int(part.shape[0] * part.shape[1]), int((part == 0).sum())
