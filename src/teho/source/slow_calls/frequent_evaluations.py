"""Finds trainings of Lightning and transformers that evaluate all data after every few steps.

With `val_check_interval=2` or `eval_steps=1`, the whole validation set is evaluated after one or
two batches. The evaluations then take longer than the training itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.options.uses import value_text
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_frequent_evaluation"]

_EVALUATES = {
    "lightning": lazy_pattern(r"(lightning/pytorch|pytorch_lightning)/loops/evaluation_loop\.py$"),
    "transformers": lazy_pattern(r"/transformers/(trainer|trainer_seq2seq)\.py$"),
}
_TRAINS = {
    "lightning": lazy_pattern(r"_TrainingEpochLoop\.(advance|on_advance_end)$"),
    "transformers": lazy_pattern(r"(_maybe_log_save_evaluate|_evaluate)$"),
}
"""Functions that evaluate during a training; `trainer.validate()` calls none of them."""
_MAKERS = {
    "lightning": lazy_pattern(r"(lightning(\.pytorch)?|pytorch_lightning)\.Trainer"),
    "transformers": lazy_pattern(r"(transformers|trl)\.\w*(TrainingArguments|Config)"),
}
_INTERVAL = {"lightning": "val_check_interval", "transformers": "eval_steps"}
_SHORTER = ("limit_val_batches", "fast_dev_run", "overfit_batches")
_STRATEGY = ("eval_strategy", "evaluation_strategy")
_MOST_STEPS = 10
_LEAST_PART = 0.05
"""Part of an epoch, or with transformers of the training, as an interval: 20 evaluations."""
_TIMES_LESS = 25


def find_frequent_evaluation(
    levels: Sequence[Level], frames: Sequence[Frame], program: Program
) -> CostlyOption | None:
    """Return the option that makes a training evaluate all validation data after a few steps.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        program: the files of the program.
    """
    for library, evaluates in _EVALUATES.items():
        if not any(evaluates.search(frame.file) for frame in frames):
            continue
        if not any(_TRAINS[library].search(frame.function) for frame in frames):
            continue
        for level in levels:
            found = list(_given(library, level, program))
            if len(found) == 1:  # with several trainers, it is not clear which one this is
                return _found(library, *found[0], level)
    return None


def _given(library: str, level: Level, program: Program) -> Iterator[tuple[ast.keyword, str]]:
    """Yield the intervals of a file that are short, with their values as text."""
    word = _INTERVAL[library]
    for function in level.function.module.every():
        place = Place(level.frame.file, function)
        for node in function.nodes:
            if not isinstance(node, ast.Call):
                continue
            called = program.called(node, place)
            if not isinstance(called, str) or not _MAKERS[library].fullmatch(called):
                continue
            words = {one.arg: one for one in node.keywords}
            if word not in words or any(one in words for one in _SHORTER):
                continue
            if library == "transformers" and not _is_by_steps(words, place, program):
                continue
            value = value_text(words[word].value, place, program)
            if _is_short(value):
                yield words[word], value


def _is_by_steps(words: dict[str | None, ast.keyword], place: Place, program: Program) -> bool:
    """Return whether the number of steps counts: without a strategy, it has no effect."""
    given = (value_text(words[one].value, place, program) for one in _STRATEGY if one in words)
    return any(one == "steps" or one.endswith(".STEPS") for one in given)


def _is_short(value: str) -> bool:
    try:
        number = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return False
    if isinstance(number, bool):
        return False
    if isinstance(number, int):
        return 0 < number <= _MOST_STEPS
    return isinstance(number, float) and 0 < number <= _LEAST_PART


def _found(library: str, word: ast.keyword, value: str, level: Level) -> CostlyOption:
    frame = level.frame
    text = f"{word.arg}={ast.unparse(word.value)}"
    number = ast.literal_eval(value)
    longer = _TIMES_LESS * number if isinstance(number, int) else 0.25
    return CostlyOption(
        name=f"evaluated_often_by_{library}",
        at=Frame(
            frame.file,
            level.file.function_at(word.value.lineno).name or "<module>",
            word.value.lineno,
            text,
        ),
        lines=(frame,),
        words={"longer": f"{word.arg}={longer}"},
    )
