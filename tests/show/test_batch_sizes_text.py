"""What `teho tune --find batch-size` prints."""

from __future__ import annotations

import json

import jsonschema
import msgspec

from teho.model.batch_sizes import BatchSizes, BatchTry, MemoryUse
from teho.model.tuned import Change
from teho.show.build.batch_sizes import batch_sizes_document
from teho.show.html.page import render_html
from teho.show.json.noun import render_noun, schema_of
from teho.show.text.document import render_text

GIB = 1024**3


def on_gpu(own: float, used: float) -> MemoryUse:
    return MemoryUse(
        host_bytes=3 * GIB,
        gpu_bytes=int(own * GIB),
        gpu_used_bytes=int(used * GIB),
        gpu_total_bytes=40 * GIB,
    )


FOUND = BatchSizes(
    command=("python", "träin.py", "\udcff"),
    outcome="found",
    verdict="The largest batch that fits is 1,536 (38.1 GiB of 40.0 GiB GPU memory); 512 was the "
    "fastest in single runs: 1,240 samples/s",
    ended_by="memory",
    own=512,
    largest=1536,
    fastest=512,
    changes=(
        Change(file="/elsewhere/train.py", line=31, text="DataLoader(data, batch_size=512)",
               set_to="batch_size=1536", remark="the largest batch that fits"),
    ),
    tries=(
        BatchTry(batch_size=512, ended="fits", memory=on_gpu(13.5, 14), samples_per_s=1240.0),
        BatchTry(batch_size=1024, ended="fits", memory=on_gpu(25.5, 26), samples_per_s=1190.0),
        BatchTry(batch_size=2048, ended="out_of_memory", memory=MemoryUse(),
                 why="torch.OutOfMemoryError: CUDA out of memory [x]"),
        BatchTry(batch_size=1536, ended="fits", memory=on_gpu(38.1, 38.6),
                 why="its speed is not known"),
    ),
    notes=("A remark.",),
    elapsed_s=100.0,
)  # fmt: skip
TEXT = """\
✓ The largest batch that fits is 1,536 (38.1 GiB of 40.0 GiB GPU memory); 512 was the fastest in
  single runs: 1,240 samples/s

Tried
                                        GPU memory ───────────
batch size  result           samples/s   program  all programs  host memory
       512  fits, unchanged      1,240  13.5 GiB      14.0 GiB     3.00 GiB
     1,024  fits                 1,190  25.5 GiB      26.0 GiB     3.00 GiB
     1,536  fits                     –  38.1 GiB      38.6 GiB     3.00 GiB
     2,048  out of memory            –         –             –            –
  Each value of memory is the peak of a run. The peak is not known for runs that failed.

Change
  /elsewhere/train.py:31: DataLoader(data, batch_size=512)
    batch_size=1536  # the largest batch that fits

Why
  ✗ batch_size=2048: torch.OutOfMemoryError: CUDA out of memory [x]
  ? batch_size=1536: its speed is not known

  A remark.
"""


def test_the_verdict_the_tries_and_the_line_are_in_this_order() -> None:
    assert render_text(batch_sizes_document(FOUND), width=100, color=False) == TEXT


def test_without_a_gpu_there_are_no_columns_for_it() -> None:
    one = BatchTry(batch_size=8, ended="fits", memory=MemoryUse(host_bytes=GIB))
    found = msgspec.structs.replace(FOUND, tries=(one,))
    said = render_text(batch_sizes_document(found), width=100, color=False)
    assert "batch size  host memory\n         8     1.00 GiB\n" in said
    assert "all programs" not in said


def test_a_search_without_a_result_has_no_tick() -> None:
    document = batch_sizes_document(msgspec.structs.replace(FOUND, outcome="unproved"))
    assert document.verdict_severity == "unknown"
    none = msgspec.structs.replace(FOUND, largest=None)
    assert batch_sizes_document(none).verdict_severity == "unknown"


def test_the_page_has_all_sizes() -> None:
    page = render_html(batch_sizes_document(FOUND))
    assert "out of memory" in page
    assert "batch_size=1536" in page


def test_json_is_what_its_schema_says() -> None:
    answer = json.loads(render_noun(FOUND))
    jsonschema.validate(answer, schema_of(BatchSizes))
    assert answer["schema"] == "teho.batch_sizes/1"
    assert answer["tries"][2]["samples_per_s"] is None
    assert answer["tries"][2]["memory"]["gpu_bytes"] is None
