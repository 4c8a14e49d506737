"""Data sets that a loop maps again, conditions under `vmap`, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

MAPS = """
import datasets, logging
def features(row, epoch):
    {body}
    return {{"size": len(row["text"])}}
def clean(row):
    return row
def train(data, rows):
    for epoch in range(5):
        {before}
        made = {call}
        rows.append(made)
"""
CALL = 'data.map(features, fn_kwargs={"epoch": epoch})'
INSIDE = "lib:datasets/arrow_dataset.py:Dataset.map"


@pytest.mark.parametrize(
    ("call", "body", "before", "is_found"),
    [
        (CALL, "print(epoch)", "pass", True),
        (CALL, "if len(row) > 3:\n        logging.info('%d', epoch)", "pass", True),
        (CALL, "pass", "print(epoch)", True),
        ('data.map(features, fn_kwargs={"epoch": epoch + 1}, num_proc=2)', "pass", "pass", True),
        # ---- which look like it ----
        (CALL, "row['text'] = row['text'][epoch:]", "pass", False),
        (CALL, "seed = epoch", "pass", False),
        (CALL, "print(epoch)", "data = data.shuffle(epoch)", False),
        ('data.map(features, fn_kwargs={"epoch": 3})', "print(epoch)", "pass", False),
        ("data.map(clean)", "pass", "pass", False),
        ('data.shard(5, epoch).map(features, fn_kwargs={"epoch": epoch})', "pass", "pass", False),
        ("data.map(features, fn_kwargs=dict(epoch=epoch))", "pass", "pass", False),
    ],
)
def test_maps(call, body, before, is_found):
    source = MAPS.format(call=call, body=body, before=before)
    assert ("mapped_again_in_loop" in found(source, call, INSIDE)) is is_found


def test_the_code_of_maps():
    words = found(MAPS.format(call=CALL, body="print(epoch)", before="pass"), CALL, INSIDE)
    assert words["mapped_again_in_loop"] == {
        "file": "train.py",
        "loop": "16",
        "line": "18",
        "new": "made = data.map(features, fn_kwargs={'epoch': 0})",
        "names": "`epoch`",
        "function": "features",
    }


CONDITIONS = """
import jax
import jax.numpy as jnp
def costly(state, weight):
    return jax.lax.fori_loop(0, 99, lambda _, s: jnp.tanh(weight @ s), state)
def cheap(state, weight):
    return 0.9 * state
def step(state, weight):
    {condition}
@jax.jit
def advance(states, weight):
    return {mapped}
def main(states, weight):
    for _ in range(9):
        states = advance(states, weight)
        print(float(states))
"""
COND = "return jax.lax.cond(state[0] > 2, costly, cheap, state, weight)"
MAPPED = "jax.vmap(step, in_axes=(0, None))(states, weight)"


@pytest.mark.parametrize(
    ("condition", "mapped", "is_found"),
    [
        (COND, MAPPED, True),
        ("hot = state[0] > 2\n    return jax.lax.cond(hot, costly, cheap, state, weight)", MAPPED,
         True),
        (COND.replace("costly, cheap", "cheap, costly"), MAPPED, True),
        (COND, "jax.vmap(step)(states, weight)", True),
        # ---- which look like it ----
        (COND.replace("costly, cheap", "cheap, cheap"), MAPPED, False),
        (COND.replace("costly, cheap", "costly, costly"), MAPPED, False),
        (COND.replace("state[0]", "weight[0, 0]"), MAPPED, False),
        ("return costly(state, weight)", MAPPED, False),
        (COND, "step(states, weight)", False),
        (COND, "jax.lax.map(lambda one: step(one, weight), states)", False),
        (COND, "jax.vmap(step, in_axes=(1, None))(states, weight)", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("active", ["advance(states, weight)", "float(states)"])
def test_conditions(condition, mapped, is_found, active):
    source = CONDITIONS.format(condition=condition, mapped=mapped)
    assert ("both_branches_computed" in found(source, active)) is is_found


def test_the_code_of_conditions():
    source = CONDITIONS.format(
        condition=COND.replace("costly, cheap", "cheap, costly"), mapped=MAPPED
    )
    assert found(source, "float(states)")["both_branches_computed"] == {
        "costly": "costly",
        "function": "step",
        "line": "19",
        "old": MAPPED,
        "rows": "rows = jnp.nonzero(~jax.vmap(lambda state: state[0] > 2)(states), size=256, "
        "fill_value=len(states))[0]",
        "all": "every = jax.vmap(cheap, in_axes=(0, None))(states, weight)",
        "part": "some = jax.vmap(costly, in_axes=(0, None))(states[rows], weight)",
        "new": 'every.at[rows].set(some, mode="drop")',
    }
