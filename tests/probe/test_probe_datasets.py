"""What the probe notes of Hugging Face Datasets, by a stand-in with the same classes."""

from __future__ import annotations

from pathlib import Path

from probe.probed import Probed

STAND_IN = """
class _Column:
    def __init__(self, nbytes): self.nbytes = nbytes
class _Table:
    def __init__(self, rows, columns):
        self.num_rows, self._columns = rows, columns
        self.column_names = list(columns)
    def column(self, place): return _Column(list(self._columns.values())[place])
class _Data:
    def __init__(self, table): self.table = table
class Dataset:
    '''Rows with columns.'''
    def __init__(self, rows, **columns):
        if not columns: raise ValueError("no columns")
        self._data = _Data(_Table(rows, columns))
    data = property(lambda self: self._data)
"""
PROGRAM = """
import inspect
from datasets.arrow_dataset import Dataset
Dataset(9, curve=2400, dose=4)
Dataset(3, curve=800, dose=2)        # fewer rows of the same columns
Dataset(20, curve=4800, dose=9)      # more of them
Dataset(9, dose=4)
Dataset(0, empty=0)
print(inspect.signature(Dataset), Dataset.__doc__)
try:
    Dataset(1)
except ValueError as error:
    print(error)
"""


def test_the_columns_of_data_sets(probed: Probed, tmp_path: Path) -> None:
    (tmp_path / "site" / "datasets").mkdir(parents=True)
    (tmp_path / "site" / "datasets" / "__init__.py").write_text("")
    (tmp_path / "site" / "datasets" / "arrow_dataset.py").write_text(STAND_IN)
    probed.path = str(tmp_path / "site")
    probed.both(PROGRAM)
    (process,) = probed.watched()
    assert process.libraries["datasets"] == {
        "tables": [
            {"rows": 20, "columns": {"curve": 4800, "dose": 9}},
            {"rows": 9, "columns": {"dose": 4}},
        ]
    }


def test_another_module_with_this_name(probed: Probed, tmp_path: Path) -> None:
    (tmp_path / "site" / "datasets").mkdir(parents=True)
    (tmp_path / "site" / "datasets" / "__init__.py").write_text("")
    (tmp_path / "site" / "datasets" / "arrow_dataset.py").write_text("answer = 42\n")
    probed.path = str(tmp_path / "site")
    probed.both("from datasets.arrow_dataset import answer; print(answer)")
    (lines,) = probed.processes()
    failed = [line["failed"] for line in lines if "failed" in line]
    assert len(failed) == 1
    assert "has no attribute 'Dataset'" in failed[0]
