"""Logits that transformers' Trainer collects only for an argmax, and logits that are needed."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

METRICS = """
def restored(prediction):
    {logits}
    guess = {best}
    return {{"acc": float((guess == labels).mean())}}
def main(model, args, data):
    trainer = Trainer(model=model, args=args, eval_dataset=data, {options})
    trainer.train()
"""
NUMPIFY = "lib:transformers/trainer_pt_utils.py:nested_numpify"
PAIR, BEST = "logits, labels = prediction", "np.argmax(logits, axis=-1)"


def trained(logits=PAIR, best=BEST, options="compute_metrics=restored"):
    return found(METRICS.format(logits=logits, best=best, options=options), "trainer.train()",
                 NUMPIFY)  # fmt: skip


@pytest.mark.parametrize(
    ("logits", "best", "name"),
    [
        (PAIR, BEST, "logits"),
        (PAIR, "logits.argmax(-1)", "logits"),
        (PAIR, "logits.argmax(axis=-1)", "logits"),
        ("labels = prediction.label_ids", "prediction.predictions.argmax(-1)",
         "prediction.predictions"),
        ("logits, labels = prediction.predictions, prediction.label_ids", BEST, "logits"),
        ("labels, logits = 0, prediction.predictions\n    logits = prediction.predictions", BEST,
         "logits"),
    ],
)  # fmt: skip
def test_all_logits_for_an_argmax(logits, best, name):
    words = trained(logits, best)["trainer_collects_logits"]
    assert words["logits"] == name
    assert words["best"] == best


@pytest.mark.parametrize(
    ("logits", "best", "options"),
    [
        (PAIR, BEST, "compute_metrics=restored, preprocess_logits_for_metrics=likeliest"),
        (PAIR, BEST, "callbacks=[]"),
        (PAIR, BEST, "compute_metrics=restored, **more"),
        (PAIR, "softmax(logits).argmax(-1)", "compute_metrics=restored"),
        (PAIR, "np.argmax(logits, axis=0)", "compute_metrics=restored"),
        (PAIR, f"{BEST}; top = np.sort(logits)", "compute_metrics=restored"),
        (PAIR, "logits > 0", "compute_metrics=restored"),
    ],
)
def test_logits_that_are_needed(logits, best, options):
    assert trained(logits, best, options) == {}
