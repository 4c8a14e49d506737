"""Loops that JAX unrolls, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import jax
import jax.numpy as jnp
N_STEPS = 20
def cell(p, h, x):
    return jnp.tanh(x @ p["a"] + h @ p["b"])
def tension(p, drive):
    h = jnp.zeros((drive.shape[0], 96))
    outs = []
    for t in {iterable}:
        {body}
    return {end}
def loss(p, x, y):
    return jnp.mean((tension(p, x) - y) ** 2)
@jax.jit
def step(p, x, y):
    return jax.value_and_grad(loss)(p, x, y)
def main(p, batches):
    for x, y in batches:
        step(p, x, y)
"""
COMPILES = (
    "lib:jax/_src/pjit.py:_cpp_pjit.<locals>.cache_miss",
    "lib:jax/_src/compiler.py:backend_compile_and_load",
)
BODY = "h = cell(p, h, drive[:, t])\n        outs.append(h @ p['out'])"


def words(iterable="range(drive.shape[1])", body=BODY, end="jnp.stack(outs, axis=1)", stack=None,
          source=SOURCE):  # fmt: skip
    source = source.format(iterable=iterable, body=body, end=end)
    stack = stack or ("step(p, x, y)", *COMPILES)
    return found(source, *stack).get("loop_unrolled_by_jax")


def test_a_loop_over_time_steps():
    assert words() == {
        "file": "train.py",
        "loop": "17",
        "last": "19",
        "code": "`drive = jnp.asarray(drive)`; "
        "`def one_pass(h, t):\n    h = cell(p, h, drive[:, t])\n"
        "    return h, h @ p['out']`; "
        "`h, outs = jax.lax.scan(one_pass, h, jnp.arange(drive.shape[1]))`",
        "results": " `outs` is then an array, whose first axis has the passes.",
    }


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"iterable": "range(N_STEPS)", "body": "h = cell(p, h, drive[:, t])", "end": "h"},
         "h, _ = jax.lax.scan(one_pass, h, jnp.arange(N_STEPS))"),
        ({"body": "x = drive[:, t]\n        h = cell(p, h, x)\n        outs.append(h)"},
         "h, outs = jax.lax.scan(one_pass, h, jnp.arange(drive.shape[1]))"),
        ({"body": "drive, h = h, cell(p, h, drive)", "end": "h", "iterable": "range(30)"},
         "(drive, h), _ = jax.lax.scan(one_pass, (drive, h), jnp.arange(30))"),
    ],
)  # fmt: skip
def test_the_code(changes, code):
    assert f"`{code}`" in words(**changes)["code"]


@pytest.mark.parametrize(
    "changes",
    [
        {"iterable": "range(4)"},
        {"iterable": "range(layers)"},
        {"iterable": "drive"},
        {"body": "w, b = p[t]\n        h = cell(p, h, w)"},
        {"body": "h = h @ p[t]['w']"},
        {"body": "h = p[t](h)"},
        {"body": "h = cell(p[f'layer{t}'], h, drive)"},
        {"body": "h = cell(p, h, drive[:, t:t + 3])"},
        {"body": "if t > 3:\n            h = cell(p, h, drive[:, t])"},
        {"stack": ("step(p, x, y)",)},  # the compiled function runs
        {"source": SOURCE.replace("@jax.jit", "")},  # JAX compiles single operations
    ],
)
def test_other_loops(changes):
    assert words(**changes) is None


def test_arrays_of_jax_stay_as_they_are():
    source = SOURCE.replace("    outs = []", "    outs = []\n    drive = jnp.flip(drive, 1)")
    assert "asarray" not in words(source=source)["code"]


def test_a_function_that_is_compiled_by_a_call():
    source = SOURCE.replace("@jax.jit", "").replace("def main", "judge = jax.jit(loss)\ndef main")
    source = source.replace("        step(p, x, y)", "        judge(p, x, y)")
    assert words(stack=("judge(p, x, y)", *COMPILES), source=source) is not None
