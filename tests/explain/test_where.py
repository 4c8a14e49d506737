from __future__ import annotations

import pytest

from teho.explain.where import doing_of, main_process, spent_by
from teho.model.program import Doing
from teho.model.stack import Frame, Seen, State
from teho.model.watched import WatchedProcess

SITE = "/opt/env/lib/python3.11/site-packages"
MAIN = Frame("/home/ann/train.py", "<module>", 40, "main()")


def seen(*frames: Frame, wall_s: float = 1.0, state: State = State.NATIVE) -> Seen:
    return Seen(frames=(*frames, MAIN), state=state, samples=20, wall_s=wall_s)


def library(file: str, text: str = "", function: str = "f") -> Frame:
    return Frame(f"{SITE}/{file}", function, 7, text)


def own(text: str, line: int = 12) -> Frame:
    return Frame("/home/ann/train.py", "step", line, text)


# As Python 3.11 names them; before it, without their class.
CUPY_ASARRAY = library(
    "cupy/_creation/from_data.py", "_core.array(a, dtype, False, order)", "asarray"
)
CUPY_ASNUMPY = library("cupy/__init__.py", "a.get(stream=stream, order=order)", "asnumpy")
JAX_VALUE = library(
    "jax/_src/array.py", "self._single_device_array_to_np_array_did_copy()", "ArrayImpl._value"
)
PXLA = "jax/_src/interpreters/pxla.py"
JAX_PUT = [
    library(PXLA, "xc.batched_device_put(aval, sharding, xs, list(devices))", "batched_device_put"),
    library(PXLA, function="_shard_np_array"),
    library(PXLA, function="shard_args"),
]
JAX_CALL = [
    library(PXLA, "self.xla_executable.execute_sharded(input_bufs)", "ExecuteReplicated.__call__"),
    library("jax/_src/profiler.py", function="annotate_function.<locals>.wrapper"),
    library("jax/_src/pjit.py", function="_pjit_call_impl_python"),
]
CACHE = "/tmp/torchinductor_ann/dh/cdh4tajnsp2qw2cidmrfirhdnmdqqxlxi5zdba7gqfma7xzc6rdi.py"
COMPILED = [  # as PyTorch 2.13 runs what it has compiled
    Frame(CACHE, "Runner.call", 152, "extern_kernels.addmm(primals_11, buf7)"),
    library("torch/_inductor/output_code.py", function="CompiledFxGraph.__call__"),
    library("torch/_functorch/_aot_autograd/runtime_wrappers.py", function="runtime_wrapper"),
    library("torch/_functorch/aot_autograd.py", function="aot_module_simplified.<locals>.forward"),
    library("torch/_dynamo/eval_frame.py", function="DisableContext.__call__.<locals>._fn"),
    library("torch/_dynamo/eval_frame.py", function="_TorchDynamoContext.__call__.<locals>._fn"),
]
COMPILES = [
    library("torch/_dynamo/convert_frame.py", function="ConvertFrame.__call__"),
    own("c(x)"),
]
SMALL_STEP = [
    library("torch/optim/optimizer.py", function="Optimizer.zero_grad"),
    library("torch/_dynamo/eval_frame.py", function="DisableContext.__call__.<locals>._fn"),
    library("torch/_compile.py", function="_disable_dynamo.<locals>.inner"),
]
JAX_LOWER = [library(PXLA, function="lower_sharding_computation"), *JAX_CALL[2:]]


@pytest.mark.parametrize(
    ("stack", "doing"),
    [
        (seen(library("torch/utils/data/dataloader.py"), state=State.LOCK), Doing.LOADING),
        # Without workers the data set is the program's own, called by the loader.
        (seen(own("time.sleep(1)"), library("torch/utils/data/_utils/fetch.py")), Doing.LOADING),
        (seen(own("loss.item()"), state=State.LOCK), Doing.DEVICE),
        (seen(own("torch.cuda.synchronize()")), Doing.DEVICE),
        (seen(own("x.to(device)")), Doing.COPYING),
        (seen(CUPY_ASARRAY, own("cupy.asarray(x)")), Doing.COPYING),
        (seen(CUPY_ASNUMPY, own("cupy.asnumpy(y)"), state=State.LOCK), Doing.DEVICE),
        (seen(JAX_VALUE, own("float(loss)"), state=State.LOCK), Doing.DEVICE),
        (seen(*JAX_PUT, own("jax.device_put(x)")), Doing.COPYING),
        (seen(*JAX_CALL, own("update(net, x)")), Doing.NATIVE),
        (seen(library("jax/_src/compiler.py"), *JAX_LOWER, own("update(net, x)")), Doing.COMPILING),
        (seen(*JAX_LOWER, own("update(net, x)")), Doing.COMPILING),
        (seen(library("torch/distributed/distributed_c10d.py")), Doing.COMMUNICATING),
        (seen(*COMPILED, own("c(x)")), Doing.NATIVE),
        (seen(*COMPILED, own("c(x)"), state=State.PYTHON), Doing.PYTHON),
        (
            seen(library("torch/_inductor/codecache.py", function="write"), *COMPILES),
            Doing.COMPILING,
        ),
        (seen(library("torch/_inductor/compile_fx.py", function="compile_fx")), Doing.COMPILING),
        (
            seen(library("torch/_inductor/codecache.py", function="CompiledFxGraph.__call__")),
            Doing.NATIVE,
        ),
        (
            seen(library("torch/_functorch/vmap.py", function="vmap_impl"), own("f(x)")),
            Doing.NATIVE,
        ),
        (seen(*SMALL_STEP, own("optimizer.zero_grad()")), Doing.NATIVE),
        (
            seen(library("triton/runtime/jit.py", function="JITFunction.run"), own("add(x)")),
            Doing.NATIVE,
        ),
        (
            seen(library("triton/compiler/compiler.py", function="compile"), own("add(x)")),
            Doing.COMPILING,
        ),
        (seen(own("torch.save(net.state_dict(), path)")), Doing.SAVING),
        (seen(library("torch/serialization.py", function="save")), Doing.SAVING),
        (seen(library("torch/serialization.py", function="load")), Doing.NATIVE),
        # It wraps all that the program does.
        (
            seen(library("torch/distributed/elastic/multiprocessing/errors/__init__.py")),
            Doing.NATIVE,
        ),
        (
            seen(Frame("<frozen importlib._bootstrap>", "g", 1, ""), own("import x")),
            Doing.IMPORTING,
        ),
        (seen(own("total += x"), state=State.PYTHON), Doing.PYTHON),
        (seen(own("a @ b")), Doing.NATIVE),
        (seen(own("loss.backward()"), state=State.THREADS), Doing.THREADS),
        (seen(own("socket.recv(1)"), state=State.NETWORK), Doing.NETWORK),
        (seen(own("pipe.recv()"), state=State.PROCESS), Doing.PROCESS),
        (seen(own("lock.acquire()"), state=State.LOCK), Doing.LOCK),
        (seen(own("os.fsync(log)"), state=State.DISK), Doing.DISK),
        (seen(own("time.sleep(1)"), state=State.SLEEPING), Doing.SLEEPING),
        (
            seen(library("joblib/parallel.py", function="_retrieve"), state=State.SLEEPING),
            Doing.PROCESS,
        ),
        (seen(own("graph.launch()"), state=State.DEVICE), Doing.DEVICE),
        (seen(own("input()"), state=State.WAITING), Doing.WAITING),
        (Seen(frames=(), state=State.PYTHON, samples=1, wall_s=1.0), Doing.PYTHON),
    ],
)
def test_what_a_stack_shows(stack: Seen, doing: Doing) -> None:
    assert doing_of(stack) is doing


@pytest.mark.parametrize("frames", [[CUPY_ASARRAY], [CUPY_ASNUMPY], [JAX_VALUE], JAX_PUT])
def test_without_a_device_nothing_is_copied_to_it_or_waited_for(frames: list[Frame]) -> None:
    assert doing_of(seen(*frames, own("y = f(x)")), has_device=False) is Doing.NATIVE


@pytest.mark.parametrize("state", [State.LOCK, State.NETWORK, State.PROCESS])
def test_with_other_ranks_a_waiting_backward_pass_waits_for_them(state: State) -> None:
    stack = seen(
        library("torch/autograd/graph.py", "engine.run()"), own("loss.backward()"), state=state
    )
    assert doing_of(stack, has_ranks=True) is Doing.COMMUNICATING
    assert doing_of(stack) is not Doing.COMMUNICATING
    computes = seen(own("loss.backward()"), state=State.THREADS)
    assert doing_of(computes, has_ranks=True) is Doing.THREADS


def test_what_is_done_for_data_is_loading_whichever_library_does_it() -> None:
    stack = seen(*JAX_PUT, own("self.put(i)"), library("torch/utils/data/_utils/fetch.py"))
    assert doing_of(stack) is Doing.LOADING


def process(*stacks: Seen, pid: int = 1, parent_pid: int = 0) -> WatchedProcess:
    return WatchedProcess(
        node="n1", pid=pid, parent_pid=parent_pid, python="3.11.7", began_s=100.0,
        until_s=100.0 + sum(one.wall_s for one in stacks), stacks=stacks,
    )  # fmt: skip


def test_shares_add_up_to_all_the_time_and_lines_are_the_programs_own() -> None:
    watched = process(
        seen(own("x.sum().item()", 30), wall_s=2.0),
        seen(own("loss.item()", 31), wall_s=5.0),
        seen(own("loss.item()", 31), library("x.py"), wall_s=1.0),
        seen(library("torch/utils/data/dataloader.py"), wall_s=4.0),
    )
    spent = spent_by(watched)
    assert [(one.doing, one.wall_s) for one in spent] == [(Doing.DEVICE, 8.0), (Doing.LOADING, 4.0)]
    assert sum(one.wall_s for one in spent) == watched.wall_s
    assert [(frame.line, wall_s) for frame, wall_s in spent[0].lines] == [(31, 6.0), (30, 2.0)]
    assert spent[1].lines == ((MAIN, 4.0),)


def test_a_file_that_tensorflow_made_is_not_the_programs() -> None:
    file = "/tmp/__autograph_generated_file5f82z3tf.py"
    made = Frame(file, "tf__step", 18, "ag__.converted_call(step, batch)")
    (spent,) = spent_by(process(seen(made, own("step(batch)"))))
    assert spent.lines == ((own("step(batch)"), 1.0),)


def test_the_working_process_is_the_main_process() -> None:
    launcher = process(seen(own("time.sleep(1)"), wall_s=60.0, state=State.SLEEPING), pid=1)
    trainer = process(seen(own("a @ b"), wall_s=50.0, state=State.THREADS), pid=2)
    assert main_process([launcher, trainer]) is trainer
    assert main_process([]) is None


@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("multiprocessing/managers.py", "BaseManager._run_server"),
        ("multiprocessing/pool.py", "worker"),
        ("socketserver.py", "BaseServer.serve_forever"),
    ],
)
def test_a_process_that_serves_its_parent_is_not_the_program(file: str, function: str) -> None:
    parent = process(seen(own("pool.map(f, x)"), wall_s=60.0, state=State.LOCK), pid=1)
    serving = seen(own("a + b"), library(file, function=function), wall_s=60.0, state=State.PYTHON)
    assert main_process([parent, process(serving, pid=2, parent_pid=1)]) is parent
