"""Models that a function loads for each item of a loop, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
from transformers import AutoModel, pipeline
KEPT = {{}}
def fine_tune(model, item):
    model.train()
def embed(model, item):
    return model(item).pooled
def score(item, folder, size=2):
    model = {load}
    {body}
def main(items, folder, folders):
    for item in {items}:
        print({call})
"""
LOAD = "AutoModel.from_pretrained(folder)"
BODY = "return model(item).logits"
CALL = "score(item, folder)"


@pytest.mark.parametrize(
    ("load", "body", "call", "is_found"),
    [
        (LOAD, BODY, CALL, True),
        (LOAD, f"model.eval()\n    {BODY}", CALL, True),
        (f"{LOAD}.to('cpu').eval()", BODY, CALL, True),
        ("AutoModel.from_pretrained('bert-base-uncased')", BODY, CALL, True),
        ("pipeline('text-classification', model=folder)", "return model(item)", CALL, True),
        ("AutoModel.from_pretrained(folder, num_labels=size)", BODY, CALL, True),
        (LOAD, "return embed(model, item)", CALL, True),
        # ---- which look like it ----
        (LOAD, BODY, "score(1, item)", False),
        (LOAD, BODY, "score(item, folders[item])", False),
        (LOAD, BODY, "score(item, f'{folder}/{item}')", False),
        ("AutoModel.from_pretrained(item)", BODY, CALL, False),
        (LOAD, "return model", CALL, False),
        (LOAD, "model.train()", CALL, False),
        (LOAD, "torch.optim.SGD(model.parameters())", CALL, False),
        (LOAD, "KEPT[item] = model", CALL, False),
        (LOAD, "fine_tune(model, item)", CALL, False),
        (LOAD, "model.head.weight = item", CALL, False),
        ("make(folder)", BODY, CALL, False),
    ],
)
def test_functions(load, body, call, is_found):
    source = SOURCE.format(load=load, body=body, call=call, items="items")
    active = load.partition(".to(")[0]
    assert ("model_loaded_for_each" in found(source, call, active)) is is_found


def test_loops_of_few_items_and_single_calls():
    source = SOURCE.format(load=LOAD, body=BODY, call=CALL, items="['a', 'b']")
    assert found(source, CALL, LOAD) == {}
    source = source.replace("for item in ['a', 'b']", "if (item := items)")
    assert found(source, CALL, LOAD) == {}


def test_the_code():
    source = SOURCE.format(
        load="AutoModel.from_pretrained(folder, num_labels=size)",
        body=BODY,
        call=CALL,
        items="items",
    )
    active = "AutoModel.from_pretrained(folder, num_labels=size)"
    assert found(source, CALL, active)["model_loaded_for_each"] == {
        "file": "train.py",
        "define": "15",
        "function": "score",
        "new": "load_once(folder, size)",
        "made": "@functools.cache\ndef load_once(folder, size): "
        "return AutoModel.from_pretrained(folder, num_labels=size)",
    }
