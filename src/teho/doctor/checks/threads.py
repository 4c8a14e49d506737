"""Do the variables that set the number of threads fit the number of cores?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from teho.doctor.checks._processes import cores_of_process, promised
from teho.doctor.outcome import Outcome, fine, not_applicable, remark, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Threshold
from teho.units import counted

__all__ = ["ABOUT", "check"]

ABOUT = "OMP_NUM_THREADS and similar variables, compared with the cores"

_NAMES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "TF_NUM_INTRAOP_THREADS",
)  # fmt: skip
_FEW = Threshold(
    8,
    "cores",
    "Teho's own choice: if the job has fewer than 8 cores, the user may want only one thread",
)
_CROWDED = Threshold(
    1.25,
    "threads per core",
    "the portal of the Digital Research Alliance of Canada warns if the number of running "
    "threads is more than 1.25 times the number of cores",
)


def check(snapshot: Snapshot) -> Outcome:
    """Find more threads than cores, one thread for many cores, and values that are not numbers."""
    cores = cores_of_process(snapshot)
    texts = {name: snapshot.environment.get(name, "").strip() for name in _NAMES}
    # OpenMP takes a list: a number for each level of nested regions.
    firsts = {name: text.partition(",")[0].strip() for name, text in texts.items() if text}
    plain = {
        name: int(first) for name, first in firsts.items() if first.isdecimal() and int(first) > 0
    }
    found = [
        warning(
            f"{name} is {texts[name][:40]!r}, not a number of threads: libraries will ignore it.",
            f"Set {name} to the number of cores of the process: `export {name}={cores}`.",
            ("cores", cores, ""),
        )
        for name in firsts
        if name not in plain
    ]
    if found := [*found, *_misfits(snapshot, plain, cores)]:
        return found
    if plain:
        shown = ", ".join(f"{name}={count}" for name, count in plain.items())
        return fine(f"{shown}, and each process has {cores} cores")
    if not snapshot.in_job:
        return not_applicable("no variable sets the number of threads, and this is not a job")
    if promised(snapshot) is None:
        return unknown(
            "no variable sets the number of threads, and the number of the job's cores is not known"
        )
    return fine(
        f"no variable sets the number of threads, and programs see only the job's {cores} cores"
    )


def _misfits(snapshot: Snapshot, plain: Mapping[str, int], cores: int) -> Iterator[Symptom]:
    own = ("cores of a process", cores, "")
    many = {name: count for name, count in plain.items() if count > _CROWDED.value * cores}
    if many:
        yield warning(
            f"{joined(list(many))} ask{'s' if len(many) == 1 else ''} for {max(many.values())} "
            f"threads on {counted(cores, 'core')}, so the threads will compete for cores.",
            f"Run {joined([f'`export {name}={cores}`' for name in many])} before the program.",
            *((name, count, "threads") for name, count in many.items()),
            own,
            thresholds=(_CROWDED,),
        )
    if plain.get("OMP_NUM_THREADS") == 1 and cores >= _FEW.value and snapshot.local_size == 1:
        yield remark(
            f"OMP_NUM_THREADS is 1, but the program has {cores} cores: libraries will use only "
            "one core.",
            f"Run `export OMP_NUM_THREADS={cores}`, unless the program starts one process for "
            "each core.",
            own,
            thresholds=(_FEW,),
        )
    visible = len(snapshot.cores)
    if not plain and snapshot.in_job and visible > cores:
        is_one = snapshot.local_size == 1
        subject = "the job was given" if is_one else f"each of the {snapshot.local_size} tasks has"
        yield warning(
            f"No variable sets the number of threads. Programs see {visible} cores, although "
            f"{subject} only {counted(cores, 'core')}. So each library will start {visible} "
            "threads.",
            f"Run `export OMP_NUM_THREADS={cores}` before the program.",
            ("cores that programs see", visible, ""),
            own,
        )
