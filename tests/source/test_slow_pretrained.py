"""Models that a loop loads again, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
from transformers import AutoModelForSequenceClassification, AutoTokenizer
def score(comment, folder):
    model = {call}
    model.eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([comment])).logits
def main(folder, folders, comments):
    {more}
    return [score(comment, {folder}) for comment in {items}]
"""
CALL = "AutoModelForSequenceClassification.from_pretrained(folder)"


def words(call=CALL, folder="folder", items="comments", more="pass"):
    source = SOURCE.format(call=call, folder=folder, items=items, more=more)
    return found(source, f"score(comment, {folder})", call).get("model_loaded_again")


def test_a_model_for_each_text():
    assert words() == {
        "code": f"model = {CALL}",
        "loop": "train.py:17",
        "function": "score",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"items": "[1, 2]"},
        {"folder": "folders[comment]"},
        {"folder": "comment"},
        {"call": "AutoTokenizer.load(folder)"},
        {"call": "mine.from_pretrained(folder)"},
        {"more": "optimizer = torch.optim.SGD(params)"},
        {"more": "loss.backward()"},
    ],
)
def test_other_loops(changes):
    assert words(**changes) is None
