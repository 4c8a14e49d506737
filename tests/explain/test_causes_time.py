"""Causes of lost time other than data, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    NODE,
    fetching,
    of_library,
    own,
    process,
    seen,
    watched,
)
from explain.scenario_parts import (
    NodePart,
    figures,
    found,
    judged,
)
from teho.explain.program import program_of
from teho.explain.rules.cpu import (
    bound_to_few_cores,
    double_precision,
    python_bound,
)
from teho.explain.rules.job import fixed_costs_dominate, saving_often
from teho.model.finding import Severity
from teho.model.in_source import CostlyOption
from teho.model.stack import Frame, State


def saving(wall_s):
    return seen((of_library("torch/serialization.py", "save"), own("torch.save(x, f)")), wall_s)


def importing(wall_s):
    return seen((Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, ""),), wall_s)


def compiling(wall_s):
    return seen((of_library("torch/_inductor/compile_fx.py", "compile_fx"),), wall_s)


def waiting(wall_s):
    return seen((own("loss.item()", 32),), wall_s, State.WAITING)


def in_python(wall_s):
    return seen((own("total += x * y", 33),), wall_s, State.PYTHON)


def using(watched_process, **libraries):
    """Return the process with what is known of its libraries."""
    return msgspec.structs.replace(watched_process, libraries=libraries)


class TestSaving:
    @pytest.mark.parametrize(("saves_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold(self, saves_s, count):
        verdict = judged(saving_often, watched(process(saving(saves_s))))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (5.0, 10.0)
            assert figures(verdict[0])["slowest line"] == "train.py:12  torch.save(x, f)"

    @pytest.mark.parametrize(
        ("file", "function", "count"),
        [
            ("torch/serialization.py", "load", 0),
            ("numpy/lib/npyio.py", "load", 0),
            ("numpy/lib/_npyio_impl.py", "savez_compressed", 1),
            ("safetensors/torch.py", "save_file", 1),
            ("safetensors/torch.py", "load_file", 0),
            ("torch/distributed/checkpoint/state_dict_saver.py", "async_save", 1),
            ("torch/distributed/checkpoint/state_dict_loader.py", "load", 0),
        ],
    )
    def test_reading_is_not_saving(self, file, function, count):
        made = watched(process(seen((of_library(file, function), own("x")), 40.0)))
        assert len(judged(saving_often, made)) == count

    @pytest.mark.parametrize(
        ("frames", "is_advised"),
        [
            ([("torch/serialization.py", "save")], True),
            # A trainer calls `torch.save`, so the program cannot replace this call.
            (
                [
                    ("torch/serialization.py", "save"),
                    ("lightning/pytorch/callbacks/model_checkpoint.py", "_save_checkpoint"),
                ],
                False,
            ),
            ([("numpy/lib/_npyio_impl.py", "savez_compressed")], False),
        ],
    )
    def test_saving_meanwhile_is_advised_only_instead_of_the_programs_own_calls(
        self, frames, is_advised
    ):
        stack = (*(of_library(*one) for one in frames), own("save(x)"))
        finding = found(saving_often, watched(process(seen(stack, 40.0))))
        assert ("async_save" in finding.action) is is_advised


class TestAfterTheBeginning:
    """What is lost is held against the time that the program worked."""

    @pytest.mark.parametrize(("saves_s", "count"), [(59.9, 0), (60.0, 1)])
    @pytest.mark.parametrize("begin", [importing, compiling])
    def test_threshold_of_the_loss(self, begin, saves_s, count):
        made = watched(process(begin(1800.0), saving(saves_s), wall_s=2400.0))
        verdict = judged(saving_often, made)
        assert len(verdict) == count
        if verdict:  # what is said of it is a share of all the time
            assert verdict[0].sentence.startswith(
                "The program stopped its work for 2 % of the time"
            )
            assert verdict[0].regain_percent == (1.25, 2.5)

    @pytest.mark.parametrize(("works_s", "count"), [(60.0, 0), (61.0, 1)])
    def test_a_minute_or_less_is_not_reported(self, works_s, count):
        made = watched(process(importing(500.0), saving(40.0), wall_s=500.0 + works_s))
        assert len(judged(saving_often, made)) == count

    def test_a_program_that_only_begins(self):
        made = watched(process(importing(500.0), compiling(100.0), wall_s=600.0))
        assert judged(saving_often, made) == []
        assert found(fixed_costs_dominate, made).regain_percent == (0.0, 100.0)

    def test_cores_are_no_time(self):
        one = process(importing(900.0), wall_s=1000.0, cores=tuple(range(19)))
        parts = [NodePart(NODE, cores=20, cores_used=19.0)]
        assert judged(bound_to_few_cores, watched(one, parts=parts)) == []


class TestFixedCosts:
    @pytest.mark.parametrize(("compiles_s", "count"), [(29.9, 0), (30.0, 1)])
    def test_threshold_of_their_share(self, compiles_s, count):
        made = watched(process(importing(20.0), compiling(compiles_s)))
        verdict = judged(fixed_costs_dominate, made)
        assert len(verdict) == count
        if verdict:
            assert "took 50.0 s in this run." in verdict[0].action
            assert verdict[0].regain_percent == (0.0, 50.0)

    @pytest.mark.parametrize(("wall_s", "count"), [(29.9, 0), (30.0, 1)])
    def test_threshold_of_the_time(self, wall_s, count):
        made = watched(process(importing(wall_s), wall_s=wall_s))
        assert len(judged(fixed_costs_dominate, made)) == count

    @pytest.mark.parametrize(
        ("longest", "text"), [(importing, "import torch"), (compiling, "step(x)")]
    )
    def test_names_the_line_of_what_took_longer(self, longest, text):
        other = compiling if longest is importing else importing
        stack = msgspec.structs.replace(
            longest(40.0), frames=(*longest(40.0).frames[:-1], own(text, 3))
        )
        finding = found(fixed_costs_dominate, watched(process(other(20.0), stack)))
        assert figures(finding)["slowest line"] == f"train.py:3  {text}"

    @staticmethod
    def compiled(**functions):
        """Make a run that compiles; of functions of JAX's: how often, and for how long."""
        facts = {
            name: {"compiles": compiles, "compile_s": compile_s, "at": None}
            for name, (compiles, compile_s) in functions.items()
        }
        jax = {"functions": facts, "compiles": sum(one["compiles"] for one in facts.values())}
        return watched(using(process(compiling(60.0)), jax=jax))

    @pytest.mark.parametrize(("compiles", "again"), [(5, False), (6, True)])
    def test_threshold_of_compiling_again(self, compiles, again):
        finding = found(fixed_costs_dominate, self.compiled(update=(compiles, 50.0), init=(40, 2)))
        assert figures(finding).get("compilations of update") == (compiles if again else None)
        assert finding.action.startswith(
            "Call `update` with arguments of the same shapes and types each time"
            if again
            else "Store the compiled code"
        )
        assert len(finding.thresholds) == (4 if again else 3)

    def test_names_the_static_argument_that_changes(self):
        option = CostlyOption(
            name="static_argument_changes",
            at=own('static_argnames=("lr",)', 9),
            lines=(own("step(x, lr)", 33),),
            words={"argument": "lr", "function": "step", "called": "train.py:33"},
        )
        run, summary = self.compiled(step=(90, 50.0))
        (main,) = (one.process for one in summary.program.mains)
        main = msgspec.structs.replace(main, costly_options=(option,))
        made = run, msgspec.structs.replace(summary, program=program_of([main]))
        finding = found(fixed_costs_dominate, made)
        assert finding.action.startswith('Take `lr` out of `static_argnames=("lr",)` at train.py:9')
        assert "shapes" not in finding.action

    @pytest.mark.parametrize(("last", "is_large"), [(59.0, True), (50.0, False)])
    def test_a_compilation_that_had_not_ended(self, last, is_large):
        frames = (of_library("jax/_src/compiler.py", "backend_compile"), own("step(x)"))
        parts = ((), (), (), (seen(frames, last), seen((own("a @ b"),), 60.0 - last)))
        finding = found(
            fixed_costs_dominate,
            watched(using(process(seen(frames, 90.0), parts=parts), jax={"functions": {}})),
        )
        assert ("JAX compiled one function for" in finding.sentence) is is_large
        assert "Python loop" not in finding.action  # tracing took no time, so there was none

    @pytest.mark.parametrize("name", ["", "(others)", "<lambda>"])
    def test_names_of_several_functions_say_nothing(self, name):
        finding = found(fixed_costs_dominate, self.compiled(**{name: (90, 50.0), "update": (1, 9)}))
        assert finding.action.startswith("If you start the program many times")


class TestPython:
    @pytest.mark.parametrize(("runs_s", "count"), [(49.9, 0), (50.0, 1)])
    def test_threshold(self, runs_s, count):
        verdict = judged(python_bound, watched(process(in_python(runs_s))))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].severity is Severity.CRITICAL
            assert figures(verdict[0])["slowest line"] == "train.py:33  total += x * y"

    @pytest.mark.parametrize(("wall_s", "count"), [(1.9, 0), (2.0, 1)])
    def test_not_of_a_moment(self, wall_s, count):
        made = watched(process(in_python(wall_s), wall_s=wall_s))
        assert len(judged(python_bound, made)) == count

    def test_a_function_that_a_solver_calls_may_work_on_arrays_already(self):
        step = of_library("scipy/integrate/_ivp/rk.py", "rk_step")
        stack = seen((own("-x / (x @ x) ** 1.5"), step, own("solve_ivp(f)")), 60.0, State.PYTHON)
        assert judged(python_bound, watched(process(stack))) == []

    @pytest.mark.parametrize(("sort_s", "is_hint"), [(45.0, True), (35.0, False)])
    def test_lines_that_work_on_whole_arrays(self, sort_s, is_hint):
        sort, rest = own("code.sort()", 24, "crossing"), own("accepted += 1", 46, "main")
        arrays = CostlyOption(name="whole_arrays", at=own("def crossing(chain)", 21), lines=(sort,))
        stacks = seen((sort,), sort_s, State.PYTHON), seen((rest,), 80 - sort_s, State.PYTHON)
        made = watched(process(*stacks, costly_options=(arrays,)))
        (finding,) = judged(python_bound, made)
        assert (finding.severity is Severity.HINT) is is_hint
        assert (finding.regain_percent is None) is is_hint
        if is_hint:
            assert finding.sentence == (
                "Python code and short calls of NumPy took 80 % of the time, on one core."
            )

    @pytest.mark.parametrize(("events_s", "is_hint"), [(45.0, True), (35.0, False)])
    def test_a_simulation_of_events(self, events_s, is_hint):
        random = Frame("/usr/lib/python3.11/random.py", "Random.uniform", 0, "")
        push, rest = own("push(events, uniform(1, 2))", 24, "start"), own("rows += 1", 46, "main")
        events = CostlyOption(name="events_in_turn", at=own("while events", 21), lines=(push,))
        stacks = (
            seen((push,), events_s - 5, State.PYTHON),
            seen((random, push), 5.0, State.PYTHON),
            seen((rest, push), 80 - events_s, State.PYTHON),
        )
        made = watched(process(*stacks, costly_options=(events,)))
        (finding,) = judged(python_bound, made)
        assert (finding.severity is Severity.HINT) is is_hint
        assert (finding.regain_percent is None) is is_hint
        assert ("NumPy" in finding.action) is not is_hint

    def test_where_the_program_is_wrapped_by_a_launchers_function(self):
        record = of_library(
            "torch/distributed/elastic/multiprocessing/errors/__init__.py", "record"
        )
        stack = seen((own("total += x * y"), record), 60.0, State.PYTHON)
        assert len(judged(python_bound, watched(process(stack)))) == 1


class TestDoubles:
    @pytest.mark.parametrize(("doubles", "count"), [(499, 0), (500, 1)])
    def test_threshold(self, doubles, count):
        sizes = {"float64": doubles - 100, "complex128": 100, "float32": 1000 - doubles}
        made = watched(process(fetching(20.0), torch={"parameter_dtypes": sizes}))
        verdict = judged(double_precision, made)
        assert len(verdict) == count
        if verdict:
            assert verdict[0].severity is Severity.REMARK
            assert verdict[0].regain_percent == (0.0, 40.0)

    @pytest.mark.parametrize("sizes", [{}, {"float64": 0}, None, "float64"])
    def test_nothing_to_judge(self, sizes):
        made = watched(process(torch={"parameter_dtypes": sizes}))
        assert judged(double_precision, made) == []
        cupy = {"version": "13.6.0", "to_device": {"dtypes": sizes}}
        assert judged(double_precision, watched(using(process(), cupy=cupy))) == []
        assert judged(double_precision, watched(using(process(), cupy={"version": "13"}))) == []

    @pytest.mark.parametrize(("doubles", "count"), [(499, 0), (500, 1)])
    def test_threshold_of_what_cupy_copies(self, doubles, count):
        sizes = {"float64": doubles - 100, "complex128": 100, "float32": 1000 - doubles}
        cupy = {"to_device": {"copies": 9, "bytes": 1000, "dtypes": sizes}}
        verdict = judged(double_precision, watched(using(process(fetching(20.0)), cupy=cupy)))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].sentence.startswith(
                "The data that CuPy copies to the GPU have 64 bits."
            )
            assert figures(verdict[0])["share of the copied data that has 64 bits"] == 50.0
            assert "`cupy.asarray(x, dtype=cupy.float32)`" in verdict[0].action
            assert verdict[0].regain_percent == (0.0, 40.0)

    def test_names_the_line_that_computes_longest(self):
        made = watched(process(waiting(60.0), torch={"parameter_dtypes": {"float64": 9}}))
        one = found(double_precision, made)
        assert figures(one)["slowest line"] == "train.py:12  loss.backward()"  # no GPU, no waiting
