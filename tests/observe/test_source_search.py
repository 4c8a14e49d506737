"""The program's source is searched at the end of a run, once for stacks that are the same."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from teho.model.in_source import Need
from teho.model.stack import Frame
from teho.observe import source_search
from teho.observe.option_lines import SearchBudget
from teho.observe.source_search import source_lines
from teho.observe.stack_lines import StackLines
from teho.source.parsed import parsed
from teho.store.stacks import read_stacks

FILE = "/home/ada/train.py"
SOURCE = b"""import numpy as np
def main(matrix):
    for step in range(100):
        result = np.linalg.inv(matrix)
        fit(result)
"""
CALL = Frame(FILE, "main", 4, "np.linalg.inv(matrix)")
START = Frame(FILE, "<module>", 2, "main(matrix)")
INSIDE = Frame("/lib/python3.11/site-packages/numpy/linalg/_linalg.py", "inv", 600, "")


def test_same_stacks_of_ranks_are_searched_once():
    read = []

    def lines_of(pid, path):
        read.append((pid, path))
        return SOURCE.split(b"\n")

    times = {("rank 0", 100): Counter({0: 400, -1: 600}), ("rank 1", 101): Counter({0: 1000})}
    written = list(source_lines(times, [(INSIDE, CALL)], {CALL: 0, INSIDE: 1}, lines_of))
    assert [line["process"] for line in written] == ["rank 0", "rank 1"]
    (one,) = written[0]["repeated"]
    assert one["calls"] == [0]
    assert one["is_same"] is True
    assert written[1]["repeated"] == [one]
    assert set(read) == {(100, FILE)}  # neither again for rank 1, nor the library's file


def test_a_file_is_parsed_once_for_calls_and_options_of_all_ranks(monkeypatch):
    texts = []

    def parse(text):
        texts.append(text)
        return parsed(text)

    monkeypatch.setattr(source_search, "parsed", parse)
    times = {("rank 0", 100): Counter({0: 400}), ("rank 1", 101): Counter({1: 1000})}
    stacks = [(INSIDE, CALL), (CALL,)]
    list(source_lines(times, stacks, {CALL: 0, INSIDE: 1}, lambda *_: SOURCE.split(b"\n")))
    assert texts == [SOURCE]


@pytest.mark.parametrize(("time_ms", "is_searched"), [(4, False), (5, True)])
def test_rare_stacks_are_not_searched(time_ms, is_searched):
    times = {("rank 0", 100): Counter({0: time_ms, 1: 1000 - time_ms})}
    stacks = [(INSIDE, CALL), (START,)]
    written = source_lines(
        times, stacks, {CALL: 0, INSIDE: 1, START: 2}, lambda *_: SOURCE.split(b"\n")
    )
    assert bool(list(written)) is is_searched


def test_a_lazy_table_and_a_query(tmp_path):
    source = b"""import polars as pl, sqlite3, made
def main(path, db, keys):
    rows = pl.scan_csv(path)
    for key in keys:
        one = rows.filter(pl.col("a") == key).collect()
        two = db.execute("SELECT b FROM t WHERE a = ?", (key,)).fetchone()
"""
    file = str(tmp_path / "run.py")
    (tmp_path / "made.py").write_text('SCHEMA = "CREATE TABLE t (a TEXT, b REAL)"\n')
    collect = Frame(file, "main", 5, 'rows.filter(pl.col("a") == key).collect()')
    query = Frame(file, "main", 6, 'db.execute("SELECT b FROM t WHERE a = ?", (key,))')
    inside = Frame("/lib/python3.11/site-packages/polars/lazyframe/frame.py", "collect", 9, "")
    times = {("rank 0", 100): Counter({0: 400, 1: 600})}
    numbers = {collect: 0, inside: 1, query: 2}
    stacks = [(inside, collect), (query,)]
    lines = list(source_lines(times, stacks, numbers, lambda *_: source.split(b"\n")))
    (plan,) = next(line["repeated_plans"] for line in lines if "repeated_plans" in line)
    assert (plan["calls"], plan["text"], plan["kept"][2]) == ([0], "rows", 3)
    (missing,) = next(line["missing_indexes"] for line in lines if "missing_indexes" in line)
    assert (missing["frame"], missing["table"], missing["columns"]) == (2, "t", ("a",))
    assert missing["made"][0] == str(tmp_path / "made.py")
    path = tmp_path / "node-stacks-7.jsonl"
    frames = [
        {"frame": number, "is": [one.file, one.function, one.line, one.text]}
        for one, number in numbers.items()
    ]
    seen = {"process": "rank 0", "from_s": 0, "until_s": 9, "seen": {}, "stayed": {}}
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (*frames, seen, *lines)))
    process = read_stacks(path, [])["node-rank 0"]
    assert process.in_loops["repeated_plans"][0].call == collect
    assert process.missing_indexes[0].frame == query


def test_results_that_are_used_seldom_or_in_part(tmp_path):
    source = b"""import numpy as np
def main(grid, top):
    for step in range(5000):
        value = np.fft.rfft(grid).real
        if step % 100 == 0:
            print(value)
        tile(grid, step)
def tile(scene, top):
    x = np.sqrt(scene)
    return x[top : top + 64]
"""
    order, root = (
        Frame(FILE, "main", 4, "np.fft.rfft(grid)"),
        Frame(FILE, "tile", 9, "np.sqrt(scene)"),
    )
    caller, beside = Frame(FILE, "main", 7, "tile(grid, step)"), Frame(FILE, "main", 6, "")
    numbers = {order: 0, root: 1, caller: 2, beside: 3}
    stacks = [(order,), (root, caller), (beside,)]
    times = {("rank 0", 100): Counter({0: 400, 1: 500, 2: 100})}
    lines = list(source_lines(times, stacks, numbers, lambda *_: source.split(b"\n")))
    path = tmp_path / "node-stacks-7.jsonl"
    frames = [
        *({"frame": n, "is": [*msgspec.to_builtins(one)]} for one, n in numbers.items()),
        *({"stack": n, "frames": [numbers[one] for one in each]} for n, each in enumerate(stacks)),
    ]
    seen = [
        {
            "process": "rank 0", "from_s": number, "until_s": number + 1, "stayed": {},
            "seen": {str(one): {"native": [1, 0.3]} for one in range(3)},
        }
        for number in range(4)
    ]  # fmt: skip
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (*frames, *seen, *lines)))
    seldom, part = read_stacks(path, [])["node-rank 0"].in_loops["unneeded"]
    if seldom.need is Need.PART:
        seldom, part = part, seldom
    assert (seldom.calls, seldom.share, seldom.moved) == ((order,), 0.01, (4,))
    assert (seldom.at[0].text, seldom.at[0].line) == ("step % 100 == 0", 5)
    assert seldom.periods == 4
    assert (part.need, part.calls, part.at[0].line) == (Need.PART, (caller, root), 10)


def test_a_call_for_which_there_is_a_faster_way(tmp_path):
    source = b"""import sqlite3
def pages(db):
    start = 0
    while True:
        cursor = db.execute("SELECT a FROM t ORDER BY a LIMIT 50 OFFSET ?", (start,))
        rows = cursor.fetchall()
        start += len(rows)
"""
    query = Frame(FILE, "pages", 5, "")
    fetch = Frame(FILE, "pages", 6, "cursor.fetchall()")
    times = {("rank 0", 100): Counter({0: 600, 1: 400})}
    numbers = {query: 0, fetch: 1}
    lines = list(source_lines(times, [(query,), (fetch,)], numbers, lambda *_: source.split(b"\n")))
    path = tmp_path / "node-stacks-7.jsonl"
    frames = [{"frame": n, "is": [*msgspec.to_builtins(one)]} for one, n in numbers.items()]
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (*frames, *lines)))
    (option,) = read_stacks(path, [])["node-rank 0"].costly_options
    assert (option.name, option.at.text) == ("pages_by_offset", "LIMIT 50 OFFSET ?")
    assert set(option.lines) == {query, fetch}
    assert option.words["key"] == "a"


def test_a_module_that_cannot_be_parsed_may_create_indexes(tmp_path):
    source = b"""import sqlite3, made
def main(db, keys):
    db.execute("CREATE TABLE t (a TEXT, b REAL)")
    for key in keys:
        two = db.execute("SELECT b FROM t WHERE a = ?", (key,)).fetchone()
"""
    query = Frame(str(tmp_path / "run.py"), "main", 5, "")
    times = {("rank 0", 100): Counter({0: 1000})}
    for text, count in (("x = 1", 1), ("x = (", 0)):
        (tmp_path / "made.py").write_text(text)
        lines = source_lines(times, [(query,)], {query: 0}, lambda *_: source.split(b"\n"))
        assert sum("missing_indexes" in line for line in lines) == count


def test_an_option_in_a_module_that_is_on_no_stack(tmp_path):
    source = b"import numpy as np\nimport models, settings\nmodels.new().fit(x, y)\n"
    text = "from sklearn.svm import SVC\ndef new():\n    return SVC(probability=True)\n"
    (tmp_path / "models.py").write_text(text)
    (tmp_path / "settings.py").write_text("import json\n")
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("numpy", "sklearn"):
        (packages / name).mkdir(parents=True)
    fit = Frame(str(tmp_path / "run.py"), "<module>", 3, "models.new().fit(x, y)")
    inside = Frame(f"{packages}/sklearn/svm/_base.py", "BaseLibSVM.fit", 9, "")
    times = {("rank 0", 100): Counter({0: 1000}), ("rank 1", 101): Counter({0: 1000})}

    def written():
        numbers = {fit: 0, inside: 1}
        lines = source_lines(times, [(inside, fit)], numbers, lambda *_: source.split(b"\n"))
        return [line for line in lines if "costly_options" in line]

    first, second = written()
    (option,) = first["costly_options"]
    assert (option["name"], option["lines"]) == ("svm_probability", [])
    assert tuple(option["at"]) == (str(tmp_path / "models.py"), "new", 3, "probability=True")
    assert second["costly_options"] == [option]
    path = tmp_path / "node-stacks-7.jsonl"
    seen = {"process": "rank 0", "from_s": 0, "until_s": 9, "seen": {}, "stayed": {}}
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (seen, first)))
    (read,) = read_stacks(path, [])["node-rank 0"].costly_options
    assert read.at.short_place == "models.py:3"
    (tmp_path / "settings.py").write_text("ASKS = 'predict_proba'\n")
    assert written() == []
    (tmp_path / "settings.py").write_text("import not_installed\n")
    assert written() == []


def test_the_search_ends_if_its_time_is_over():
    for budget, is_spent in (
        (SearchBudget(60.0, 60.0), False),
        (SearchBudget(60.0, -1.0), True),
        (SearchBudget(-1.0, 60.0), True),
    ):
        assert budget.is_spent is is_spent


def test_other_processes_on_the_cores_take_no_cpu_time_of_the_search():
    budget = SearchBudget(0.2, 60.0)
    time.sleep(0.3)
    assert not budget.is_spent
    end_s = time.thread_time() + 0.25
    while time.thread_time() < end_s:
        pass
    assert budget.is_spent


@pytest.mark.parametrize("is_known", [False, True])
def test_an_option_that_needs_all_files_if_no_sample_has_a_library(tmp_path, is_known):
    source = (
        b"import numpy as np\n"
        b"hours = np.arange(900).astype(np.longdouble)\n"
        b"for k in range(900):\n"
        b"    place = np.sin(k * hours)\n"
        b"print(place.astype(float))\n"
    )
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "numpy").mkdir(parents=True)
    sine = Frame(str(tmp_path / "run.py"), "<module>", 4, "np.sin(k * hours)")
    lines = source_lines(
        {("rank 0", 100): Counter({0: 1000})},
        [(sine,)],
        {sine: 0},
        lambda *_: source.split(b"\n"),
        [str(packages)] if is_known else [],
    )
    names = [option["name"] for line in lines for option in line.get("costly_options", ())]
    assert ("extended_precision" in names) is is_known


def test_the_folder_of_a_library_that_a_process_has_loaded(tmp_path):
    lines = StackLines(tmp_path)
    lines._find_packages(os.getpid())
    folder = Path(msgspec._core.__file__).resolve().parents[1]
    assert str(folder) in lines._packages
