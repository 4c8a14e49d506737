"""Trainings that evaluate after every few steps, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

LIGHTNING = """
import lightning as L
EVERY = 2
def main(model, train, val):
    trainer = L.Trainer(max_epochs=3, {arguments})
    trainer.fit(model, train, val)
    trainer.validate(model, val)
"""
FIT = "trainer.fit(model, train, val)"
IN_FIT = (
    "lib:lightning/pytorch/loops/training_epoch_loop.py:_TrainingEpochLoop.on_advance_end",
    "lib:lightning/pytorch/loops/evaluation_loop.py:_EvaluationLoop.run",
)
TRANSFORMERS = """
from transformers import Trainer, TrainingArguments
def main(model, train, val):
    args = TrainingArguments("out", {arguments})
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=val)
    trainer.train()
"""
IN_TRAINER = (
    "lib:transformers/trainer.py:Trainer._maybe_log_save_evaluate",
    "lib:transformers/trainer.py:Trainer.evaluate",
)


@pytest.mark.parametrize(
    ("arguments", "longer"),
    [
        ("val_check_interval=2", "val_check_interval=50"),
        ("val_check_interval=EVERY", "val_check_interval=50"),
        ("val_check_interval=0.01", "val_check_interval=0.25"),
        # ---- which look like it ----
        ("val_check_interval=1.0", None),
        ("val_check_interval=0.25", None),
        ("val_check_interval=20", None),
        ("val_check_interval=2, limit_val_batches=3", None),
        ("check_val_every_n_epoch=1", None),
        ("val_check_interval=model.interval", None),
    ],
)
def test_lightning(arguments, longer):
    words = found(LIGHTNING.format(arguments=arguments), FIT, *IN_FIT)
    assert words == ({"evaluated_often_by_lightning": {"longer": longer}} if longer else {})


def test_validation_after_the_training_is_not_due_to_the_option():
    source = LIGHTNING.format(arguments="val_check_interval=2")
    assert found(source, "trainer.validate(model, val)", IN_FIT[1]) == {}
    assert found(source, FIT, IN_FIT[0]) == {}


@pytest.mark.parametrize(
    ("arguments", "longer"),
    [
        ('eval_strategy="steps", eval_steps=1', "eval_steps=25"),
        ('evaluation_strategy="steps", eval_steps=10', "eval_steps=250"),
        ('eval_strategy="steps", eval_steps=0.02', "eval_steps=0.25"),
        # ---- which look like it ----
        ('eval_strategy="steps", eval_steps=500', None),
        ('eval_strategy="epoch", eval_steps=1', None),
        ("eval_steps=1", None),
        ('eval_strategy="steps"', None),
        ('eval_strategy="steps", logging_steps=1', None),
    ],
)
def test_transformers(arguments, longer):
    source = TRANSFORMERS.format(arguments=arguments)
    words = found(source, "trainer.train()", *IN_TRAINER)
    assert words == ({"evaluated_often_by_transformers": {"longer": longer}} if longer else {})
