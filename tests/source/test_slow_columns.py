"""Rows of Hugging Face data sets with columns that a program does not use, and look-alikes."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
from datasets import load_from_disk
class Grains(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.table = {made}
    def __len__(self):
        return len(self.table)
    def __getitem__(self, index):
        grain = self.table[index]
        return {used}
    def more(self):
        {more}
"""
PARTS = {
    "made": "load_from_disk(folder)",
    "used": 'torch.tensor(grain["summary"]), torch.tensor(grain["dose"])',
    "more": "pass",
}
FETCH = "lib:torch/utils/data/_utils/fetch.py:_MapDatasetFetcher.fetch"
DECODE = "lib:datasets/formatting/formatting.py:PythonArrowExtractor.extract_row"
NAME = "rows_with_all_columns"


def rows(call="self.table[index]", library=DECODE, **changes):
    return found(SOURCE.format(**(PARTS | changes)), FETCH, call, library)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"made": "folder"},
        {"made": 'load_from_disk(folder)["train"]'},
        {"more": "return self.table.num_rows"},
        {"more": "return range(len(self.table))"},
    ],
)
def test_rows_of_which_some_columns_are_used(changes):
    assert rows(**changes)[NAME]["used"] == "'dose', 'summary'"


@pytest.mark.parametrize(
    "changes",
    [
        {"made": "load_from_disk(folder).select_columns(['dose', 'summary'])"},
        {"made": "load_from_disk(folder).with_format('torch')"},
        {"used": "grain"},
        {"used": "collate(grain), grain['dose']"},
        {"used": "grain[index]"},
        {"more": "return show(self.table)"},
        {"more": "return self.table[3]"},
        {"more": "self.table = other"},
        {"more": "self.table, self.size = other, 3"},
        {"library": "lib:pandas/core/frame.py:DataFrame.__getitem__"},
    ],
)
def test_other_rows(changes):
    assert rows(**changes) == {}


LOOP = """
from datasets import load_dataset
def main(name):
    data = load_dataset(name, split="train")
    for row in data:
        print(row["text"]{more})
"""


@pytest.mark.parametrize(("more", "count"), [("", 1), (', row["label"]', 1), (", row", 0)])
def test_a_loop_over_rows(more, count):
    words = found(LOOP.format(more=more), "data", "lib:datasets/arrow_dataset.py:Dataset.__iter__")
    assert len(words) == count


@pytest.mark.parametrize(("column", "count"), [("['text']", 1), ("[3]", 0)])
def test_one_column_of_a_row(column, count):
    source = f"""
    from datasets import load_dataset
    def main(name, number):
        data = load_dataset(name, split="train")
        return data[number]{column}
    """
    words = found(source, "data[number]", DECODE)
    assert len(words) == count


def test_the_code_for_columns():
    assert rows()[NAME] == {
        "file": "train.py",
        "line": "12",
        "used": "'dose', 'summary'",
        "old": "load_from_disk(folder)",
        "new": "load_from_disk(folder).select_columns(['dose', 'summary'])",
    }
