"""`teho profile --steps` with JAX's and TensorFlow's own profilers."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import profile_traces
from probe.probed import WITH_FRAMEWORKS, Probed
from support import lacks_framework
from teho.errors import DamagedError
from teho.profile.load import load
from teho.profile.summary import read_trace, read_traces
from teho.profile.xplane import write_xspace
from teho.profile.xspace import load_xspace

PLANS = """
import json, os, sys, time, types
NOTES = sys.modules["_teho_probe"].NOTES
def plan(name, **changes):
    wanted = {"id": name, "first": None, "last": None, "count": None, "window_s": None,
              "after_s": 0, "with": [], "ranks": "one", "most_s": 60, "most_bytes": 1 << 29}
    path = os.path.join(os.environ["TEHO_PROBE"], "profile.json")
    with open(path + ".new", "w") as file:
        json.dump({**wanted, **changes}, file)
    os.replace(path + ".new", path)
    time.sleep(1.05)
"""
JAX = """
import jax, jax.numpy as jnp, tempfile
from jax._src.profiler import _profile_state as state
lock = state.lock
@jax.jit
def step(x): return jnp.tanh(x @ x) / 10
def train(steps):
    x = jnp.ones((50, 50))
    for number in range(1, steps + 1):
        with jax.profiler.TraceAnnotation("loop step %d" % number):
            x = step(x)
        NOTES.step(is_reported=True)
def ended():
    assert state.lock is lock and state.profile_session is None
train(1)
plan("plain", count=2); train(6); ended()
def fail(*_, **__): raise RuntimeError("on purpose")
def space(*free):
    left = iter(free)
    return lambda _: types.SimpleNamespace(f_bavail=next(left), f_frsize=1)
xla = sys.modules["_teho_probe.profile_xla"]
xla.open = fail  # a trace that is too large must not be written
plan("size", count=2, most_bytes=10); train(6); ended()
keep, os.statvfs = os.statvfs, space(1 << 28)
plan("nearly", count=2); train(6); ended()
os.statvfs = keep
del xla.open
folder = tempfile.mkdtemp()
plan("displaced", count=9); train(5)
with jax.profiler.trace(folder): train(1)
ended()
assert os.listdir(folder)
jax.profiler.start_trace(folder)
plan("own", count=2); train(6)
jax.profiler.stop_trace()
ended()
keep, jax.profiler.start_trace = jax.profiler.start_trace, fail
plan("starts", count=2); train(6); ended()
jax.profiler.start_trace = keep
module = sys.modules["jax._src.profiler"]
session = types.SimpleNamespace(stop=fail)
keep, module._profiler = module._profiler, types.SimpleNamespace(ProfilerSession=lambda _: session)
plan("stops", count=2); train(6); ended()
module._profiler = keep
keep, os.statvfs = os.statvfs, space(300 << 20, 10 << 20)
plan("disk", count=2); train(6); ended()
os.statvfs = keep
probe = sys.modules["_teho_probe.profiling"]
used = iter([1, 1, 1 << 40])
keep, probe.used_bytes = probe.used_bytes, lambda: next(used, 1 << 40)
plan("events", count=50); train(30); ended()
probe.used_bytes = keep
plan("again", count=2); train(6); ended()
plan("window", window_s=0.1)
for _ in range(30): train(1); time.sleep(0.1)
ended()
print("done")
"""


COMPILES = """
import jax, jax.numpy as jnp
@jax.jit
def step(x):
    for n in range(60): x = jnp.tanh(x @ x + n) / 10
    return x
x = jnp.ones((8, 8))
plan("window", window_s=0.2)
step(x).block_until_ready()
for _ in range(500 * IS_LONG):
    x = step(x).block_until_ready()
    time.sleep(0.002)
print("done")
"""
"""The window begins just before the first call of a function that compiles for longer."""


@pytest.mark.drawn(1, tests="frameworks")
@pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax"))
def test_a_window_in_which_jax_compiles_is_recorded_again(tmp_path: Path) -> None:
    probed = Probed(tmp_path)
    probed.environment = {"JAX_PLATFORMS": "cpu"}
    done = probed.run("IS_LONG = 1" + PLANS + COMPILES, python=WITH_FRAMEWORKS)
    assert (done.stdout, done.stderr, done.returncode) == (b"done\n", b"", 0)
    (process,) = probed.watched()
    (use,) = [one for one in process.profiled if one.why != "accepted"]
    assert use.why == ""
    trace = read_trace(probed.spool / use.file)
    assert trace.compile_s == 0
    assert {one.name for one in trace.operators} >= {"PjitFunction(step)"}


@pytest.mark.drawn(1, tests="frameworks")
@pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax"))
def test_a_trace_of_compiling_says_so(tmp_path: Path) -> None:
    probed = Probed(tmp_path)
    probed.environment = {"JAX_PLATFORMS": "cpu"}
    steps = COMPILES.replace(
        'plan("window", window_s=0.2)',
        'plan("steps", count=1)\nNOTES.step(is_reported=True)\nNOTES.step(is_reported=True)',
    ).replace("for _ in", "NOTES.step(is_reported=True)\nfor _ in")
    done = probed.run("IS_LONG = 0" + PLANS + steps, python=WITH_FRAMEWORKS)
    assert (done.stdout, done.stderr, done.returncode) == (b"done\n", b"", 0)
    (process,) = probed.watched()
    (use,) = [one for one in process.profiled if one.why != "accepted"]
    profiled = read_traces([probed.spool / use.file], by_teho=True)
    assert re.match(r"For \d+ % of a step, functions were compiled \(`step`\)", profiled.verdict)
    assert "--steps" in profiled.advice[0]


@pytest.mark.drawn(1, tests="frameworks")
@pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax"))
def test_jax(tmp_path: Path) -> None:
    probed = Probed(tmp_path)
    probed.environment = {"JAX_PLATFORMS": "cpu"}
    done = probed.run(PLANS + JAX, python=WITH_FRAMEWORKS)
    assert (done.stdout, done.stderr, done.returncode) == (b"done\n", b"", 0)
    (process,) = probed.watched()
    uses = {use.profile: use for use in process.profiled}
    assert {name: use.why for name, use in uses.items()} == {
        "plain": "", "size": "size", "nearly": "disk", "displaced": "displaced", "own": "own",
        "starts": "error", "stops": "error", "disk": "disk", "events": "memory", "again": "",
        "window": "",
    }  # fmt: skip
    assert all("on purpose" in uses[name].detail for name in ("starts", "stops"))
    assert [uses[name].detail for name in ("nearly", "disk")] == [str(1 << 28), str(300 << 20)]
    assert uses["events"].steps[1] - uses["events"].steps[0] < 28
    assert len(list(probed.spool.glob("trace-*"))) == 4
    for name in ("plain", "again"):
        path = probed.spool / uses[name].file
        loaded = load_xspace(path)
        first, last = uses[name].steps
        assert last == first + 1
        steps = [mark.name for mark in loaded.marks]
        assert steps == [f"ProfilerStep#{first}", f"ProfilerStep#{last}"]
        assert {one for one in loaded.names if one.startswith("loop")} == {
            "loop step 3", "loop step 4"
        }  # fmt: skip
        trace = read_trace(path)
        assert (trace.step_count, trace.devices) == (2, ())
        assert any(one.name == "PjitFunction(step)" for one in trace.operators)


KERAS = """
import numpy, keras
x, y = numpy.zeros((400, 4), "float32"), numpy.zeros((400, 1), "float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=20, verbose=0)
plan("plain", count=3)
model.fit(x, y, batch_size=20, verbose=0)
import tensorflow as tf, tempfile
profiler, folder = tf.profiler.experimental, tempfile.mkdtemp()
profiler.start(folder)
plan("own", count=3)
model.fit(x, y, batch_size=20, verbose=0)
profiler.stop()
assert os.listdir(folder)
def fail(*_, **__): raise RuntimeError("on purpose")
keep, profiler.start = profiler.start, fail
plan("starts", count=3)
model.fit(x, y, batch_size=20, verbose=0)
profiler.start = keep
def fail_later(save): stop(save=save); raise RuntimeError("on purpose")
stop, profiler.stop = profiler.stop, fail_later
plan("stops", count=3)
model.fit(x, y, batch_size=20, verbose=0)
profiler.stop = stop
left = iter((300 << 20, 10 << 20))  # it becomes known only when TensorFlow has written its file
keep, os.statvfs = os.statvfs, lambda _: types.SimpleNamespace(f_bavail=next(left), f_frsize=1)
plan("disk", count=3)
model.fit(x, y, batch_size=20, verbose=0)
os.statvfs = keep
plan("again", count=3)
model.fit(x, y, batch_size=20, verbose=0)
print("done")
"""


@pytest.mark.drawn(1, tests="frameworks")
@pytest.mark.skipif(bool(lacks_framework("tensorflow")), reason=lacks_framework("tensorflow"))
def test_keras_on_tensorflow(tmp_path: Path) -> None:
    probed = Probed(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    probed.environment = {
        "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow", "TMPDIR": str(temporary),
    }  # fmt: skip
    done = probed.run(PLANS + KERAS, python=WITH_FRAMEWORKS)
    assert (done.stdout, done.returncode) == (b"done\n", 0), done.stderr
    (process,) = probed.watched()
    uses = {one.profile: one for one in process.profiled if one.why != "accepted"}
    assert {name: use.why for name, use in uses.items()} == {
        "plain": "", "own": "own", "starts": "error", "stops": "error", "disk": "disk", "again": "",
    }  # fmt: skip
    assert uses["disk"].detail == str(300 << 20)
    assert len(list(probed.spool.glob("trace-*"))) == 2
    assert not list(temporary.glob("teho-*"))
    for name in ("plain", "again"):
        use = uses[name]
        assert use.framework == "tensorflow"
        trace = read_trace(probed.spool / use.file)
        assert trace.step_count == 3 == use.steps[1] - use.steps[0] + 1


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    write_xspace(profile_traces.path_of("lm-stacks"), path, "g1")
    before, after = load(profile_traces.path_of("lm-stacks")), load_xspace(path)

    def rows(loaded, track):
        return sorted(
            (start, end, loaded.names[name])
            for start, end, name in zip(track.starts, track.ends, track.names, strict=True)
        )

    assert [rows(before, work) for work in before.work.values()] == [
        rows(after, work) for work in after.work.values()
    ]
    # The order within a device may differ.
    assert [
        sorted(zip(work.starts, work.correlations, strict=True)) for work in after.work.values()
    ] == [sorted(zip(work.starts, work.correlations, strict=True)) for work in before.work.values()]
    steps = [mark for mark in before.marks if mark.name.startswith("ProfilerStep#")]
    assert [mark[2:] for mark in after.marks] == [mark[2:] for mark in steps]
    assert set(after.calls.places) == set(before.calls.places)
    count = sum(len(track.starts) for track in after.operators.values())
    assert count + len(after.calls.starts) == (
        sum(len(track.starts) for track in (*before.operators.values(), *before.frames.values()))
        + len(before.calls.starts)
        + len(before.marks)
        - len(steps)
    )
    # The same figures as of the trace itself.
    one, other = read_trace(profile_traces.path_of("lm-stacks")), read_trace(path)
    assert other.devices[0].mean.idle_s == one.devices[0].mean.idle_s
    assert other.devices[0].launch_bound == one.devices[0].launch_bound > 0
    assert other.step_s == one.step_s


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    write_xspace(profile_traces.path_of("conv"), path, "g1")
    data = path.read_bytes()
    packed = path.with_name("a.xplane.pb.gz")
    packed.write_bytes(gzip.compress(data)[:-20])
    path.write_bytes(data[:-3])
    for one in (path, packed):
        with pytest.raises(DamagedError, match="is truncated or damaged"):
            load_xspace(one)
