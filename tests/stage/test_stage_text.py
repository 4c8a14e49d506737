"""What `teho stage` prints, in each format."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec

import teho.show
from support import check_golden
from teho.explain.shared_thresholds import SHARED, SMALL_FILES
from teho.model.staged import FileSystem, Problem, Staged
from teho.show.build.stage import stage_document
from teho.show.html.page import render_html
from teho.show.json.noun import render_noun
from teho.show.text.document import Detail, render_text
from teho.stage.findings import many_small_files

GOLDEN = Path(__file__).parents[1] / "data" / "stage"
GIB = 1024**3
LIMITS = SHARED[SMALL_FILES]
PLANNED = Staged(
    state="planned",
    source="/home/ada/images",
    destination="/scratch/ada/images.tar",
    host="ada@roihu",
    is_archive=True,
    file_count=120_000,
    link_count=0,
    folder_count=1001,
    total_bytes=6 * GIB,
    mean_bytes=6 * GIB / 120_000,
    copy_count=1,
    copy_link_count=0,
    copy_bytes=6 * GIB,
    source_system=FileSystem(
        kind="ext4", mounted_on="/", free_bytes=69 * GIB, free_files=1_000_000
    ),
    destination_system=FileSystem(
        kind="lustre", mounted_on="/scratch", free_bytes=800_000 * GIB, free_files=None
    ),
    findings=(
        many_small_files(
            120_000, 6 * GIB, "lustre", (LIMITS["files_min"], LIMITS["size_kib"]), is_archive=True
        ),
    ),
    skipped=(Problem("images/<socket>", "a socket"),),
    commands=('To unpack the archive: `tar -xf /scratch/ada/images.tar -C "$TMPDIR"`',),
)
COPIED = msgspec.structs.replace(
    PLANNED, state="copied", checked_count=1, checksum_count=16, elapsed_s=70.0
)
FILES = msgspec.structs.replace(
    COPIED,
    destination="/scratch/ada/images",
    is_archive=False,
    copy_count=120_000,
    copy_link_count=2,
    link_count=2,
    findings=(),
    commands=(),
)
DIFFERENT = msgspec.structs.replace(
    FILES,
    state="different",
    differences=tuple(
        Problem(f"images/{name}", "missing at the destination") for name in range(30)
    ),
    conflicts=(Problem("images/mine", "another file with this name is at the destination"),),
    messages=("rsync: it broke",),
)


def text(staged: Staged, detail: Detail = "default") -> str:
    return render_text(stage_document(staged), width=80, color=False, detail=detail)


def test_the_pages() -> None:
    check_golden(GOLDEN / "planned-why.txt", text(PLANNED, "why"))
    check_golden(GOLDEN / "copied.txt", text(COPIED))
    check_golden(GOLDEN / "different.txt", text(DIFFERENT))


def test_the_verdicts() -> None:
    def verdict(staged: Staged, **more: object) -> str:
        changed = msgspec.structs.replace(staged, **more)
        return stage_document(changed).verdict

    assert verdict(PLANNED) == (
        "120,000 files (6.00 GiB) will be packed into ada@roihu:/scratch/ada/images.tar."
    )
    assert verdict(FILES, state="planned") == (
        "120,000 files and 2 links (6.00 GiB) will be copied to ada@roihu:/scratch/ada/images."
    )
    assert verdict(FILES, checksum_count=0).endswith(
        "The copy took 1 min 10 s. All sizes are the same in the source and in the copy."
    )
    nothing = {"state": "planned", "copy_count": 0, "copy_link_count": 0}
    assert verdict(FILES, **nothing, file_count=1, host="") == (
        "Nothing to copy: 1 file (6.00 GiB) is already in /scratch/ada/images."
    )
    mine = (Problem("a", "b"),)
    assert verdict(FILES, **nothing, conflicts=mine) == (
        "Nothing to copy. 1 file of yours at the destination will not be changed."
    )
    assert verdict(FILES, state="different", conflicts=mine) == (
        "1 file in ada@roihu:/scratch/ada/images differs from the source."
    )


def test_every_problem_is_named_with_why() -> None:
    page = text(DIFFERENT, "why")
    assert all(f"images/{name}: missing at the destination" in page for name in range(30))
    assert "rsync: it broke" in page


def test_the_json_fits_its_schema_and_html_is_escaped() -> None:
    schema = json.loads(
        (Path(teho.show.__file__).parent / "stage.schema.json").read_text(encoding="utf-8")
    )
    for staged in (PLANNED, COPIED, FILES, DIFFERENT):
        jsonschema.Draft202012Validator(schema).validate(json.loads(render_noun(staged)))
    assert "images/&lt;socket&gt;" in render_html(stage_document(PLANNED))
