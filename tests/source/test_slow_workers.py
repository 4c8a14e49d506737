"""Items that each worker of a data loader prepares, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

WORKER = "lib:torch/utils/data/_utils/worker.py:_worker_loop"
FETCH = "lib:torch/utils/data/_utils/fetch.py:_IterableDatasetFetcher.fetch"
SOURCE = """
import cv2, pickle
from torch.utils.data import IterableDataset, get_worker_info
def prepare(data):
    return np.array(data)[::2]
def following(stream):
    return stream.read(8)
class Pack(IterableDataset):
    def decode(self, data):
        return np.array(data)[::3]
    def count(self, data):
        self.seen = data
        return data
    def __iter__(self):
        worker = get_worker_info()
        share, shares = (worker.id, worker.num_workers) if worker else (0, 1)
        for number, item in enumerate(self.items):
            {first}
            {more}
            {choose}
"""
PARTS = {
    "first": "picture = prepare(item)",
    "more": "pass",
    "choose": "if number % shares == share:\n                yield picture",
}
SKIP = "if number % shares != share:\n                continue\n            yield picture"


def names(call, *inner, libraries=(WORKER, FETCH), **changes):
    return found(SOURCE.format(**(PARTS | changes)), *libraries, call, *inner)


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ("prepare(item)", {}),
        ("prepare(item)", {"choose": SKIP}),
        ("self.decode(item)", {"first": "picture = self.decode(item)"}),
        ("cv2.imread(item)", {"first": "picture = cv2.imread(item)"}),
        (
            "prepare(item)",
            {"choose": "if share == number % shares:\n                yield picture"},
        ),
        ("prepare(item)", {"choose": SKIP.replace("share:", "worker.id:")}),
    ],
)
def test_workers_that_choose_late(call, changes):
    inner = ["np.array(data)[::2]"] if call == "prepare(item)" else []
    assert list(names(call, *inner, **changes)) == ["worker_chooses_late"]


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ("prepare(item)", {"libraries": (FETCH,)}),  # not in a worker
        ("prepare(item)", {"choose": "yield picture"}),
        ("prepare(item)", {"choose": "if number % 2 == 0:\n                yield picture"}),
        ("prepare(item)", {"choose": "if picture.sum() % shares == share:\n"
                                     "                yield picture"}),
        ("prepare(item)", {"more": "print(picture)"}),
        ("prepare(item)", {"more": "item = item + 1"}),
        ("prepare(item)", {"choose": SKIP.replace("continue", "break")}),
        # The next item needs the position after this one.
        ("following(item)", {"first": "picture = following(item)"}),
        ("pickle.load(self.file)", {"first": "picture = pickle.load(self.file)"}),
        ("next(self.items)", {"first": "picture = next(self.items)"}),
        ("self.file.read(9)", {"first": "picture = self.file.read(9)"}),
        ("self.count(item)", {"first": "picture = self.count(item)"}),
    ],
)  # fmt: skip
def test_other_workers(call, changes):
    assert names(call, **changes) == {}


def test_the_words_for_workers():
    assert names("prepare(item)", choose=SKIP)["worker_chooses_late"] == {
        "file": "train.py",
        "line": "25",
        "old": "picture = prepare(item)",
        "test": "27",
        "where": "after the `if` at line 27",
    }


GENERATOR = """
from torch.utils.data import IterableDataset, get_worker_info
def prepare(data):
    return np.array(data)[::2]
class Pack(IterableDataset):
    def decode(self, data):
        return np.array(data)[::3]
    def pictures(self):
        with open(self.path, "rb") as pack:
            number = 0
            while header := pack.read(8):
                data = pack.read(9)
                {gives}
                number += 1
    def __iter__(self):
        worker = get_worker_info()
        share, shares = (worker.id, worker.num_workers) if worker else (0, 1)
        for {names} in self.pictures():
            {choose}
"""
GIVES = {
    "gives": "yield number, prepare(data), header",
    "names": "number, picture, label",
    "choose": "if number % shares == share:\n                yield picture, label",
}


def given(call="prepare(data)", **changes):
    parts = GIVES | changes
    loop = f"for {parts['names']} in self.pictures():"
    return found(GENERATOR.format(**parts), WORKER, FETCH, loop, call)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"call": "self.decode(data)", "gives": "yield number, self.decode(data), header"},
        {"choose": ("if number % shares != share:\n                continue\n"
                    "            yield picture, label")},
    ],
)  # fmt: skip
def test_generators_that_prepare_for_all_workers(changes):
    assert list(given(**changes)) == ["worker_chooses_after_generator"]


@pytest.mark.parametrize(
    "changes",
    [
        {"call": "pack.read(9)"},
        {"gives": "yield prepare(data), number, header"},  # the number is in another place
        {"names": "number, *picture"},
        {"choose": "print(picture)\n            if number % shares == share: yield picture, label"},
        {"choose": "yield picture, label"},
    ],
)
def test_other_generators(changes):
    assert given(**changes) == {}


def test_the_words_for_generators():
    assert given()["worker_chooses_after_generator"] == {
        "file": "train.py",
        "line": "20",
        "old": "yield number, prepare(data), header",
        "new": "yield number, data, header",
        "before": "27",
        "prepare": "picture = prepare(picture)",
    }
