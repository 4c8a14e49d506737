"""Keras models that a loop loads or compiles again, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import keras
def build():
    inputs = keras.Input((9,))
    return keras.Model(inputs, keras.layers.Dense(2)(inputs))
def main(x, y, path, rates, folds, losses):
    {first}
    for number, rate in enumerate(rates):
        {load}
        {compile}
        model.fit(x, y)
        {more}
"""
PARTS = {
    "first": "build().save(path)",
    "load": "model = keras.models.load_model(path)",
    "compile": "model.compile(optimizer=keras.optimizers.Adam(rate), loss='mse')",
    "more": "model.save(path)",
}
STAYS = {"first": "model = build()", "load": "pass", "more": "print(rate)"}
SAME = {"compile": "model.compile(keras.optimizers.Adam(3e-4), loss='mse')"}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "keras_loaded_again_for_rates"),
        (SAME, "keras_loaded_again"),
        ({"compile": "pass"}, "keras_loaded_again"),
        (STAYS, "keras_compiled_again_for_rates"),
        (STAYS | SAME, "keras_compiled_again"),
        # ---- which look like it ----
        ({"more": "print(rate)"}, None),  # each iteration begins with the first weights
        ({"more": "model.save(f'{path}-{number}')"}, None),
        ({"load": "model = build()"}, None),  # a new model for each setting
        ({"load": "model = keras.models.load_model(folds[number])"}, None),
        ({"compile": "model.compile(keras.optimizers.Adam(rate), loss=losses[number])"}, None),
        ({"compile": "model.layers[number].trainable = True; model.compile('adam', 'mse')"}, None),
        (STAYS | {"more": "models.append(model)"}, None),
        (STAYS | {"more": "model.set_weights(y)"}, None),
        (STAYS | {"first": "model = other()"}, None),
        (STAYS | {"compile": "if rate > 3: model.compile('adam', 'mse')"}, None),
        (STAYS | {"compile": "pass"}, None),
    ],
)  # fmt: skip
def test_models(changes, name):
    assert list(found(SOURCE.format(**(PARTS | changes)), "model.fit(x, y)")) == (
        [name] if name else []
    )


def test_the_code_for_models():
    words = found(SOURCE.format(**PARTS), "model.fit(x, y)")["keras_loaded_again_for_rates"]
    assert words == {
        "file": "train.py",
        "loop": "15",
        "before": (
            "model = keras.models.load_model(path); "
            "model.compile(optimizer=keras.optimizers.Adam(), loss='mse')"
        ),
        "inside": "model.optimizer.learning_rate = rate",
        "removed": "16–17",
    }
