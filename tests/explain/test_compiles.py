"""What JAX compiles: the same functions again and again, different functions once, or one loop."""

from __future__ import annotations

import msgspec
import pytest

from explain.activity_stacks import STACKS
from explain.program_parts import of_library, own, process, seen, watched
from explain.scenario_parts import figures, found, judged
from teho.explain.compiles import traced_line
from teho.explain.program import program_of
from teho.explain.rules.cpu import known_activity
from teho.explain.rules.job import fixed_costs_dominate
from teho.model.stack import State

COMPILER = of_library("jax/_src/compiler.py", "backend_compile")
JIT = of_library("jax/_src/pjit.py", "_infer_params_impl")
TRACE = of_library("jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr_dynamic")
CALL = own("step(x)", 78)
IMPORT = of_library("<frozen importlib._bootstrap>", "_find_and_load")


def using_jax(*stacks, wall_s=100.0, parts=(), **functions):
    """Return a process without steps; of the functions: number and time of compilations."""
    facts = {
        name: {"compiles": compiles, "compile_s": compile_s, "at": None}
        for name, (compiles, compile_s) in functions.items()
    }
    one = process(*stacks, wall_s=wall_s, parts=parts, progress=())
    return msgspec.structs.replace(one, libraries={"jax": {"functions": facts}})


def in_parts(*compile_s):
    """Return four parts of 25 s each, with compiling for these times."""
    return tuple(
        tuple(
            one
            for one in (seen((COMPILER, CALL), s), seen((own("step(x)"),), 25.0 - s))
            if one.wall_s
        )
        for s in compile_s
    )


class TestAgain:
    @staticmethod
    def judged(*compile_s, **functions):
        parts = in_parts(*compile_s) if compile_s else ()
        stack = seen(STACKS["jax_compiled_again"], sum(compile_s) or 40.0)
        return judged(known_activity, watched(using_jax(stack, parts=parts, **functions)))

    def test_of_new_shapes(self):
        (finding,) = self.judged(20.0, 25.0, 25.0, 10.0, update=(7, 60.0), multiply=(9, 2.0))
        assert finding.sentence.startswith("Compiling JAX functions more than once took")
        assert figures(finding)["compilations of update"] == 7
        assert "pad arrays" in finding.action

    def test_of_different_functions_once_each(self):
        functions = {"step": (1, 30.0), "multiply": (13, 4.0), "add": (13, 4.0), "mean": (2, 1.0)}
        assert self.judged(20.0, 6.0, 0.0, 10.0, **functions) == []

    def test_of_one_large_function(self):
        functions = {"improve": (1, 50.0), "broadcast_in_dim": (6, 2.0), "mismatch": (1, 6.0)}
        assert self.judged(20.0, 25.0, 10.0, 5.0, **functions) == []

    @pytest.mark.parametrize(
        ("parts", "count"),
        [
            ((25.0, 20.0, 0.0, 0.0), 0),  # it ends: the shapes of the start
            ((25.0, 20.0, 1.2, 0.0), 0),
            ((25.0, 20.0, 1.3, 0.0), 1),
            ((0.0, 0.0, 20.0, 0.0), 0),
            ((0.0, 20.0, 0.0, 5.0), 1),
            ((), 1),  # the run was too short for parts
        ],
    )
    def test_it_must_continue_through_the_run(self, parts, count):
        assert len(self.judged(*parts, update=(20, 40.0))) == count

    @pytest.mark.parametrize(("again_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_with_a_longer_compilation_it_must_be_a_loss_itself(self, again_s, count):
        functions = {"step": (1, 60.0), "evaluate": (30, again_s)}
        assert len(self.judged(25.0, 25.0, 25.0, 5.0, **functions)) == count

    @pytest.mark.parametrize(("again_s", "count"), [(4.4, 0), (4.5, 1)])
    def test_or_most_of_the_compiling(self, again_s, count):
        functions = {"add": (9, again_s), "multiply": (9, 4.5), "step": (1, 9.0)}
        assert len(self.judged(10.0, 5.0, 5.0, 5.0, **functions)) == count

    @pytest.mark.parametrize(("name", "count"), [("<lambda>", 1), ("", 1), ("(others)", 0)])
    def test_of_functions_without_a_name(self, name, count):
        verdict = self.judged(20.0, 20.0, 20.0, 20.0, **{name: (40, 60.0)})
        assert len(verdict) == count


class TestLarge:
    @staticmethod
    def made(compile_s, wall_s=20.0, traced_s=0.0, **functions):
        stacks = [seen((COMPILER, CALL), compile_s)]
        if traced_s:
            stacks.append(seen((own("f(y)", 51), TRACE, JIT, CALL), traced_s, State.PYTHON))
        return watched(using_jax(*stacks, wall_s=wall_s, **functions))

    def test_says_which_function_and_what_to_do(self):
        made = self.made(12.0, traced_s=1.0, improve=(1, 9.0), init=(1, 1.0))
        finding = found(fixed_costs_dominate, made)
        assert finding.sentence == (
            "Compiling took 65 % of the time: JAX compiled `improve` for 9.0 s."
        )
        assert "`jax.lax.scan`" in finding.action
        assert "`JAX_COMPILATION_CACHE_DIR`" in finding.action
        assert "TORCHINDUCTOR" not in finding.action
        assert "shapes" not in finding.action
        assert figures(finding)["slowest line"] == "train.py:78  step(x)"

    @pytest.mark.parametrize(("longest_s", "count"), [(4.9, 0), (5.0, 1)])
    def test_threshold_in_a_short_run(self, longest_s, count):
        made = self.made(5.0, wall_s=10.0, traced_s=1.0, improve=(1, longest_s))
        assert len(judged(fixed_costs_dominate, made)) == count

    def test_a_compiler_that_takes_long_once_is_no_loss_of_a_short_run(self):
        assert judged(fixed_costs_dominate, self.made(12.0, improve=(1, 9.0))) == []

    def test_several_functions_in_a_short_run(self):
        functions = {f"layer{number}": (1, 5.0) for number in range(3)}
        assert judged(fixed_costs_dominate, self.made(15.0, **functions)) == []

    def test_a_function_that_is_compiled_again_is_not_a_large_one(self):
        made = self.made(30.0, wall_s=40.0, update=(9, 28.0))
        finding = found(fixed_costs_dominate, made)
        assert finding.sentence == "Importing and compiling took 75 % of the time."
        assert "pad the arrays" in finding.action
        assert judged(fixed_costs_dominate, self.made(20.0, wall_s=25.0, update=(9, 18.0))) == []

    def test_the_end_of_the_run(self):
        compiled = seen((COMPILER, CALL), 90.0)
        parts = ((), (), (), (seen((COMPILER, CALL), 25.0),))
        finding = found(fixed_costs_dominate, watched(using_jax(compiled, parts=parts)))
        assert finding.sentence == (
            "Compiling took 90 % of the time: JAX compiled one function for 1 min 30 s, until the "
            "end of the run."
        )

    @pytest.mark.parametrize(
        ("libraries", "names"),
        [
            ({"torch": {}}, ["TORCHINDUCTOR"]),
            ({"jax": {"functions": {"a": {"compiles": 1, "compile_s": 1.0}}}}, ["JAX_COMP"]),
            ({}, ["TORCHINDUCTOR", "JAX_COMP"]),
        ],
    )
    def test_names_the_cache_of_the_library(self, libraries, names):
        compiled = process(
            seen((of_library("torch/_inductor/compile_fx.py", "compile_fx"), CALL), 60.0)
        )
        one = msgspec.structs.replace(compiled, libraries=libraries)
        action = found(fixed_costs_dominate, watched(one)).action
        assert [name for name in ("TORCHINDUCTOR", "JAX_COMP") if name in action] == names

    def test_names_the_line_of_the_loop(self):
        body = (own("rk4(params, y)", 51, "integrate"), TRACE, JIT, CALL)
        inner = (own("f(y)", 41, "rk4"), *body)
        other = (own("f(y + k)", 42, "rk4"), *body)
        update = (own("tx.update(grads)", 67, "improve"), TRACE, JIT, CALL)
        stacks = [seen(inner, 3.0), seen(other, 3.0), seen(update, 2.0), seen((COMPILER, CALL), 9)]
        finding = found(fixed_costs_dominate, watched(using_jax(*stacks, improve=(1, 70.0),
                        wall_s=30.0)))  # fmt: skip
        assert "Look at train.py:51 first." in finding.action


class TestTracedLine:
    @staticmethod
    def of(*stacks):
        return traced_line(program_of([using_jax(*stacks)]).mains[0])

    def test_not_outside_jit(self):
        assert self.of(seen((TRACE, own("layer(x)", 9), CALL), 9.0)) is None
        assert self.of(seen((COMPILER, JIT, CALL), 9.0)) is None

    @pytest.mark.parametrize(("wall_s", "line"), [(0.4, None), (0.5, 51)])
    def test_not_of_a_few_stacks(self, wall_s, line):
        frame = self.of(seen((own("f(y)", 51), TRACE, JIT, CALL), wall_s, State.PYTHON))
        assert (frame.line if frame else None) == line

    def test_a_line_that_calls_itself_counts_once(self):
        frames = (own("f(y)", 51), own("f(y)", 51), TRACE, JIT, CALL)
        others = (own("g(y)", 52), TRACE, JIT, CALL)
        assert self.of(seen(frames, 3.0), seen(others, 4.0)).line == 52
