"""Static arguments of `jax.jit` that a loop changes, and arguments that have to be static."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

SWARM = """
from functools import partial
import jax
import jax.numpy as jnp
def velocity(phase, rhythm, coupling):
    return rhythm + coupling * jnp.sin(phase).sum()
@partial(jax.jit, static_argnames=("coupling",))
def night(phase, rhythm, coupling):
    def step(state, _):
        return state + 0.05 * velocity(state, rhythm, coupling), None
    return jax.lax.scan(step, phase, None, length=640)
def main(phase, rhythm):
    for strength in np.linspace(0.05, 1.2, 44):
        last = night(phase, rhythm, float(strength))
"""
CALL = "night(phase, rhythm, float(strength))"
INNER = "lib:jax/_src/pjit.py:cache_miss"
LOOP = "    for strength in np.linspace(0.05, 1.2, 44):"
COMPUTED = "    for day in range(44):\n        strength = {}"
OPTION = '@partial(jax.jit, static_argnames=("coupling",))\n'


def found(source, call=CALL):
    for one in find_slow_calls(*stack_of(source, call, INNER)):
        if one.name == "static_argument_changes":
            return one
    return None


def changed(*changes):
    source = SWARM
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_names_the_argument_and_the_option():
    one = found(SWARM)
    assert (one.at.text, one.at.line) == ('static_argnames=("coupling",)', 14)
    assert one.words == {"argument": "coupling", "function": "night", "called": "train.py:21"}


@pytest.mark.parametrize(
    "changes",
    [
        (OPTION, "@partial(jax.jit, static_argnums=2)\n"),
        (OPTION, '@jax.jit(static_argnames="coupling")\n'),
        (OPTION, "", "def main(", "night = jax.jit(night_of, static_argnums=(2,))\ndef main(",
         "def night(", "def night_of("),
        ("coupling * jnp", "(2.0 * coupling) * jnp"),
        ("coupling * jnp.sin(phase)", "(phase ** -coupling)"),
        ("coupling * jnp.sin(phase)", "jnp.maximum(phase, coupling)"),
        ("coupling * jnp", "jax.tree.map(lambda one: -coupling * one, phase) + jnp"),
        # The loop computes the argument from its item.
        (LOOP, COMPUTED.format("0.02 * 0.96 ** day")),
        (LOOP, COMPUTED.format("-0.5 * math.cos(day / 9)")),
        (f"{LOOP}\n", COMPUTED.format("1 - day ** 2\n        for hour in range(24):\n    ")),
    ],
)  # fmt: skip
def test_other_programs(changes):
    assert found(changed(*changes)) is not None


@pytest.mark.parametrize(
    "changes",
    [
        # JAX needs the value.
        ("length=640", "length=coupling"),
        ("coupling * jnp.sin(phase)", "jnp.zeros(coupling)"),
        ("coupling * jnp.sin(phase)", "jnp.zeros(2 * coupling)"),
        ("    return rhythm", "    if coupling > 1:\n        phase = 2 * phase\n    return rhythm"),
        (
            "    return rhythm",
            "    for _ in range(coupling):\n        phase += 1\n    return rhythm",
        ),
        ("coupling * jnp.sin(phase)", "phase[:coupling]"),
        ("coupling * jnp.sin(phase)", "of_library(phase, coupling)"),
        ("    return rhythm", "    half = coupling\n    return rhythm"),
        # The argument is not static, or does not change.
        (OPTION, "@jax.jit\n"),
        (OPTION, '@partial(jax.jit, static_argnames=("rhythm",))\n'),
        (OPTION, "@partial(jax.jit, static_argnames=NAMES)\n"),
        (OPTION, '@partial(other, static_argnames=("coupling",))\n'),
        ("float(strength)", "float(rhythm)"),
        ("np.linspace(0.05, 1.2, 44)", "(0.1, 0.2)"),
        (LOOP, "    if rhythm:"),
        # The loop computes only a few different values.
        (LOOP, COMPUTED.format("0.1 if day < 9 else 0.01")),
        (LOOP, COMPUTED.format("0.1 * 0.5 ** (day // 9)")),
        (LOOP, COMPUTED.format("min(day, 3) / 3")),
        (LOOP, COMPUTED.format("np.float32(day % 2)")),
        (LOOP, COMPUTED.format("0.1 * rhythm")),
        (LOOP, COMPUTED.format("0.1 * day\n        strength = rhythm")),
        (LOOP, "    for day in range(3):\n        strength = 0.1 * day"),
        (LOOP, "    strength = 0.1 * phase\n    for day in range(44):"),
        # A lambda function that does not get arrays.
        ("coupling * jnp", "sum(map(lambda one: coupling * one, ROWS)) * jnp"),
    ],
)
def test_look_alikes(changes):
    call = CALL.replace(*changes) if changes[0] == "float(strength)" else CALL
    assert found(changed(*changes), call) is None
