"""The variables that set how many threads a program starts, against its cores."""

from __future__ import annotations

from teho.doctor.checks._processes import cores_of_process, promised
from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.model.doctor import Symptom
from teho.model.finding import Severity, Threshold
from teho.units import counted

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "threads"
ABOUT = "OMP_NUM_THREADS and its like, against the cores"
DECISIVE = False

_NAMES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "TF_NUM_INTRAOP_THREADS",
)  # fmt: skip
_FEW = Threshold(8, "cores", "Teho's own choice: below, one thread may be meant")
_CROWDED = Threshold(1.25, "threads a core", "Alliance portal: running threads ÷ cores above 1.25")


def check(snapshot: Snapshot) -> Outcome:
    """Look for more threads than cores, one thread for many, and what is not a number."""
    cores = cores_of_process(snapshot)
    found: list[Symptom] = []
    plain: dict[str, int] = {}
    for name in _NAMES:
        text = snapshot.environment.get(name, "").strip()
        if not text:
            continue
        # OpenMP takes a list: a number for each level of nested regions.
        first = text.partition(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            plain[name] = int(first)
        else:
            found.append(_no_number(name, text, cores))
    many = {name: count for name, count in plain.items() if count > _CROWDED.value * cores}
    if many:
        found.append(_many(many, cores))
    if plain.get("OMP_NUM_THREADS") == 1 and cores >= _FEW.value and snapshot.local_size == 1:
        found.append(_one(cores))
    if not plain and snapshot.in_job and len(snapshot.cores) > cores:
        found.append(_storm(snapshot, cores))
    if found:
        return found
    if plain:
        shown = ", ".join(f"{name}={count}" for name, count in plain.items())
        return fine(f"{shown}, on {cores} cores")
    if not snapshot.in_job:
        return moot("none is set, and this is not a job")
    if promised(snapshot) is None:
        return unknown("none is set, and it is not known how many cores the job was given")
    return fine(f"none is set, and programs see the job's {cores} cores alone")


def _no_number(name: str, text: str, cores: int) -> Symptom:
    return symptom(
        ID,
        Severity.WARNING,
        f"{name} is {text[:40]!r}, not a number of threads: libraries will ignore it.",
        f"`export {name}={cores}`, as many as the process has cores.",
        ("cores", cores, ""),
    )


def _many(many: dict[str, int], cores: int) -> Symptom:
    most = max(many.values())
    return symptom(
        ID,
        Severity.WARNING,
        f"{' and '.join(many)} ask{'s' if len(many) == 1 else ''} for {most} threads on "
        f"{counted(cores, 'core')}: they will push each other off the cores.",
        "; ".join(f"`export {name}={cores}`" for name in many) + ", before the program.",
        *((name, count, "threads") for name, count in many.items()),
        ("cores of a process", cores, ""),
        thresholds=(_CROWDED,),
    )


def _one(cores: int) -> Symptom:
    return symptom(
        ID,
        Severity.REMARK,
        f"OMP_NUM_THREADS is 1, and the program has {cores} cores: what it computes on the CPU "
        "will use one of them.",
        f"`export OMP_NUM_THREADS={cores}`, unless it starts as many processes.",
        ("cores of a process", cores, ""),
        thresholds=(_FEW,),
    )


def _storm(snapshot: Snapshot, cores: int) -> Symptom:
    alone = snapshot.local_size == 1
    whose = "the job was given" if alone else f"each of the {snapshot.local_size} tasks here has"
    return symptom(
        ID,
        Severity.WARNING,
        f"No variable sets the number of threads, and programs see {len(snapshot.cores)} cores, of "
        f"which {whose} {cores}: each library starts a thread for every one that it sees.",
        f"`export OMP_NUM_THREADS={cores}` before the program.",
        ("cores to be seen", len(snapshot.cores), ""),
        ("cores of a process", cores, ""),
    )
