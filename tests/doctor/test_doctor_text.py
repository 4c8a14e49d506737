"""The page as people see it: golden ones, and what a terminal must not get."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import msgspec
from snapshots import (
    LAPTOP,
    NO_ANSWER,
    SOUND,
    build,
    changed,
    folder,
    nvidia,
    python,
    survey,
    with_environment,
)

from support import check_golden
from teho.doctor.checks import CHECKS
from teho.doctor.examine import chosen, examine
from teho.doctor.snapshot import Snapshot
from teho.model.doctor import Examination, Product, SelfTest
from teho.model.missing import Missing, Reason
from teho.show.build.doctor import doctor_document, problem_lines
from teho.show.text.document import Detail, render_text

GOLDEN = Path(__file__).parents[1] / "data" / "doctor"
CPU = build(kind="cpu", toolkit="", version="2.4.1", evidence="build cpu_mkl_py313hbc6f0e9_102")
SLOW = Missing(Reason.FAILED, "the file system of the current folder did not answer within 2 s")
BAD = changed(
    with_environment(OMP_NUM_THREADS="48", GOMP_CPU_AFFINITY="0-11"),
    python=python(CPU),
    folders={**SOUND.folders, "home": folder("/home/ada", "nfs4"), "here": SLOW},
)
TEST = SelfTest(
    state="passed",
    products=(
        Product(library="torch 2.5.1", device="NVIDIA A100-SXM4-40GB", precision="FP32", size=4096,
                flop_per_s=18.2e12, peak_percent=93.3, error=4.1e-7),
        Product(library="cupy 13.3.0", device="NVIDIA A100-SXM4-40GB", precision="FP32", size=4096,
                flop_per_s=18.4e12, peak_percent=94.4, error=3.9e-7),
    ),
)  # fmt: skip


def examined(snapshot: Snapshot, *ids: str, test: SelfTest | None = None) -> Examination:
    found = examine(snapshot, chosen(ids), 0.42)
    at = datetime(2026, 11, 20, tzinfo=timezone.utc)
    return msgspec.structs.replace(found, at=at, self_test=test)


def page(examination: Examination, width: int = 80, detail: Detail = "default") -> str:
    document = doctor_document(examination)
    return render_text(document, width=width, color=False, detail=detail)


def test_the_page_with_everything_on_it() -> None:
    why = page(examined(BAD, test=TEST), detail="why")
    check_golden(GOLDEN / "doomed-why.txt", why)
    text = page(examined(BAD, test=TEST))
    check_golden(GOLDEN / "doomed.txt", text)
    assert all(len(line) <= 80 for line in (text + why).splitlines())
    assert text.count("\n") <= 40


def test_the_page_of_a_laptop() -> None:
    check_golden(GOLDEN / "laptop.txt", page(examined(LAPTOP)))
    assert page(examined(LAPTOP), detail="short") == "✓ 7 checks passed.\n"


def test_the_first_line_is_the_verdict() -> None:
    def first(snapshot: Snapshot, *ids: str, test: SelfTest | None = None) -> str:
        return page(examined(snapshot, *ids, test=test), width=200).splitlines()[0]

    assert first(SOUND, "threads") == "✓ 1 check passed."
    assert first(with_environment(OMP_NUM_THREADS="1"), "threads") == (
        "i No problem was found, only 1 remark."
    )
    assert first(with_environment(OMP_NUM_THREADS="99"), "threads") == "! 1 problem found."
    assert first(changed(python=NO_ANSWER), "cpu-only-build", "threads") == (
        "? No problem was found. 1 check gave no result."
    )
    failed = SelfTest(state="failed", why="torch: its result is off by 0.3")
    assert first(SOUND, "threads", test=failed) == "✗ The self-test failed."
    doomed = changed(survey=survey(nvidia()))
    assert first(doomed).startswith(
        "✗ If you start a job here now, it will fail: The job was allocated 1 GPU"
    )


def test_lines_for_a_job_leave_remarks_out() -> None:
    lines = list(problem_lines(examined(BAD)))
    assert [line.rpartition("[")[2] for line in lines] == [
        "cpu-only-build]",
        "threads]",
        "openmp-hints]",
    ]
    assert lines[0].startswith("this job will fail: torch 2.4.1 is a build for CPUs only")
    assert all("\n" not in line for line in lines)


def test_no_escape_reaches_the_terminal() -> None:
    snapshot = with_environment(OMP_NUM_THREADS="\x1b[31mred", VIRTUAL_ENV="/a\nb")
    text = page(examined(snapshot)) + "".join(problem_lines(examined(snapshot)))
    assert "\x1b" not in text
    assert "/a\nb" not in text
    assert len(CHECKS) == len(examined(snapshot).checks)
