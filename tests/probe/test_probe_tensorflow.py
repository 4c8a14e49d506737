"""What the probe notes of real TensorFlow programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from probe.probed import SPIN, Probed, Ran, loaders_of
from support import lacks_framework
from teho.model.watched import Loader

pytestmark = pytest.mark.drawn(1, group="frameworks beside PyTorch")

needs_tensorflow = pytest.mark.skipif(
    bool(lacks_framework("tensorflow")), reason=lacks_framework("tensorflow")
)
OTHER = "other.interleave(tf.data.Dataset.from_tensors).batch(4)"


CALLS = """
    import inspect
    import tensorflow as tf
    def tuned():
        numbers = tf.data.Dataset.range(12)
        numbers = numbers.map(lambda n: n + 1, num_parallel_calls=tf.data.AUTOTUNE)
        return numbers.cache().batch(4).take(3).prefetch(2)
    def plain(): return tf.data.Dataset.zip(tuned(), tf.data.Dataset.range(3)).batch(2)
    one = tuned()
    for _ in range(2): print([batch.numpy().tolist() for batch in one])
    for batch in plain(): break
    @tf.function
    def total():
        found = tf.constant(0, tf.int64)
        for n in tf.data.Dataset.range(4).map(lambda n: 2 * n): found += n
        return found
    print(total().numpy(), inspect.signature(tf.data.Dataset.map))
    """
PIPELINES = """
    import json
    import keras
    import numpy as np
    import tensorflow as tf
    def root(n): return tf.sqrt(tf.cast(n, tf.float32))
    def noisy(n): return root(n) + tf.random.normal([])
    numbers = tf.data.Dataset.range(64)
    plain = numbers.map(root)
    plain = plain.batch(4)
    other = numbers.map(noisy)
    other = other.interleave(tf.data.Dataset.from_tensors).batch(4)
    for _ in range(2): total = sum(float(tf.reduce_sum(batch)) for batch in plain)
    for batch in other: pass
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None): time.sleep(0.02)
    pairs = plain.map(lambda x: (x[:, None], x)).prefetch(2)
    model.fit(pairs, epochs=2, verbose=0, callbacks=[Slow()])
    print(round(total, 3))
    """


def started(folder: Path, *, probe: bool = True, **programs: str) -> tuple[Probed, Ran]:
    """Run programs in forks, because TensorFlow takes five seconds to start."""
    probed = Probed(folder)
    probed.environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    # What TensorFlow logs has its times.
    done = probed.forked("import keras, tensorflow", programs, probe=probe, is_silent=False)
    return probed, Ran(done, {}, probed.watched())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Probed, Ran]:
    return started(tmp_path_factory.mktemp("probed"), calls=CALLS, pipelines=PIPELINES)


def pipelines_of(ran: Ran) -> dict[str, Loader]:
    """Return the pipelines by the line of their last call."""
    done, process = ran.probed["pipelines"], ran.only("pipelines")
    total = round(sum(math.sqrt(n) for n in range(64)), 3)
    assert float(done.stdout) == pytest.approx(total, rel=1e-4), done.stderr
    assert process.progress[-1].steps == 2 * 16  # of Keras
    return {one.made_at.text: one for one in process.loaders if one.made_at}


@needs_tensorflow
def test_pipelines_are_recorded_with_their_calls_and_waits(
    ran: tuple[Probed, Ran], tmp_path: Path
) -> None:
    probed, own = ran
    _, other = started(tmp_path, probe=False, calls=CALLS)
    done, without = own.probed["calls"], other.probed["calls"]
    assert (done.stdout, done.returncode) == (without.stdout, 0), done.stderr
    loaders = loaders_of(own.only("calls"))
    script = probed.folder / "calls.py"
    one = loaders["tuned"]
    places = [call.pop("at") for call in one.settings["pipeline"]]
    assert {file for file, _ in places} == {str(script)}
    lines = script.read_text().splitlines()
    assert ["numbers." in lines[number - 1] for _, number in places] == [True] * 4
    assert one.settings["pipeline"] == [
        {"call": "map", "num_parallel_calls": "autotune", "is_random": False},
        {"call": "cache", "filename": ""},
        {"call": "batch", "batch_size": 4, "num_parallel_calls": None},
        {"call": "prefetch", "buffer_size": 2},
    ]
    assert (one.made, one.epochs, one.batches) == (1, 2, 6)
    assert (one.settings["batch_size"], one.settings["samples"]) == (4, 12)
    assert one.batch == {"bytes": 4 * 8, "dtypes": ["int64"]}
    plain = loaders["plain"]
    assert plain.settings["pipeline"][-1]["call"] == "batch"
    assert (plain.epochs, plain.batches) == (1, 1)


def calls_of(loader: Loader) -> list[tuple[str, Any]]:
    return [(call["call"], call.get("num_parallel_calls")) for call in loader.settings["pipeline"]]


@needs_tensorflow
def test_stages_randomness_and_the_steps_of_keras_are_noted(ran: tuple[Probed, Ran]) -> None:
    found = pipelines_of(ran[1])
    plain, other = found["plain.batch(4)"], found[OTHER]
    assert (plain.epochs, plain.batches, plain.settings["samples"]) == (2, 32, 64)
    assert plain.settings["stages"]["MapAndBatch"] > 0
    assert plain.settings["stages_waited_s"] > 0
    assert [plain.settings["pipeline"][0]["is_random"]] == [False]
    assert [other.settings["pipeline"][0]["is_random"]] == [True]
    assert calls_of(other) == [("map", None), ("interleave", None), ("batch", None)]
    assert "Interleave" in other.settings["stages"]
    (of_keras,) = (one for one in found.values() if not one.batches)
    looks, empty = of_keras.settings["looks"]
    assert (looks > 2, empty, of_keras.settings["samples"]) == (True, 0, 64)


@needs_tensorflow
def test_settings_that_are_tried_reach_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Probed(tmp_path).folder / "pipelines.py"
    line = PIPELINES[: PIPELINES.index("plain = plain.batch")].count("\n") + SPIN.count("\n")
    wanted = {
        "num_parallel_calls": "autotune",
        "prefetch": f"{script}:{line + 1}:batch",
        "cache": f"{script}:{line}:map",
    }
    monkeypatch.setenv("TEHO_TUNE", json.dumps(wanted))
    _, own = started(tmp_path, pipelines=PIPELINES)
    found = pipelines_of(own)
    plain = max(found.values(), key=lambda one: one.batches)
    assert plain.batches == 32  # what is loaded for a trial is not counted
    assert calls_of(plain)[0] == ("map", "autotune")
    assert [name for name, _ in calls_of(plain)] == ["map", "cache", "batch", "prefetch"]
    assert calls_of(found[OTHER])[:2] == [("map", "autotune"), ("interleave", "autotune")]
    assert own.only("pipelines").libraries["tune"] == {"samples_differ": False}


@pytest.mark.parametrize("built", ["cuda", "rocm", ""])
def test_what_it_was_built_for_is_noted(probed: Probed, tmp_path: Path, built: str) -> None:
    """With a stand-in for the module: both its builds would be half a gigabyte each."""
    package = tmp_path / "stand-in" / "tensorflow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "__version__ = '2.19.0'\nfrom tensorflow import sysconfig\n"
    )
    build = {"is_cuda_build": built == "cuda", "is_rocm_build": built == "rocm"}
    (package / "sysconfig.py").write_text(f"def get_build_info(): return {build}\n")
    probed.path = str(package.parent)
    assert probed.run("import tensorflow").returncode == 0
    (process,) = probed.watched()
    assert process.libraries["tensorflow"] == {
        "version": "2.19.0", "cuda": built == "cuda", "rocm": built == "rocm"
    }  # fmt: skip
    assert process.may_use_device == bool(built)
