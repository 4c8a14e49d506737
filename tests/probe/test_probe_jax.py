"""What the probe notes of real JAX programs."""

from __future__ import annotations

import pytest

from probe.probed import WITH_FRAMEWORKS, Probed
from support import lacks_framework

pytestmark = [
    pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax")),
    pytest.mark.drawn(1, group="frameworks beside PyTorch"),
]


def test_compilations_are_recorded_by_function(probed: Probed) -> None:
    done = probed.both(
        """
        import inspect, jax, numpy
        jax.config.update("jax_enable_x64", True)
        @jax.jit
        def step(x): return (x * x).sum()
        def once(x): return x + 1
        for size in (3, 4, 5):
            for _ in range(4): step(numpy.ones(size))
        print(jax.jit(once)(numpy.ones(3)), step.__name__, inspect.signature(step))
        def wrong(x): return x if x > 0 else 0
        try: jax.jit(wrong)(numpy.ones(()))
        except jax.errors.TracerBoolConversionError as error: print(error)
        """,
        python=WITH_FRAMEWORKS,
    )
    assert done.returncode == 0
    (process,) = probed.watched()
    facts = process.libraries["jax"]
    assert facts["compiles"] == 4
    assert 0 < facts["functions"]["once"]["compile_s"] < facts["compile_s"]
    step = facts["functions"]["step"]
    assert step["compiles"] == 3
    assert step["at"][3] == "step(numpy.ones(size))"
    assert (facts["x64"], facts["platform"], facts["devices"]) == (True, "cpu", ["cpu"])
    assert (facts["device_count"], facts["process_count"]) == (1, 1)


def test_no_device_is_begun_with(probed: Probed) -> None:
    done = probed.run(
        """
        import jax
        from jax._src import xla_bridge
        print(jax.monitoring is not None, xla_bridge.backends_are_initialized())
        """,
        python=WITH_FRAMEWORKS,
    )
    assert done.stdout == b"True False\n"
    (process,) = probed.watched()
    assert set(process.libraries["jax"]) == {"version"}


def test_generators_that_do_not_compute_are_noted(probed: Probed) -> None:
    done = probed.both(
        """
        import jax, numpy
        @jax.jit
        def step(x): return (x * x).sum()
        def batches():
            for size in (3, 4): yield numpy.ones(size)
        def losses(source):
            for batch in source: yield step(batch)
        def main():
            def inner(): yield from batches()
            print([float(loss) for loss in losses(inner())])
        main()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert done.returncode == 0
    (process,) = probed.watched()
    found = {function for _, function, _ in process.libraries["jax"]["iterators"]}
    assert found == {"batches", "inner"}
