"""The table `cuda_gpu_trace` of `nsys stats`, as CSV: when each kernel and copy began and ended.

The times are in the unit that the name of the column has, since the begin of the capture. Other
tables of `nsys stats` have sums, and no times. Source: NVIDIA's Post-Collection Analysis Guide,
"cuda_gpu_trace", and outputs of 2023 to 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from teho.errors import InputError
from teho.jobs.cells import csv_cells
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.kernel_times import KERNELS_NOTE, Span, add_busy
from teho.jobs.log import Log, Source
from teho.patterns import lazy_pattern

__all__ = ["IMPORTER"]

_TOOL = "nsys stats"
_TABLE = "`nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep`"
_DEVICE, _NAME = "Device", "Name"
_TIMED = lazy_pattern(r"(Start|Duration) \((ns|us|µs|ms|s)(?:ec)?\)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_GPU = lazy_pattern(r"(.*\S)\s*\((\d+)\)")
_HEADING = lazy_pattern(r"\s*\*\* .+ \((\w+)\):\s*")
_OTHER = lazy_pattern(
    r"Time \(%\)[,\s]+Total Time|Total \(MB\)[,\s]+Count|Start \((?:ns|us|ms|s)\)"
)
_COPIES = ("[CUDA memcpy", "[CUDA memset")


class NsysStats(Importer):
    """The operations of all GPUs of one capture."""

    title = "nsys stats"
    written_by = "nsys stats --report cuda_gpu_trace --format csv"
    place = 8

    def recognises(self, source: Source) -> bool:
        """Return whether a line has the names of the columns."""
        return any(_columns(line) for line in source.lines(LINES_BEFORE))

    def advice(self, source: Source) -> str:
        """Return how to write the table that has times."""
        is_other = any(
            _HEADING.fullmatch(line) or _OTHER.search(line) for line in source.lines(LINES_BEFORE)
        )
        return f"for GPU busy over time, import the output of {_TABLE}" if is_other else ""

    def read(self, source: Source) -> Log:
        """Compute the GPU busy of each GPU from the times of the kernels.

        Raises:
            InputError: the table has no kernels.
        """
        log = Log(tool=_TOOL, is_whole=True)
        kernels: dict[str, list[Span]] = {}
        first_s, last_s = float("inf"), 0.0
        is_kernel = False
        for row, begin_s, end_s in _operations(source, log):
            match = _GPU.fullmatch(row[_DEVICE])
            key = match[2] if match else row[_DEVICE] or "0"
            if key not in kernels:
                facts = log.gpu("", key)
                facts.vendor, facts.name = "nvidia", match[1] if match else row[_DEVICE]
                facts.index = int(key) if key.isdecimal() else None
            spans = kernels.setdefault(key, [])
            if not row[_NAME].startswith(_COPIES):
                spans.append((begin_s, end_s))
                is_kernel = True
            first_s, last_s = min(first_s, begin_s), max(last_s, end_s)
        if not is_kernel:
            raise InputError(
                f"{source.path} has no kernels",
                "a table cuda_gpu_trace with kernels",
                "record the program with `nsys profile --cuda-graph-trace=node …`, and then use "
                f"{_TABLE}",
            )
        add_busy(log, kernels, (first_s, last_s), begin_s=source.changed_s - last_s)
        changed = datetime.fromtimestamp(source.changed_s, timezone.utc).astimezone()
        log.notes.append(
            f"{KERNELS_NOTE} The table has the kernels of CUDA graphs only if the program was "
            "recorded with `--cuda-graph-trace=node`."
        )
        log.notes.append(
            "The table has times since the begin of the capture, and no date. Teho assumes that "
            f"the capture ended when the file was last changed: {changed:%Y-%m-%d %H:%M:%S %Z}."
        )
        return log


def _operations(source: Source, log: Log) -> Iterator[tuple[dict[str, str], float, float]]:
    """Yield each operation by column, with its begin and end in s since the begin of the capture.

    Other tables in the same file are not used.
    """
    columns: dict[str, float] = {}
    names: list[str] = []
    for line in source.lines():
        if found := _columns(line):
            columns, names = found, csv_cells(line)
            log.keep_unused(names, {*found, _DEVICE, _NAME})
        elif _HEADING.fullmatch(line) or _OTHER.search(line):
            names = []
        elif names and line.strip():
            operation = _operation(csv_cells(line), names, columns)
            log.skipped_lines += operation is None
            if operation:
                yield operation


def _columns(line: str) -> dict[str, float]:
    """Return the columns of a begin and a length, with the factor of their unit to s.

    Empty: the line does not have the names of the columns.
    """
    if "Start (" not in line:
        return {}
    cells = csv_cells(line)
    matches = [match for cell in cells if (match := _TIMED.fullmatch(cell))]
    if [match[1] for match in matches] != ["Start", "Duration"] or _DEVICE not in cells:
        return {}
    return {match[0]: _UNITS[match[2]] for match in matches} if cells[-1] == _NAME else {}


def _operation(
    cells: list[str], names: list[str], columns: dict[str, float]
) -> tuple[dict[str, str], float, float] | None:
    """Return a row by column, with its begin and end in s; None if it is not a row of the table."""
    if len(cells) < len(names):
        return None
    # A name of a kernel may have commas.
    last = len(names) - 1
    row = dict(zip(names, [*cells[:last], ",".join(cells[last:])], strict=True))
    (start, unit), (length, length_unit) = columns.items()
    try:
        begin_s = float(row[start]) * unit
        end_s = begin_s + float(row[length]) * length_unit
    except ValueError:
        return None
    return (row, begin_s, end_s) if 0 <= begin_s <= end_s < float("inf") else None


IMPORTER = NsysStats
