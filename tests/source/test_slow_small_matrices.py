"""Loops of JAX that multiply small matrices, and other loops."""

from __future__ import annotations

import pytest

from source.stacks import PATH
from teho.source.parsed import parsed
from teho.source.slow_calls.small_matrices import find_small_matrices

SOURCE = """
import jax
import jax.numpy as jnp
STATES = 6
def model():
    move = jnp.eye({size})
    return move, jnp.diag([1e-10, 1e-9])
@jax.jit
def run(start, readings):
    move, noise = model()
    def epoch(carry, reading):
        return {body}, reading
    return jax.lax.{loop}(epoch, start, readings)
{more}
"""


def found(size="STATES", body="move @ carry @ move.T + noise", loop="scan", more=""):
    file = parsed(SOURCE.format(size=size, body=body, loop=loop, more=more).encode())
    return [(one.name, one.at.line) for one in find_small_matrices(PATH, file)]


@pytest.mark.parametrize("changes", [{}, {"size": "4"}, {"loop": "associative_scan"}])
def test_a_filter(changes):
    assert found(**changes) == [("small_matrices_by_jax", 13)]


@pytest.mark.parametrize(
    "changes",
    [
        {"size": "512"},
        {"size": "readings.shape[0]"},
        {"body": "carry * 2"},
        {"loop": "map"},
        {"more": "weights = jax.random.normal(key, (512, 512))"},
        {"more": "grid = jnp.zeros((768, 768))"},
    ],
)
def test_other_loops(changes):
    assert found(**changes) == []
