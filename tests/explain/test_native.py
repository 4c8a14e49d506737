"""Causes in programs that are not Python, from the functions in which they ran."""

from __future__ import annotations

import re

import msgspec
import pytest

from explain.program_parts import NODE
from explain.scenario_parts import NodePart, found, judged, scenario
from teho.explain.good_use import main_loss
from teho.explain.native import activities, caller_words, times_of
from teho.explain.rules.cpu import compiled_slow, native_function, openmp_uneven, openmp_waits
from teho.model.finding import Certainty
from teho.model.native import FunctionUse, NativeProgram
from teho.model.run import ProgramUse
from teho.show.build.report.native import native_tables

REGION = "main._omp_fn.0"
LIBC, GOMP = "libc.so.6", "libgomp.so.1.0.0"


def use(function, samples, *, file=LIBC, caller="", main=None, threads=1, lines=None):
    return FunctionUse(
        function=function, file=file, caller=caller, samples=samples, lines=lines or {},
        main_samples=samples if main is None else main, threads=threads,
    )  # fmt: skip


def program(*functions, threads=1, processes=1, **changes):
    fields = {"name": "canopy", "file": "canopy", "is_installed": False, **changes}
    return NativeProgram(
        threads=threads, processes=processes, rate_hz=19, cpu_s=20.0, functions=functions,
        samples=sum(one.samples for one in functions),
        main_samples=sum(one.main_samples for one in functions), **fields,
    )  # fmt: skip


def made(one, *, ran=100, **signals):
    run, summary = scenario(NodePart(NODE, cores=8, cores_used=2.0, signals=signals))
    seen = ProgramUse(
        name=one.name, samples=ran, processes=1, command=one.name,
        command_samples=ran, command_processes=1,
    )  # fmt: skip
    node = msgspec.structs.replace(
        run.nodes[0], native=(one,), programs=(seen,), program_samples=100
    )
    return msgspec.structs.replace(run, nodes=(node,)), summary


def names(one):
    return [time.activity.name for time in times_of(one)]


def atomic(samples, threads=2):
    """Return a parallel region with 100 samples, of which some are just after an update."""
    region = use(REGION, 100, file="canopy", main=50, threads=threads, lines={"canopy.c:31": 60})
    return msgspec.structs.replace(region, atomic_samples=samples)


OWN = use("step", 100, file="canopy")
IN_LOOP = use(REGION, 100, file="canopy", main=50, threads=2)


@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("random_lock", program(IN_LOOP, use("rand", 80, caller=REGION, main=40, threads=2),
                                threads=2)),
        ("random_lock", program(IN_LOOP, use("random", 80, main=40, threads=2), threads=2)),
        ("critical_section", program(IN_LOOP, use("GOMP_critical_start", 60, file=GOMP,
                                                  caller=REGION, main=30, threads=2), threads=2)),
        ("critical_section", program(IN_LOOP, use("__kmpc_critical", 60, file="libiomp5.so",
                                                  main=30, threads=2), threads=2)),
        ("small_pieces", program(IN_LOOP, use("GOMP_loop_nonmonotonic_dynamic_next", 60, file=GOMP,
                                              caller=REGION, main=30, threads=2), threads=2)),
        ("text_output", program(OWN, use("fprintf", 40, caller="save"))),
        ("text_output", program(OWN, use("__fprintf_chk", 40, caller="save"))),
        ("text_output", program(OWN, use("std::ostream::_M_insert", 40,
                                         file="libstdc++.so.6.0.30", caller="save"))),
        ("text_input", program(OWN, use("__isoc99_fscanf", 40, caller="load"))),
        ("text_of_string", program(OWN, use("__isoc99_sscanf", 40, caller="load"))),
        ("text_of_string", program(OWN, use("sscanf", 40, file="libc-2.31.so", caller="load"))),
        ("text_converted", program(OWN, use("strtod", 40, caller="load"))),
        ("text_converted", program(OWN, use("std::istream::operator>>", 40,
                                            file="libstdc++.so.6.0.30", caller="load"))),
        ("allocation", program(OWN, use("malloc", 30, caller="step"), use("free", 30))),
        ("string_length", program(OWN, use("strlen", 40, caller="fold"))),
        ("atomic_updates", program(atomic(60), threads=2)),
        ("reference_blas", program(OWN, use("dgemm_", 90, file="libblas.so.3.11.0"))),
        ("reference_blas", program(OWN, use("dgemm_", 90, file="libRblas.so"), name="R",
                                   is_installed=True)),
    ],
)  # fmt: skip
def test_known_activities(name, one):
    assert names(one) == [name]


@pytest.mark.parametrize(
    "one",
    [
        # A few updates, updates of one thread, and those of an installed program.
        program(atomic(9), threads=2),
        program(atomic(60, threads=1), threads=2),
        program(atomic(60), threads=2, is_installed=True),
        # Only one thread calls it, or each process has only one thread.
        program(IN_LOOP, use("rand", 80, main=80, threads=1), threads=2),
        program(OWN, use("rand", 80, threads=4), processes=4),
        # Generators with a state for each thread.
        program(IN_LOOP, use("rand_r", 80, main=40, threads=2), threads=2),
        program(IN_LOOP, use("erand48", 80, main=40, threads=2), threads=2),
        # The program's own functions, whatever their name is.
        program(use("rand", 80, file="canopy", main=40, threads=2), threads=2),
        program(OWN, use("malloc", 90, file="canopy")),
        # Small parts.
        program(IN_LOOP, use("rand", 9, main=4, threads=2), threads=2),
        program(OWN, use("fprintf", 10)),
        program(OWN, use("malloc", 25)),
        program(OWN, use("strlen", 20)),
        program(OWN, use("__isoc99_sscanf", 19)),
        program(OWN, use("__isoc99_sscanf", 90, main=0, threads=1), threads=2),
        program(OWN, use("sscanf", 90, file="canopy", caller="load")),
        program(OWN, use("sscanf", 90, caller="main"), name="ps", is_installed=True),
        # Other threads write the text, while the main thread computes.
        program(OWN, use("fprintf", 90, main=0, threads=1), threads=2),
        # The beginning and the end of parallel regions, and loops with large pieces.
        program(IN_LOOP, use("GOMP_parallel", 30, file=GOMP, caller="main"), threads=2),
        program(IN_LOOP, use("GOMP_loop_dynamic_next", 10, file=GOMP, main=5, threads=2),
                threads=2),
        # Optimised libraries, also one that replaces the reference BLAS under its name.
        program(OWN, use("dgemm_", 90, file="libopenblas.so.0")),
        program(OWN, use("dgemm_", 90, file="libblas.so.3")),
        program(OWN, use("dgemm_", 90, file="libmkl_core.so.2")),
        # Installed programs: the user cannot change their source.
        program(OWN, use("fprintf", 90, caller="main"), name="awk", is_installed=True),
        program(OWN, use("malloc", 90, caller="main"), name="perl", is_installed=True),
        # Copies and arithmetic may be the purpose.
        program(OWN, use("memcpy", 90, caller="step")),
        program(OWN, use("exp", 90, file="libm.so.6", caller="step")),
        program(OWN, use("MPI_Allreduce", 90, file="libmpi.so.40", caller="step")),
    ],
)  # fmt: skip
def test_look_alikes(one):
    assert names(one) == []


def test_the_finding_names_the_function_the_caller_and_the_line():
    rand = use("rand", 80, caller=REGION, main=40, threads=2, lines={"canopy.c:16": 60, "x.c:1": 9})
    finding = found(native_function, made(program(IN_LOOP, rand, threads=2), ran=50))
    assert finding.sentence == (
        "Several threads of `canopy` called `rand` in a parallel region of `main` (canopy.c:16), "
        "which took 44 % of their CPU time. All threads share one lock in `rand`, so they wait "
        "for each other."
    )
    assert "rand_r(&seed)" in finding.action
    # 80 of 180 samples, in half of the run.
    assert finding.regain_percent == pytest.approx((100 * 80 / 180 / 4, 150 * 80 / 180 / 2))


def test_atomic_updates_are_named_with_their_line():
    finding = found(native_function, made(program(OWN, atomic(60), threads=2)))
    assert finding.sentence.startswith(
        "The threads of `canopy` spent 30 % of their CPU time on atomic updates of memory in a "
        "parallel region of `main` (canopy.c:31): "
    )
    assert finding.regain_percent == pytest.approx((15.0, 30.0))


def test_no_finding_if_the_program_ran_for_a_small_part_of_the_run():
    one = program(OWN, use("fprintf", 100, caller="save"))
    assert found(native_function, made(one, ran=20))
    assert judged(native_function, made(one, ran=19)) == []


def test_no_finding_from_few_samples():
    for own, text, is_found in ((10, 19, False), (10, 20, True), (100, 20, True), (26, 3, False)):
        one = program(use("step", own, file="canopy"), use("fprintf", text, caller="save"))
        assert bool(judged(native_function, made(one, ran=95))) is is_found


def test_each_entry_has_a_source_and_can_be_filled_in():
    for one in activities():
        assert one.source
        assert 0 < one.regain[0] < one.regain[1] < 2
        for text in (one.sentence, one.advice):
            known = {"program", "function", "function_at", "file", "caller", "share"}
            assert set(re.findall(r"\{(\w+)\}", text)) <= known
        re.compile(one.functions)
        re.compile(one.files)
        Certainty(one.certainty)


def test_a_program_without_optimisation():
    slow = program(use("influence", 90, file="canopy"), use("sin", 10), is_unoptimised=True)
    finding = found(compiled_slow, made(slow))
    assert finding.sentence == (
        "`canopy` was compiled without optimisation, and ran in its own code for 90 % of its CPU "
        "time."
    )
    assert finding.certainty is Certainty.SURE
    library = program(use("main", 20, file="canopy"), use("dgemm_", 80), is_unoptimised=True)
    for one in (program(use("influence", 90, file="canopy")), library):
        assert judged(compiled_slow, made(one)) == []


DOCK = f"{GOMP}+0x1f780"


def waiting(main_wait, others_wait, *, region=REGION, **changes):
    """Two threads with 100 samples each, of which some are in waiting functions."""
    return program(
        use(region, 200 - main_wait - others_wait, file="canopy", main=100 - main_wait, threads=2,
            lines={"canopy.c:40": 50}),
        use("GOMP_parallel", main_wait, file=GOMP, caller="main"),
        use(DOCK, others_wait, file=GOMP, main=0),
        threads=2, **changes,
    )  # fmt: skip


def test_the_main_thread_has_more_work():
    finding = found(openmp_waits, made(waiting(2, 66)))
    assert finding.sentence == (
        "The OpenMP threads of `canopy` used 34 % of their CPU time to wait for each other: the "
        "main thread worked longer than the others."
    )
    assert finding.action.startswith(
        "In a parallel region of `main` (canopy.c:40), add `schedule(dynamic, 16)`"
    )


def test_the_main_thread_waits():
    finding = found(openmp_waits, made(waiting(66, 0)))
    assert finding.sentence.endswith(": the main thread waited for the others.")
    assert "schedule(dynamic, 16)" in finding.action


@pytest.mark.parametrize(("busy", "is_found"), [(35, True), (36, False), (90, False)])
def test_threads_without_a_core_have_another_reason(busy, is_found):
    # The program uses 2 of 8 cores.
    made_busy = made(waiting(2, 66), cpu_busy_percent=float(busy))
    assert bool(judged(openmp_waits, made_busy)) is is_found


def test_the_main_thread_is_outside_of_the_loops():
    finding = found(openmp_waits, made(waiting(0, 80, region="smooth")))
    assert finding.action.startswith("Meanwhile, the main thread was mostly in `smooth`. If this")


def test_all_threads_wait():
    finding = found(openmp_waits, made(waiting(40, 50)))
    assert finding.sentence.endswith("wait for each other.")
    assert finding.action.startswith("If the program has many short parallel loops")


@pytest.mark.parametrize(
    "one",
    [
        waiting(10, 25),  # below the limit
        waiting(0, 0),
        waiting(2, 66, is_installed=True),
        program(OWN, use("GOMP_parallel", 90, file=GOMP, caller="main")),  # one thread
        # A lock is another cause.
        program(IN_LOOP, use("GOMP_critical_start", 90, file=GOMP, caller=REGION, main=45,
                             threads=2), threads=2),
        # A library's function without a name, called by the program, is not known to wait.
        program(IN_LOOP, use(DOCK, 90, file=GOMP, caller=REGION, main=45, threads=2), threads=2),
        program(IN_LOOP, use("libm.so.6+0x20", 90, file="libm.so.6", main=45), threads=2),
    ],
)  # fmt: skip
def test_threads_that_do_not_wait(one):
    assert judged(openmp_waits, made(one)) == []


def test_uneven_work_names_the_loop():
    signals = {"job_busiest_thread_percent": 99.0, "job_mean_thread_percent": 52.0}
    finding = found(openmp_uneven, made(waiting(2, 10), **signals))
    assert finding.action.startswith(
        "If the iterations of a parallel region of `main` (canopy.c:40) take different times"
    )
    assert "take different times" in found(openmp_uneven, made(program(OWN), **signals)).action


def test_the_verdict_names_the_function():
    run, summary = made(program(use("step", 20, file="canopy"), use("rand", 71)), ran=92)
    assert main_loss(run, summary) == (
        "`canopy` ran for 92 % of the time, and spent 78 % of its CPU time in `rand` of libc.so.6"
    )


def test_parallel_regions_in_words():
    for name in ("step._omp_fn.3", "step.omp_outlined", "step.DIR.OMP.PARALLEL.2.split40"):
        assert caller_words(name) == "a parallel region of `step`"
    assert caller_words("step", "a.c:3") == "`step` (a.c:3)"


def test_the_table():
    one = program(
        use("advance", 60, file="canopy", lines={"a.c:9": 50}),
        use(f"{LIBC}+0x10", 15), use(f"{LIBC}+0x99", 5), use("fprintf", 20, caller="save"),
    )  # fmt: skip
    (table,) = native_tables(made(one)[0])
    rows = [(row["function"], row["share_percent"], row["caller"]) for row in table.rows]
    assert rows == [("advance", 60, ""), (LIBC, 20, ""), ("fprintf", 20, "save")]
    assert table.rows[0]["line"] == "a.c:9"
    assert list(native_tables(scenario(NodePart(NODE))[0])) == []


def test_powers_with_a_constant_exponent():
    libm = {"file": "libm.so.6", "caller": "farm_power._omp_fn.0"}
    one = program(
        use("pow(x, 4)", 40, **libm), use("pow(x, 3)", 35, **libm), use("main", 25, file="canopy")
    )
    finding = found(native_function, made(one))
    assert finding.sentence.startswith(
        "`canopy` spent 75 % of its CPU time on powers with a constant exponent (`pow(x, 4)` in a "
        "parallel region of `farm_power`)."
    )
    assert "`x * x * x` for `pow(x, 3.0)`" in finding.action
    # Any other exponent may be what the program needs.
    assert names(program(use("pow", 75, **libm), use("main", 25, file="canopy"))) == []
