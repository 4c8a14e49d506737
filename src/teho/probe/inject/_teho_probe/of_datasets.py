"""Hugging Face Datasets: the columns of each data set, and their sizes.

Reading a row decodes all columns, also those that the program does not use. The sizes are those of
the Arrow buffers: no data is read.
"""

from __future__ import annotations

from functools import wraps

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

_MOST_TABLES = 20
_MOST_COLUMNS = 100


def datasets_arrow_dataset(module: Any, notes: Notes) -> None:
    """Note the columns of each new data set; many data sets have the same columns."""
    tables = module.Dataset
    init = tables.__init__

    @wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        try:
            _note(self, notes)
        except Exception as error:
            notes.failed("datasets", error)

    tables.__init__ = made


def _note(dataset: Any, notes: Notes) -> None:
    table = dataset.data.table
    rows, names = int(table.num_rows), list(table.column_names)
    known = notes.libraries.get("datasets", {}).get("tables", [])
    if not rows or len(names) > _MOST_COLUMNS or len(known) >= _MOST_TABLES:
        return
    if any(list(one["columns"]) == names and one["rows"] >= rows for one in known):
        return
    sizes = {str(name): int(table.column(place).nbytes) for place, name in enumerate(names)}
    others = [one for one in known if list(one["columns"]) != names]
    notes.fact("datasets", tables=[*others, {"rows": rows, "columns": sizes}])
