"""Tokens that a loop adds one at a time, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
from tokenizers import AddedToken, Tokenizer
import transformers
def clean(text):
    return text.strip()
def build(tokenizer, symbols, texts, groups):
    added, tokens = 0, []
    for symbol in {items}:
        {body}
    return tokenizer
"""
ADD = "tokenizer.add_tokens([AddedToken(symbol, single_word=True)])"


@pytest.mark.parametrize(
    ("body", "call"),
    [
        (ADD, ADD),
        (f"if tokenizer.token_to_id(symbol) is None:\n            {ADD}", ADD),
        (f"if symbol in tokenizer.get_vocab(): continue\n        {ADD}", ADD),
        (f"added += {ADD}", ADD),
        (f"print(symbol)\n        {ADD}", ADD),
        ("tokenizer.add_tokens(symbol)", "tokenizer.add_tokens(symbol)"),
        ("tokenizer.add_tokens([clean(symbol)], special_tokens=True)",) * 2,
        ("tokenizer.add_special_tokens([symbol])",) * 2,
        ("tokenizer.add_tokens(f'<{symbol}>')",) * 2,
    ],
)
def test_tokens_that_are_added_one_at_a_time(body, call):
    assert list(found(SOURCE.format(items="symbols", body=body), call)) == ["tokens_added_singly"]


@pytest.mark.parametrize(
    ("items", "body", "call"),
    [
        ("symbols", "tokenizer.add_tokens(symbols)", "tokenizer.add_tokens(symbols)"),
        ("symbols", "tokenizer.add_tokens([symbol, symbol.lower()])",
         "tokenizer.add_tokens([symbol, symbol.lower()])"),
        ("symbols", "tokenizer.add_tokens([*symbol])", "tokenizer.add_tokens([*symbol])"),
        # The texts of each iteration need the tokens that were added before.
        ("symbols", f"{ADD}\n        tokens.append(tokenizer.encode(texts[symbol]))", ADD),
        ("symbols", f"tokens.append(len(tokenizer))\n        {ADD}", ADD),
        ("symbols", f"{ADD}\n        if symbol == 'x': return tokenizer", ADD),
        ("symbols", f"last = {ADD}", ADD),
        ("['<a>', '<b>', '<c>']", ADD, ADD),
        ("symbols", "vocabulary.add_words([symbol])", "vocabulary.add_words([symbol])"),
    ],
)  # fmt: skip
def test_other_loops(items, body, call):
    assert found(SOURCE.format(items=items, body=body), call) == {}


def test_a_file_without_tokenizers():
    source = SOURCE.replace("from tokenizers import AddedToken, Tokenizer", "")
    source = source.replace("import transformers", "")
    assert found(source.format(items="symbols", body=ADD), ADD) == {}


def test_the_code_for_tokens():
    source = SOURCE.format(items="symbols", body=f"if symbol:\n            added += {ADD}")
    assert found(source, ADD)["tokens_added_singly"] == {
        "file": "train.py",
        "loop": "15",
        "line": "17",
        "last": "17",
        "before": "new_tokens = []",
        "new": "new_tokens.append(AddedToken(symbol, single_word=True))",
        "after": "added += tokenizer.add_tokens(new_tokens)",
    }
