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
        (LOAD, "return fine_tune(model=model, item=item)", CALL, False),
        (LOAD, "return other(model=model)", CALL, False),
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


IN_LOOP = """
from transformers import AutoModel
def main(items, folder, folders, kept):
    for item in items:
        model = {load}
        {body}
"""


@pytest.mark.parametrize(
    ("load", "body", "is_found"),
    [
        (LOAD, "print(model(item))", True),
        (
            "AutoModel.from_pretrained('bert-base-uncased', num_labels=3)",
            "print(model(item))",
            True,
        ),
        # ---- which look like it ----
        ("AutoModel.from_pretrained(item)", "print(model(item))", False),
        ("AutoModel.from_pretrained(folders[item])", "print(model(item))", False),
        (LOAD, "kept.append(model)", False),
        (LOAD, "trainer = Trainer(model=model)", False),
        (LOAD, "train(model, item)", False),
        (LOAD, "model.fit(item)", False),
    ],
)
def test_models_in_loops(load, body, is_found):
    words = found(IN_LOOP.format(load=load, body=body), load)
    assert ("model_loaded_in_loop" in words) is is_found
    if is_found:
        given = words["model_loaded_in_loop"]
        assert given["statement"] == f"model = {load}"
        assert (given["line"], given["loop"]) == ("12", "11")
