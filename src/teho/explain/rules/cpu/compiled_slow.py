"""A program was compiled without optimisation, so that it is several times slower."""

from __future__ import annotations

from teho.explain.native import native_uses
from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen

RANK = 293
SEVERITY = "warning"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "own_percent": chosen(
        30.0, "%", "if most of the time is spent in libraries, compiling the program again changes "
        "little",
    ),
    "run_percent": chosen(
        10.0, "%", "below this share of the run time, the advice would save little time"
    ),
}  # fmt: skip
_SAVED = (0.3, 0.8)
"""Part of the time of the program's own code that `-O2` saves. Measured: `hull_mesh` of blind
round 5 took 2.5 s, and 1.0 s with `-O2`."""


def judge(context: RuleContext) -> Findings:
    """Read the compiler's note of its options.

    GCC writes its options into the debug information of a program (`-g`). If there is an option
    `-O1` or higher for any file, or no debug information, there is no finding.
    """
    for use in native_uses(context.run):
        program = use.program
        own = sum(one.samples for one in program.functions if one.file == program.file)
        own_percent = 100 * own / program.samples
        run_percent = own_percent * use.ran_s_percent / 100
        if (
            not program.is_unoptimised
            or own_percent < context.limit("own_percent")
            or run_percent < context.limit("run_percent")
        ):
            continue
        yield context.finding(
            Severity.WARNING,
            f"`{program.name}` was compiled without optimisation, and ran in its own code for "
            f"{own_percent:.0f} % of its CPU time.",
            evidence=(
                Evidence("CPU time in the program's own code", own_percent, "%"),
                Evidence("share of the run in which the program ran", use.ran_s_percent, "%"),
            ),
            action=(
                "Compile it with `-O2`: add `-O2` to each `gcc`, `g++` or `gfortran` command, or "
                "to `CFLAGS` (C++: `CXXFLAGS`, Fortran: `FFLAGS`) in the Makefile. With CMake, "
                "use `-DCMAKE_BUILD_TYPE=Release`."
            ),
            regain_percent=(run_percent * _SAVED[0], run_percent * _SAVED[1]),
        )
