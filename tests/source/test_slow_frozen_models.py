"""Frozen models that a training applies again in each epoch, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
def language_model():
    encoder = nn.TransformerEncoder(layer, 4)
    {freeze}
    return encoder.eval()
{decorator}
def describe(encoder, ids):
    {first}
    return encoder(ids)
def main(ids, code, rng):
    encoder = language_model()
    head = nn.Linear(384, 40)
    opt = torch.optim.AdamW(head.parameters())
    for epoch in {epochs}:
        order = torch.randperm(len(ids))
        for start in range(0, len(ids), 60):
            pick = order[start:start + 60]
            {before}
            features = {call}
            loss = nn.functional.cross_entropy(head(features), code[pick])
            {train}
            opt.step()
"""
DESCRIBE = "describe(encoder, ids[pick])"
MODULE = "lib:torch/nn/modules/module.py:Module._call_impl"


def words(source=SOURCE, stack=(DESCRIBE, "encoder(ids)", MODULE), **changes):
    given = {
        "freeze": "for p in encoder.parameters(): p.requires_grad_(False)",
        "decorator": "@torch.no_grad()",
        "first": "pass",
        "epochs": "range(7)",
        "before": "pass",
        "call": DESCRIBE,
        "train": "loss.backward()",
        **changes,
    }
    return found(source.format(**given), *stack).get("frozen_model_in_epochs")


def test_an_encoder_that_is_frozen():
    assert words() == {
        "file": "train.py",
        "loop": "21",
        "how": "Before this loop, write `with torch.no_grad():\n    all_features = torch.cat("
        "[describe(encoder, part) for part in ids.split(256)])`. In the loop, write "
        "`all_features[pick]` instead of `describe(encoder, ids[pick])`.",
    }


def test_an_encoder_in_a_block_without_gradients():
    call = "encoder(ids[pick])"
    source = SOURCE.replace("features = {call}", "with torch.no_grad(): features = {call}")
    assert words(source, (call, MODULE), call=call, freeze="encoder.requires_grad_(False)")


def test_batches_of_a_loader():
    call = "describe(encoder, x)"
    source = SOURCE.replace("for start in range(0, len(ids), 60):", "for x, pick in loader:")
    source = source.replace("pick = order[start:start + 60]", "pass")
    assert "for each sample once" in words(source, (call, "encoder(ids)", MODULE), call=call)["how"]


@pytest.mark.parametrize(
    "changes",
    [
        {"freeze": "pass"},
        {"decorator": ""},
        {"epochs": "range(1)"},
        {"train": "pass"},
        {"train": "loss.backward(); encoder.load_state_dict(head.state_dict())"},
        {"train": "loss.backward(); a.lerp_(b, 0.01)"},
        {"train": "loss.backward(); encoder.requires_grad_(True)"},
        {"first": "ids = ids + torch.randn_like(ids)"},
        {"first": "ids = augment(ids)"},
        {"before": "ids = ids.flip_lr(1)", "first": "ids = random_crop(ids)"},
        {"call": "describe(encoder, sample(epoch))",
         "stack": ("describe(encoder, sample(epoch))", "encoder(ids)", MODULE)},
        {"stack": (DESCRIBE, "encoder(ids)", "lib:torch/nn/functional.py:linear")},
    ],
)  # fmt: skip
def test_other_models(changes):
    assert words(**changes) is None


def test_data_that_each_epoch_makes():
    source = SOURCE.replace("order = torch.randperm(len(ids))", "order, ids = 0, load(epoch)")
    found_words = words(source)
    assert found_words is None


def test_a_loop_without_epochs():
    source = SOURCE.replace("        for start in range(0, len(ids), 60):", "        if order:")
    assert words(source) is None


def test_a_model_whose_dropout_stays_on():
    assert words(SOURCE.replace("encoder.eval()", "encoder")) is None
