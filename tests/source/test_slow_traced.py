"""Numbers that make TensorFlow trace a function again, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import math
import tensorflow as tf
{decorator}
def train_step(x, y, rate):
    return x * rate
def main(data, schedule, steps, optimizer):
    step = 0
    {first}
    for x, y in data:
        {rate}
        loss = {call}
        step += 1
"""
PARTS = {
    "decorator": "@tf.function",
    "first": "base = 0.02",
    "rate": "rate = base * (1 + math.cos(math.pi * step / 500))",
    "call": "train_step(x, y, rate)",
}


def names(**changes):
    parts = PARTS | changes
    inner = "lib:tensorflow/python/framework/func_graph.py:func_graph_from_py_func"
    return found(SOURCE.format(**parts), parts["call"], inner)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"decorator": "@tf.function(jit_compile=True)"},
        {"rate": "rate = 0.1 / (1 + step)"},
        {"rate": "rate = float(schedule[step])"},
        {"rate": "pass", "call": "train_step(x, y, base * 0.9 ** step)"},
        {"rate": "pass", "call": "train_step(x, y, rate=1.0 / (step + 1))"},
        {"rate": "base *= 0.9\n        rate = base"},
    ],
)
def test_numbers_that_change(changes):
    assert list(names(**changes)) == ["traced_for_each_number"]


@pytest.mark.parametrize(
    "changes",
    [
        {"decorator": ""},
        {"decorator": "@tf.function(reduce_retracing=True)"},
        {"decorator": "@tf.function(input_signature=[SPEC, SPEC, SPEC])"},
        {"rate": "rate = base * 2"},  # the same number each time
        {"rate": "rate = tf.constant(0.1 * step)"},
        {"rate": "rate = schedule(step)"},  # it may be a tensor
        {"rate": "rate = np.float32(0.1 * step)"},  # TensorFlow makes a tensor of it
        {"rate": "rate = step * 2"},  # the function may need a whole number
        {"rate": "rate = x.shape[0] / 3"},
        {"first": "tf.keras.backend.set_floatx('float64'); base = 0.02"},
        {"call": "train_step(x, y, optimizer.learning_rate)"},
    ],
)
def test_other_arguments(changes):
    assert names(**changes) == {}


def test_the_code_for_numbers():
    assert names()["traced_for_each_number"] == {
        "file": "train.py",
        "line": "19",
        "function": "train_step",
        "old": "rate",
        "new": "tf.constant(rate, tf.float32)",
    }
