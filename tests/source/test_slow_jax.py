"""JAX arrays that a loop fills, and steps without `jax.jit`; and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

FILLED = """
import jax
import jax.numpy as jnp
def correct(x):
    return x - x.mean()
{decorator}
def collect(spectra, start):
    bank = jnp.zeros((5000, 512))
    {first}
    for row, spectrum in enumerate(spectra):
        {body}
    return bank
"""
SET = "bank = bank.at[row].set(correct(spectrum))"
CALL = SET.removeprefix("bank = ")
LIBRARY = "lib:jax/_src/numpy/array_methods.py:_IndexUpdateRef.set"


def filled(body=SET, call=CALL, decorator="", first="pass", caller=()):
    source = FILLED.format(body=body, decorator=decorator, first=first)
    return list(found(source, *caller, call, LIBRARY))


@pytest.mark.parametrize(
    ("body", "call", "first"),
    [
        (SET, CALL, "pass"),
        (f"if row > 3:\n            {SET}", CALL, "pass"),
        ("bank = bank.at[row, :, 0].set(spectrum)", "bank.at[row, :, 0].set(spectrum)", "pass"),
        (f"for part in range(3):\n            {SET}", CALL, "pass"),
    ],
)
def test_arrays_that_a_loop_fills(body, call, first):
    assert filled(body, call, first=first) == ["jax_array_filled"]


@pytest.mark.parametrize(
    "facts",
    [
        {"body": "bank = bank.at[row].set(bank[row - 1] + spectrum)",
         "call": "bank.at[row].set(bank[row - 1] + spectrum)"},
        {"body": f"{SET}\n        print(bank.sum())"},
        {"body": "bank = bank.at[row].add(spectrum)", "call": "bank.at[row].add(spectrum)"},
        {"body": "other = bank.at[row].set(spectrum)", "call": "bank.at[row].set(spectrum)"},
        {"body": "bank = bank.at[row].set(spectrum, mode='drop')",
         "call": "bank.at[row].set(spectrum, mode='drop')"},
        {"body": f"bank = jnp.zeros((50, 512))\n        {SET}"},  # a new array in each iteration
        {"decorator": "@jax.jit"},
        {"decorator": "@partial(jax.jit, static_argnums=0)"},
        {"caller": ("lib:jax/_src/pjit.py:cache_miss",)},
        {"first": "show = lambda: bank.sum()"},
    ],
)  # fmt: skip
def test_other_arrays(facts):
    assert filled(**facts) == []


def test_a_statement_without_a_loop():
    source = "def main(x):\n    x = x.at[0].set(1.0)\n    return x\n"
    assert found(source, "x.at[0].set(1.0)", LIBRARY) == {}


def test_few_iterations():
    source = FILLED.format(body=SET, decorator="", first="pass").replace(
        "enumerate(spectra)", "enumerate([1, 2, 3])"
    )
    assert found(source, CALL, LIBRARY) == {}


def test_the_code_for_arrays():
    words = found(FILLED.format(body=SET, decorator="", first="pass"), CALL, LIBRARY)
    assert words["jax_array_filled"] == {
        "file": "train.py",
        "loop": "17",
        "line": "18",
        "last": "18",
        "before": "bank = np.array(bank)",
        "new": "bank[row] = correct(spectrum)",
        "after": "bank = jnp.asarray(bank)",
    }


STEP = """
import jax
import jax.numpy as jnp
import optax
def simulate(params, start):
    def year(density, _):
        return density * params["growth"], density
    _, path = jax.lax.scan(year, start, None, length=160)
    return path
def main(start, observed, optimizer, params, state):
    def loss(params):
        {in_loss}
        return jnp.mean((simulate(params, start) - observed) ** 2)
    value_and_grad = optax.value_and_grad_from_state(loss)
    {decorator}
    def step(params, state):
        value, grad = value_and_grad(params, state=state)
        {inside}
        updates, state = optimizer.update(grad, state, params, value=value, value_fn=loss)
        return optax.apply_updates(params, updates), state, value
    for iteration in range({count}):
        params, state, value = step({arguments})
        print(float(value))
"""
UPDATE = "optimizer.update(grad, state, params, value=value, value_fn=loss)"
PARTS = {
    "in_loss": "pass", "decorator": "", "inside": "pass", "count": "15",
    "arguments": "params, state",
}  # fmt: skip
COMPILING = (
    "lib:jax/_src/lax/control_flow/loops.py:while_loop",
    "lib:jax/_src/dispatch.py:apply_primitive",
    "lib:jax/_src/compiler.py:backend_compile",
)


def steps(*libraries, before=(), **changes):
    source = STEP.format(**(PARTS | changes))
    call = f"step({(PARTS | changes)['arguments']})"
    return found(source, call, *before, UPDATE, *(libraries or COMPILING))


@pytest.mark.parametrize(
    "changes", [{}, {"inside": "grad = {name: jnp.tanh(one) for name, one in grad.items()}"}]
)
def test_steps_that_are_not_compiled(changes):
    assert list(steps(**changes)) == ["jax_step_not_compiled"]


@pytest.mark.parametrize(
    "changes",
    [
        {"decorator": "@jax.jit"},
        {"inside": "fast = jax.jit(loss)"},  # JAX may compile this one again
        {"inside": "print(value)"},
        {"inside": "history.append(float(value))"},
        {"inside": "value = np.asarray(value)"},
        {"inside": "grad = grad if value > 3 else state"},
        {"inside": "best.value = value"},
        {"count": "2"},
        {"arguments": "params, iteration"},
        {"arguments": "params, 'train'"},
        {"arguments": "params, lambda x: x"},
    ],
)
def test_other_steps(changes):
    assert steps(**changes) == {}


def test_steps_whose_parts_are_compiled_for_new_shapes():
    # No loop of `jax.lax`: `jax.jit` would compile the step again, too.
    assert steps("lib:jax/_src/dispatch.py:apply_primitive", "lib:jax/_src/compiler.py:x") == {}


def test_steps_that_jax_calls():
    assert steps(before=("lib:jax/_src/pjit.py:cache_miss",)) == {}


def test_a_step_that_runs():
    assert steps("lib:jax/_src/lax/control_flow/loops.py:while_loop") == {}


def test_the_words_for_steps():
    assert steps()["jax_step_not_compiled"] == {"function": "step", "jax": ""}


EAGER = """
import jax
import jax.numpy as jnp
def main(net, params, parts):
    {decorator}
    def loss_of(params, part):
        return jnp.mean(net.apply(params, part) ** 2)
    step = {compiled}
    def evaluate(params, part=parts[0]):
        return {evaluated}
    {head}
        params = step(params, parts)
        {body}
"""
EAGER_PARTS = {
    "decorator": "",
    "compiled": "jax.jit(jax.value_and_grad(loss_of))",
    "evaluated": "sum(float(loss_of(params, part)) for part in parts)",
    "head": "for epoch in range(100):",
    "body": "evaluate(params)",
}
EAGER_STACK = (
    "evaluate(params)",
    "loss_of(params, part)",
    "net.apply(params, part)",
    "lib:flax/linen/module.py:Module.apply",
)


def eager(*stack, **changes):
    return found(EAGER.format(**EAGER_PARTS | changes), *(stack or EAGER_STACK)).get(
        "jax_called_without_jit"
    )


@pytest.mark.parametrize(
    "changes",
    [{}, {"compiled": "jax.jit(loss_of)"}, {"compiled": "jax.pmap(jax.grad(loss_of))"}],
)
def test_a_function_that_is_compiled_only_elsewhere(changes):
    jit = changes.get("compiled", "jax.jit").partition("(")[0]
    assert eager(**changes) == {"function": "loss_of", "after": "14", "jit": jit}


@pytest.mark.parametrize(
    "changes",
    [
        {"compiled": "jax.value_and_grad(loss_of)"},  # it may not be possible to compile it
        {"compiled": "jax.jit(loss_of, static_argnums=1)"},
        {"compiled": "jax.jit(other)"},
        {"decorator": "@jax.jit"},
        {"decorator": "@partial(jax.jit, static_argnums=1)"},
    ],
)
def test_functions_that_are_compiled_or_may_not_be(changes):
    assert eager(**changes) is None


def test_calls_that_jax_traces_and_calls_without_a_loop():
    traced = ("lib:jax/_src/pjit.py:cache_miss", *EAGER_STACK[1:])
    assert eager(EAGER_STACK[0], *traced) is None
    once = {"evaluated": "loss_of(params, part)"}
    assert eager(**once) is not None
    assert eager(**once, head="if params:") is None
    assert eager(*EAGER_STACK[:3]) is None  # no operation of JAX


def test_a_function_that_is_defined_again_for_each_call():
    once = {"evaluated": "loss_of(params, part)", "head": "if params:"}
    caller = "def run(nets):\n    for net in nets:\n        main(net, {}, [])\n"
    source = EAGER.format(**EAGER_PARTS | once) + caller
    assert "jax_called_without_jit" not in found(source, "main(net, {}, [])", *EAGER_STACK)
