"""Named runs of watched programs, one for each cause of lost time, and one that loses none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from explain.program_parts import (
    NODE,
    TENSORS,
    alone,
    awaiting,
    call,
    collating,
    fed_by,
    fetching,
    idle,
    in_worker,
    loader,
    of_library,
    of_python,
    opening,
    own,
    pipeline,
    process,
    seen,
    watched,
    with_workers,
    worker,
)
from explain.scenario_parts import Given, NodePart, gpu, repeated, untouched_gpu
from teho.model.in_source import (
    CostlyOption,
    InTurn,
    MissingIndex,
    Need,
    ReopenedConnection,
    RepeatedPlan,
    Unneeded,
    Whole,
    WholeUse,
)
from teho.model.run import Run
from teho.model.stack import Frame, State
from teho.model.summary import Summary
from teho.model.watched import Progress, Wait
from teho.units import GIB

Made = tuple[Run, Summary]


def node(
    cores: int = 8,
    used: float = 6.5,
    gpus: Sequence[Mapping[str, Given]] = (),
    rates: Mapping[str, Given] | None = None,
) -> list[NodePart]:
    """Return one node on which nothing else is wrong, and little was read."""
    rates = {"job_read_bytes": 1e6, "job_read_calls_bytes": 1e6} if rates is None else rates
    signals = {"job_runnable_threads": used, "cpu_busy_percent": 100 * used / cores}
    return [
        NodePart(NODE, cores=cores, cores_used=used, gpus=gpus, signals=signals, rates=rates)
    ]  # fmt: skip


def fed_well() -> Made:
    """Two workers keep up; a checkpoint now and then, and some compiling at first."""
    return with_workers(fetching(50.0, in_worker()), idle(50.0), waits_s=2.0, parts=node())


def decodes_in_main_process() -> Made:
    """The program decodes its images between two steps."""
    return alone(fetching(62.0), samples=3200, batch_bytes=9_633_792, parts=node(used=1.0))


def too_few_workers() -> Made:
    """One worker decodes, where three would keep up."""
    stacks = fetching(98.0, in_worker()), idle(2.0)
    return with_workers(*stacks, waits_s=61.0, num_workers=1, parts=node())


def too_many_workers() -> Made:
    """Sixteen workers on four cores."""
    stacks = fetching(60.0, in_worker()), idle(40.0)
    crew = [worker(*stacks, pid=11 + n, wait_for_core_s=45.0) for n in range(16)]
    one = process(awaiting(30.0), loaders=[loader(num_workers=16)])
    return watched(one, *crew, parts=node(4, 3.9))


def bound_to_two_cores() -> Made:
    """The program calls `os.sched_setaffinity`."""
    one = process(fetching(50.0), loaders=[loader()], cores=(0, 1))
    return watched(one, parts=node(used=1.98))


def collated_one_by_one() -> Made:
    """A table of tensors, batches of 1024 rows."""
    facts = {"dataset": TENSORS, "dataset_bytes": GIB, "batch_size": 1024}
    return alone(fetching(30.0), collating(40.0), parts=node(), **facts)


def needless_workers() -> Made:
    """The same with four workers."""
    below = in_worker()
    stacks = fetching(30.0, below), collating(40.0, below)
    facts = {"dataset": TENSORS, "dataset_bytes": GIB, "batch_size": 1024, "num_workers": 4}
    return with_workers(*stacks, waits_s=55.0, parts=node(), **facts)


def restarted_workers() -> Made:
    """Workers that take a second to start, for epochs of two."""
    stacks = fetching(20.0, in_worker()), idle(30.0)
    return with_workers(*stacks, epochs=33, first_s=38.0, parts=node())


def small_files() -> Made:
    """One file a sample on a storage that is slow to open them."""
    read = {"job_read_bytes": 1e3, "job_read_calls_bytes": 3200 * 4096 / 3600}
    return alone(opening(70.0), fetching(9.0), parts=node(rates=read))


def reads_again() -> Made:
    """Data of 500 GiB in a memory of 360 GiB, epoch by epoch."""
    stacks = fetching(90.0, in_worker()), idle(10.0)
    read = {"job_read_bytes": 2000 * GIB / 3600, "job_read_calls_bytes": 2000 * GIB / 3600}
    return with_workers(*stacks, waits_s=70.0, epochs=4, parts=node(rates=read))


def skewed_samples() -> Made:
    """One image in a hundred has fifty times the pixels."""
    waits = {7: (990, 0.1), 20: (10, 28.0)}
    stacks = fetching(50.0, in_worker()), idle(50.0)
    return with_workers(*stacks, waits_s=30.0, batches=1000, waits=waits, parts=node())


def slow_rank() -> Made:
    """Rank 1 of four has all large images."""
    ranks = [
        process(
            fetching(waits_s),
            pid=10 + rank,
            loaders=[loader()],
            torch={"rank": rank, "world_size": 4},
        )
        for rank, waits_s in enumerate((5.0, 55.0, 6.0, 4.0))
    ]
    return watched(*ranks, parts=node())


def slow_input() -> Made:
    """All cores decode, and that is still too slow."""
    stacks = fetching(100.0, in_worker()), idle(1.0)
    return with_workers(*stacks, waits_s=45.0, num_workers=8, parts=node(used=7.9))


def reads_at_first() -> Made:
    """An epoch from the disk, 3 steps a second, and two from memory, 4 steps a second."""
    steps = [
        Progress(steps=1 + 3 * 1190, first_s=105.0, last_s=1295.0),
        Progress(steps=1 + 3 * 1190 + 4 * 2380, first_s=105.0, last_s=3675.0),
    ]
    one = process(fetching(300.0), wall_s=3590.0, loaders=[loader()], progress=steps)
    read = repeated((2e8, 20), (1e6, 40))
    return watched(one, parts=node(rates={"job_read_bytes": read, "job_read_calls_bytes": 1e6}))


def long_steps() -> Made:
    """An evaluation after every forty steps."""
    between = {17: Wait(975, 78.0), 19: Wait(24, 12.0)}
    steps = Progress(steps=1000, first_s=105.0, last_s=195.0, between=between)
    return watched(process(progress=[steps]), parts=node())


def pageable_copies() -> Made:
    """Batches are copied to a GPU that waits for them."""
    one = process(seen((own("x.to(device)", 31),), 35.0), loaders=[loader()])
    return watched(one, parts=node(gpus=[gpu(60.0, gpu_sm_active_percent=90.0)]))


def decodes_what_the_gpu_could_hold() -> Made:
    """Small images of 586 MiB in all, decoded again for each epoch on a GPU with room for them."""
    images = {"samples": 50_000, "batch_bytes": 32 * 3 * 32 * 32 * 4, "pin_memory": True}
    torch = {"cuda": "12.8", "devices": ["cuda:0"]}
    one = process(fetching(30.0), loaders=[loader(**images)], torch=torch)
    return watched(one, parts=node(gpus=[gpu(60.0, gpu_sm_active_percent=90.0)]))


def small_batches() -> Made:
    """Batches of 32 that fill a fifth of a GPU's memory."""
    torch = {"cuda": "12.8", "devices": ["cuda:0"]}
    one = process(loaders=[loader(samples=50_000)], torch=torch)
    room = {"gpu_sm_active_percent": 60.0, "gpu_memory_used_bytes": 6.0 * GIB}
    return watched(one, parts=node(gpus=[gpu(92.0, **room)]))


def asks_the_gpu() -> Made:
    """`loss.item()` after each layer."""
    one = process(seen((own("loss.item()", 32),), 55.0, State.WAITING))
    return watched(one, parts=node(gpus=[gpu(60.0, gpu_sm_active_percent=90.0)]))


def starts_kernels_one_by_one() -> Made:
    """A thousand operations on small tensors in each step."""
    stacks = (
        seen((own("x * 1.0001"), of_library("torch/nn/modules/module.py", "_call_impl")), 60.0,
             State.PYTHON),
        seen((of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()")), 30.0,
             State.THREADS),
    )  # fmt: skip
    facts = {"devices": ["cuda:0"], "parameter_bytes": GIB}
    return watched(process(*stacks, torch=facts), parts=node(used=1.0, gpus=[gpu(14.0)]))


def augments_one_by_one() -> Made:
    """A loop over the images of each batch, on a GPU that is mostly idle."""
    line = own("torch.roll(image, shift)", 51, "vary")
    at = own("for image, shift in zip(images, shifts)", 50, "vary")
    words = {"batch": "images", "advice": "Compute `images` with one call.", "last": "54"}
    option = CostlyOption(name="loop_over_samples", at=at, lines=(line,), words=words)
    facts = {"devices": ["cuda:0"], "parameter_bytes": GIB}
    one = process(seen((line,), 60.0, State.PYTHON), torch=facts, costly_options=(option,))
    return watched(one, parts=node(used=1.0, gpus=[gpu(14.0)]))


def tiny_steps() -> Made:
    """Gradient descent on a hundred numbers, ten thousand times."""
    steps = Progress(steps=10_000, first_s=101.0, last_s=108.0)
    facts = {"parameter_bytes": 400, "devices": ["cuda:0"]}
    one = process(progress=[steps], torch=facts)
    return watched(one, parts=node(gpus=[gpu(30.0, gpu_sm_active_percent=1.0)]))


def cpu_build() -> Made:
    """A PyTorch from a default index, on a GPU node."""
    one = process(torch={"cuda": None, "hip": None, "devices": ["cpu"]})
    return watched(one, parts=node(gpus=[untouched_gpu()]))


def saves_often() -> Made:
    """A checkpoint at every step."""
    save = of_library("torch/serialization.py", "save")
    return watched(process(seen((save, own("torch.save(net, f)")), 40.0)), parts=node())


def maps_one_by_one() -> Made:
    """A pipeline of tf.data decodes its images one at a time."""
    return fed_by(pipeline({"MapAndBatch": 9.0, "TensorSlice": 0.1}), parts=node(used=1.0))


def reads_one_by_one() -> Made:
    """A pipeline of tf.data reads its many files one at a time."""
    calls = [call("interleave", 7), call("batch", 9), call("prefetch", 10)]
    stages = {"Prefetch": 0.1, "Interleave": 0.2, "BatchV2": 0.1}
    return fed_by(pipeline(stages, calls), parts=node(used=1.0))


def loads_when_asked() -> Made:
    """A pipeline of tf.data has no stage that works ahead."""
    stages = {"BatchV2": 0.1, "FlatMap": 0.2, "Generator": 1.5}
    return fed_by(pipeline(stages, [call("batch", 9)]), parts=node(used=1.0))


def maps_again() -> Made:
    """A pipeline of tf.data decodes the same images in each epoch, on all cores."""
    calls = [call("map", 8, is_random=False, num_parallel_calls="autotune"), call("batch", 9)]
    return fed_by(pipeline({"MapAndBatch": 9.0}, calls), parts=node())


def pipeline_ahead() -> Made:
    """A pipeline of tf.data that has all that it needs."""
    return fed_by(pipeline({"MapAndBatch": 9.0}), waits_s=5.0, parts=node())


def imports_for_long() -> Made:
    """Forty programs of some seconds would be one of a minute."""
    find = Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, "")
    return watched(process(seen((find, own("import torch", 1)), 60.0)), parts=node())


def loops_in_python() -> Made:
    """Arithmetic on single numbers."""
    one = process(seen((own("total += x * y", 33),), 92.0, State.PYTHON))
    return watched(one, parts=node())


def doubles() -> Made:
    """Parameters made from NumPy's arrays."""
    return watched(process(torch={"parameter_dtypes": {"float64": 10**6}}), parts=node())


def exchanges_each_time() -> Made:
    """Two ranks add up the gradients of four small batches, and exchange each of the four."""
    below = (of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()", 25))
    ranks = [
        process(
            seen(below, 60.0),
            pid=10 + rank,
            torch={"rank": rank, "world_size": 2, "ddp": True, "exchanges_per_step": 4.0},
        )
        for rank in range(2)
    ]
    return watched(*ranks, parts=node())


def trains_only_the_head() -> Made:
    """The encoder's parameters have gradients, but no optimizer changes them."""
    below = (of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()", 79))
    facts = {"unused_gradients": {"unused": 900_000, "used": 100_000}}
    return watched(process(seen(below, 50.0), torch=facts), parts=node())


def makes_gradients_of_all_rows() -> Made:
    """A table of a million rows, of which a batch uses a few thousand."""
    back = (of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()", 60))
    step = (of_library("torch/optim/sgd.py", "SGD.step"), own("optimizer.step()", 61))
    facts = {
        "optimizer": "SGD",
        "parameter_bytes": 100 * 10**6,
        "table_gradient": {"rows": 10**6, "bytes": 96 * 10**6, "used_percent": 0.5},
    }
    return watched(process(seen(back, 40.0), seen(step, 20.0), torch=facts), parts=node())


def multiplies_integers() -> Made:
    """NumPy has no fast product of integers."""
    product = seen((own("genotypes @ genotypes.T", 30),), 73.0)
    one = msgspec.structs.replace(
        process(product, progress=()), libraries={"numpy": {"blas_threads": 2}}
    )
    return watched(one, parts=node(used=1.02))


def asks_for_no_probabilities() -> Made:
    """Support vector machines estimate probabilities that the program does not use."""
    fit = (
        of_library("sklearn/svm/_base.py", "BaseLibSVM._dense_fit"),
        own("model(c).fit(x, y)", 41),
    )
    option = CostlyOption(name="svm_probability", at=own("probability=True", 31))
    return watched(process(seen(fit, 76.0), progress=(), costly_options=(option,)), parts=node())


def decomposes_one_by_one() -> Made:
    """The GPU decomposes many small matrices with few threads, while the program waits."""
    call = CostlyOption(
        name="qr_one_by_one_torch",
        at=own("torch.linalg.qr(v)", 45),
        words={"lib": "torch", "matrix": "v"},
    )
    waits = seen((own("total.cpu()", 50),), 90.0)
    few = gpu(45.0, gpu_sm_active_percent=0.8)
    return watched(process(waits, progress=(), costly_options=(call,)), parts=node(gpus=[few]))


def reads_a_lazy_table_again() -> Made:
    """A loop collects the rows of each buoy, and Polars reads the CSV file each time."""
    call = own('records.filter(pl.col("buoy") == buoy).collect()', 44)
    plan = RepeatedPlan(
        calls=(call,), loop=own("for buoy in range(BUOYS)", 43), last=46, periods=5,
        library="polars", text="records", made=own("records = pl.scan_csv(path)", 41),
        kept=own("records = pl.scan_csv(path)", 41), reads_text=True,
    )  # fmt: skip
    collect = of_library("polars/lazyframe/frame.py", "LazyFrame.collect")
    one = process(seen((collect, call), 79.0), progress=(), repeated_plans=(plan,))
    return watched(one, parts=node())


def makes_a_pool_for_each_step() -> Made:
    """Ten pools of two spawned workers, each of which imports for 2 s and works for 5 s."""
    boot = of_python("multiprocessing/spawn.py", "_main")
    loop = of_python("multiprocessing/pool.py", "worker")
    work = seen((own("relax(field)", 30, "solve"), loop, boot), 5.0, State.NATIVE)
    imports = seen((Frame("<frozen importlib._bootstrap>", "_find_and_load", 0, ""), boot), 2.0)
    crew = [
        process(
            imports, work, wall_s=8.0, pid=50 + n, parent_pid=10, began_s=101.0 + 9 * (n // 2),
            progress=(),
        )
        for n in range(20)
    ]  # fmt: skip
    wait = of_python("multiprocessing/pool.py", "ApplyResult.wait")
    begin = of_python("multiprocessing/pool.py", "Pool._repopulate_pool")
    main = process(
        seen((wait, own("pool.map(solve, jobs)", 47, "load_step")), 99.0, State.LOCK),
        seen((begin, own('mp.get_context("spawn").Pool(2)', 46, "load_step")), 1.0, State.NATIVE),
        progress=(),
    )  # fmt: skip
    return watched(main, *crew, parts=node())


def queries_without_index() -> Made:
    """A loop looks for the rows of each barcode in a table without an index."""
    query = own('db.execute("SELECT name FROM determinations WHERE barcode = ?", (barcode,))', 60)
    missing = MissingIndex(
        frame=query, loop=own("for barcode in loans", 55), table="determinations",
        columns=("barcode",), made=own("", 23),
    )  # fmt: skip
    one = process(seen((query,), 60.0), progress=(), missing_indexes=(missing,))
    return watched(one, parts=node())


def diagnoses_each_step() -> Made:
    """A simulation computes in each step what it prints in each 100th step."""
    call = own("order(v)", 70)
    unneeded = Unneeded(
        calls=(call,), need=Need.SELDOM, moved=(70,), at=(own("step % 100 == 0", 71),),
        loop=own("for step in range(1, STEPS)", 68), last=75, periods=12, share=0.01, can_move=True,
    )  # fmt: skip
    return watched(process(seen((call,), 50.0), progress=(), unneeded=(unneeded,)), parts=node())


def converts_whole_scenes() -> Made:
    """A program takes the logarithm of a whole scene for each tile."""
    call, loop = own("np.log10(pixels)", 46), own("def tile(scene, top)", 44)
    unneeded = Unneeded(
        calls=(call,), need=Need.PART, at=(own("scaled[top : top + 64]", 48),), loop=loop, last=49,
    )  # fmt: skip
    return watched(process(seen((call,), 50.0), progress=(), unneeded=(unneeded,)), parts=node())


def searches_a_list() -> Made:
    """Each step asks eight times whether a cell is in a long list."""
    call, loop = own("cell in self.route", 33, "options"), own("for cell in cells", 31, "options")
    whole = Whole(
        calls=(call,), loop=loop, last=34, use=WholeUse.SEARCHED, name="self.route", how="in",
        key="cell", made=(own("self.route = [cell]", 20, "__init__"),),
        grows=(own("self.route.append(cell)", 48, "move"),),
    )  # fmt: skip
    beside = seen((own("row + 1", 32, "options"),), 5.0, State.PYTHON)
    searches = seen((call,), 55.0, State.PYTHON)
    return watched(process(searches, beside, progress=(), wholes=(whole,)), parts=node())


def sorts_for_few() -> Made:
    """An evaluation sorts 20,000 objects for each visitor, to get the best 200."""
    text = "sorted(range(N), key=score.get)"
    call, cut = own(text, 43, "recall"), own(f"{text}[:200]", 43, "recall")
    whole = Whole(
        calls=(call,), loop=own("for v in visitors", 41, "recall"), last=44, use=WholeUse.SORTED,
        name="range(N)", how="sorted", key=cut.text, made=(cut,), count=200, size=20000,
        instead=("heapq.nsmallest(200, range(N), key=score.get)",),
    )  # fmt: skip
    return watched(process(seen((call,), 45.0), progress=(), wholes=(whole,)), parts=node())


def saves_all_again() -> Made:
    """A sampling writes its whole chain again after each 100 steps."""
    call, loop = own("json.dump(chain, out)", 61, "sample"), own("for step in steps", 46, "sample")
    whole = Whole(
        calls=(call,), loop=loop, last=61, periods=9, use=WholeUse.SAVED, name="chain",
        how="json.dump", key="rows", made=(own("chain = []", 44, "sample"),),
        grows=(own("chain.append(row)", 58, "sample"),),
    )  # fmt: skip
    return watched(process(seen((call,), 45.0), progress=(), wholes=(whole,)), parts=node())


def in_task(*frames: Frame, is_only: bool = True) -> tuple[Frame, ...]:
    """Return the stack of an event loop that waits for the coroutines of a task."""
    return (
        of_python("selectors.py", "EpollSelector.select"),
        *frames,
        Frame("<task>", "only" if is_only else "one of several", 0, ""),
        of_python("asyncio/base_events.py", "BaseEventLoop._run_once"),
        of_python("asyncio/runners.py", "run"),
    )


def logs_in_for_each_measurement() -> Made:
    """Each measurement opens a connection to the instrument, and waits until it has logged in."""
    call, loop = own("await connect(port)", 49, "intensity"), own("for k in peaks", 75, "run")
    reopened = ReopenedConnection(
        calls=(call,), loop=loop, last=79, periods=5,
        opened=own("asyncio.open_connection(HOST, port)", 40, "connect"),
    )  # fmt: skip
    read = of_python("asyncio/streams.py", "StreamReader.readline")
    line = own("await reader.readline()", 43, "connect")
    log_in = seen(in_task(read, line, call), 60.0, State.PROCESS)
    measure = seen(in_task(read, own("await reader.readline()", 52, "run")), 25.0, State.PROCESS)
    return watched(process(log_in, measure, progress=(), reopened=(reopened,)), parts=node())


def fetches_in_turn() -> Made:
    """A coroutine fetches an image, computes with it, and only then asks for the next one."""
    call, loop = own("await fetch(port, scan)", 62, "collect"), own("for scan in scans", 61)
    turn = InTurn(
        calls=(call,), loop=msgspec.structs.replace(loop, function="collect"), last=63, periods=5,
        call_text="fetch(port, scan)",
    )  # fmt: skip
    read = of_python("asyncio/streams.py", "StreamReader.read")
    line = own("await reader.read(-1)", 48, "fetch")
    waits = seen(in_task(read, line, call), 50.0, State.PROCESS)
    computes = seen((own("integrate(frame)", 63, "collect"),), 30.0)
    return watched(process(waits, computes, progress=(), in_turn=(turn,)), parts=node())


def looks_seldom_for_a_result() -> Made:
    """A program looks once a second whether its child process has written a file."""
    pause, wait = own("time.sleep(1.0)", 63, "run_case"), own("time.sleep(0.01)", 54, "runner")
    bottom = of_python("multiprocessing/process.py", "BaseProcess._bootstrap")
    words = {"pause": "1", "check": "os.path.exists(path)", "checked_at": "train.py:62"}
    main = process(
        seen((pause,), 98.0, State.SLEEPING),
        progress=(),
        costly_options=(
            CostlyOption(name="checked_seldom", at=pause, lines=(pause,), words=words),
        ),
    )
    child = process(
        seen((wait, bottom), 82.0, State.SLEEPING),
        seen((own("glide_ratio(alpha)", 52, "runner"), bottom), 16.0),
        progress=(), pid=main.pid + 1, parent_pid=main.pid,
        costly_options=(CostlyOption(name="tasks_awaited", at=wait, lines=(wait,)),),
    )  # fmt: skip
    return watched(main, child, parts=node(used=0.2))


def sends_each_action() -> Made:
    """Eight child processes, each of which simulates a step of some microseconds for a message."""
    connection = "multiprocessing/connection.py"
    forked = of_python("multiprocessing/process.py", "BaseProcess._bootstrap")
    asked = (of_python(connection, "Connection._recv"), own("pipe.recv()", 41, "serve"), forked)
    sent = (of_python(connection, "Connection._send"), own("pipe.send(action)", 57))
    children = [
        worker(
            seen((own("river.step(a)", 41, "serve"), forked), 0.3, State.PYTHON),
            seen(asked, 99.0, State.PROCESS), pid=50 + n,
        )
        for n in range(8)
    ]  # fmt: skip
    rates = {
        "job_read_bytes": 1e6, "job_read_calls_bytes": 1e4, "job_write_calls_bytes": 1e4,
        "context_switches": 40_000.0,
    }  # fmt: skip
    return watched(process(seen(sent, 60.0, State.PYTHON)), *children, parts=node(rates=rates))


def pads_to_the_longest_of_all() -> Made:
    """Texts of some 25 tokens in batches of 256."""
    padded = msgspec.structs.replace(
        loader(num_workers=2), batch={"samples": 32, "padding_percent": 90.0}
    )
    return watched(process(wall_s=100.0, loaders=[padded]), parts=node())


def pads_series() -> Made:
    """Series of some 400 days in batches of 1500 days, whose longest series has about 700."""
    batch = {
        "samples": 48, "series_after_longest_percent": 52.0, "series_padding_percent": 75.0,
    }  # fmt: skip
    padded = loader(num_workers=2, collate="collate")
    padded = msgspec.structs.replace(padded, batch=batch)
    return watched(process(wall_s=100.0, loaders=[padded]), parts=node())


def stuck_in_a_lock() -> Made:
    """A run that goes on, but whose program has waited for a lock for ten minutes."""
    locked = seen((own("with self.lock:", 52),), 60.0, State.LOCK)
    steps = Progress(steps=30_000, first_s=105.0, last_s=3100.0, between={17: Wait(29_999, 2990.0)})
    part = NodePart(
        NODE, cores=8, cores_used=repeated((6.5, 50), (0.0, 10)),
        signals={"job_runnable_threads": 6.5},
    )  # fmt: skip
    run, summary = watched(
        process(wall_s=3600.0, began_s=100.0, progress=[steps], at_end=(locked,)), parts=[part]
    )
    return msgspec.structs.replace(run, end=None), summary


def unknown_storage() -> Made:
    """Files are opened whose size nobody noted, and storage was not looked at."""
    return watched(process(opening(30.0), loaders=[loader()]), parts=node(rates={}))


WATCHED: dict[str, Callable[[], Made]] = {
    function.__name__: function
    for function in (
        fed_well,
        decodes_in_main_process,
        too_few_workers,
        too_many_workers,
        bound_to_two_cores,
        collated_one_by_one,
        needless_workers,
        restarted_workers,
        small_files,
        reads_again,
        skewed_samples,
        slow_rank,
        slow_input,
        reads_at_first,
        long_steps,
        pageable_copies,
        decodes_what_the_gpu_could_hold,
        small_batches,
        asks_the_gpu,
        starts_kernels_one_by_one,
        augments_one_by_one,
        tiny_steps,
        cpu_build,
        maps_one_by_one,
        reads_one_by_one,
        loads_when_asked,
        maps_again,
        pipeline_ahead,
        saves_often,
        imports_for_long,
        loops_in_python,
        doubles,
        exchanges_each_time,
        trains_only_the_head,
        makes_gradients_of_all_rows,
        multiplies_integers,
        asks_for_no_probabilities,
        decomposes_one_by_one,
        diagnoses_each_step,
        converts_whole_scenes,
        reads_a_lazy_table_again,
        makes_a_pool_for_each_step,
        queries_without_index,
        logs_in_for_each_measurement,
        fetches_in_turn,
        looks_seldom_for_a_result,
        sends_each_action,
        searches_a_list,
        sorts_for_few,
        saves_all_again,
        pads_to_the_longest_of_all,
        pads_series,
        stuck_in_a_lock,
        unknown_storage,
    )
}
