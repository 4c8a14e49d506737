"""What the probe notes of real TensorFlow programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.probed import WITH_FRAMEWORKS, Probed, loaders_of
from support import lacks_framework


@pytest.mark.skipif(bool(lacks_framework("tensorflow")), reason=lacks_framework("tensorflow"))
def test_pipelines_are_told_with_their_calls_and_waits(probed: Probed) -> None:
    probed.environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    code = """
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
    without = probed.run(code, python=WITH_FRAMEWORKS, probe=False)
    done = probed.run(code, python=WITH_FRAMEWORKS)
    # What TensorFlow logs has its times.
    assert (done.stdout, done.returncode) == (without.stdout, 0)
    (process,) = probed.watched()
    loaders = loaders_of(process)
    one = loaders["tuned"]
    assert one.settings["pipeline"] == [
        {"call": "map", "num_parallel_calls": "autotune"},
        {"call": "cache", "filename": ""},
        {"call": "batch", "batch_size": 4, "num_parallel_calls": None},
        {"call": "prefetch", "buffer_size": 2},
    ]
    assert (one.made, one.epochs, one.batches) == (1, 2, 6)
    plain = loaders["plain"]
    assert plain.settings["pipeline"][-1]["call"] == "batch"
    assert (plain.epochs, plain.batches) == (1, 1)


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
