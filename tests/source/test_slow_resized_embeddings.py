"""Embeddings that a loop resizes for each new token, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
from transformers import AutoModel
def build(tokenizer, model, names, texts):
    rows = []
    for name in {items}:
        {body}
    return model
"""
RESIZE = "model.resize_token_embeddings(len(tokenizer))"
ADD = "tokenizer.add_tokens([name])"


@pytest.mark.parametrize(
    ("items", "body", "is_found"),
    [
        ("names", f"{ADD}\n        {RESIZE}", True),
        ("names", f"if name not in texts:\n            {ADD}\n        {RESIZE}", True),
        ("sorted(names)", f"{ADD}\n        rows.append(name)\n        {RESIZE}", True),
        # ---- which look like it ----
        ("['<a>', '<b>']", f"{ADD}\n        {RESIZE}", False),
        ("names", f"{ADD}\n        {RESIZE}\n        rows.append(model(name))", False),
        ("names", f"{ADD}\n        {RESIZE}\n        model.wte.weight[-1] = texts[name]", False),
        ("names", f"{ADD}\n        {RESIZE}\n        if name == 'x': break", False),
        ("names", f"{ADD}\n        if name in texts:\n            {RESIZE}", False),
    ],
)
def test_loops(items, body, is_found):
    words = found(SOURCE.format(items=items, body=body), RESIZE)
    assert ("embeddings_resized_again" in words) is is_found


def test_another_size_and_the_call_after_the_loop():
    other = "model.resize_token_embeddings(name)"
    assert found(SOURCE.format(items="names", body=f"{ADD}\n        {other}"), other) == {}
    after = SOURCE.format(items="names", body=ADD).replace("return model", RESIZE)
    assert found(after, RESIZE) == {}


def test_the_code():
    words = found(SOURCE.format(items="names", body=f"{ADD}\n        {RESIZE}"), RESIZE)
    assert words["embeddings_resized_again"] == {
        "file": "train.py",
        "loop": "12",
        "line": "14",
        "last": "14",
        "after": RESIZE,
    }
