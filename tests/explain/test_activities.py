"""Activities recognised by stack, and the rule that reports them."""

from __future__ import annotations

import re

import msgspec
import pytest

from explain.activity_stacks import STACKS
from explain.program_parts import (
    NODE,
    awaiting,
    fetch,
    fetching,
    in_worker,
    loader,
    of_library,
    of_python,
    own,
    process,
    seen,
    watched,
    worker,
)
from explain.scenario_parts import NodePart, found, judged
from teho.explain.activities import activities, activity_of, activity_times
from teho.explain.program import program_of
from teho.explain.rules.cpu import debug_mode, known_activity
from teho.model.finding import Certainty, Severity
from teho.model.stack import State


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("i in done", "lists_searched"),  # from Python 3.11 on, only the part that runs
        ("(row, column) not in self.seen", "lists_searched"),
        ("x in range(n)", None),
        ("for x in rows", None),
    ],
)
def test_a_part_of_a_line(text, name):
    activity = activity_of(seen((own(text),), 1.0))
    assert (activity.name if activity else None) == name


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_has_its_activity(name):
    activity = activity_of(seen(STACKS[name], 1.0))
    assert activity is not None
    assert activity.name == name


NOT = {
    # The generator of the bar is below each wait for data.
    "progress_shown": (
        of_library("torch/utils/data/_utils/collate.py", "default_collate"),
        of_library("tqdm/std.py", "tqdm.__iter__"),
        own("for x in tqdm(loader):"),
    ),
    # The wrapper calls `map`.
    "datasets_hashed": (
        of_library("datasets/arrow_writer.py", "ArrowWriter.write"),
        of_library("datasets/fingerprint.py", "fingerprint_transform.<locals>._f.<locals>.wrapper"),
        own("data.map(tokenize)"),
    ),
    # One long call of `fit` takes its batches here.
    "keras_calls": (
        of_library("keras/src/trainers/epoch_iterator.py", "EpochIterator.__next__"),
        of_library("keras/src/backend/jax/trainer.py", "JAXTrainer.fit"),
        own("model.fit(x, y)"),
    ),
    # The compiled code runs.
    "nnx_graphs": (
        of_library("flax/nnx/graphlib.py", "UpdateContextManager.update_context_manager_wrapper"),
        own("train_step(model)"),
    ),
    "torch_compiled_again": (
        of_library("torch/_inductor/output_code.py", "CompiledFxGraph.__call__"),
        of_library("torch/_inductor/compile_fx.py", "fw_compiler_freezing.<locals>.wrapper"),
        own("model(x)"),
    ),
    "tensorflow_one_by_one": (
        of_library("tensorflow/python/eager/execute.py", "quick_execute"),
        own("step(x)"),
    ),
    # Wrappers also call the environment.
    "episodes_rendered": (
        of_library("gymnasium/envs/classic_control/cartpole.py", "CartPoleEnv.step"),
        of_library("gymnasium/wrappers/rendering.py", "RecordVideo.step"),
        own("env.step(action)"),
    ),
    "features_joined": (own("torch.cat([all, new])"),),
    # On a GPU, one such call in each step waits for the loss.
    "elements_read": (own("losses[-1].item()"),),
    # A batch of a map has its columns as lists.
    "datasets_columns": (
        of_library("datasets/formatting/formatting.py", "PythonFormatter.format_column"),
        of_library("datasets/formatting/formatting.py", "LazyBatch.format"),
        own("tokenize(batch['text'])"),
    ),
    # A slice reads the whole column at once.
    "datasets_single_values": (
        of_library("datasets/formatting/formatting.py", "PythonArrowExtractor.extract_batch"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        of_library("datasets/arrow_dataset.py", "Column.__getitem__"),
        own("data['text'][:]"),
    ),
    # Each optimizer names its steps for the profiler.
    "tracing_tools": (
        of_library("torch/autograd/profiler.py", "record_function.__enter__"),
        of_library("torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper"),
        own("optimizer.step()"),
    ),
    # Printing the loss waits for the GPU here.
    "arrays_printed": (of_library("torch/_tensor_str.py", "_str_intern"), own("print(loss)")),
    "weights_updated": (of_library("torch/optim/adam.py", "_fused_adam"), own("opt.step()")),
    "video_decoded": (own("captions.read()"),),
    # The line already uses the function that the advice recommends.
    "matrices_decomposed": (
        of_library("numpy/linalg/_linalg.py", "eigh"),
        own("np.linalg.eigh(h)"),
    ),
    # Inside `jit`, the operation is traced, and the compiled code does not copy.
    "jax_array_copied": (
        of_library("jax/_src/core.py", "Primitive.bind"),
        of_library("jax/_src/ops/scatter.py", "_scatter_update"),
        of_library("jax/_src/numpy/array_methods.py", "_IndexUpdateRef.set"),
        own("film.at[frame].set(u)"),
        of_library("jax/_src/pjit.py", "_infer_params"),
        own("step(film, u)"),
    ),
    # The forward pass itself.
    "activations_recomputed": (
        own("self.norm(x + self.attend(x))", 31, "Block.forward"),
        of_library("torch/utils/checkpoint.py", "_checkpoint_without_reentrant_generator"),
        of_library("torch/utils/checkpoint.py", "checkpoint"),
        own("model(batch)", 68),
    ),
    # No event loop: the program itself waits for the server.
    "coroutine_blocked": (
        of_python("socket.py", "SocketIO.readinto"),
        of_python("urllib/request.py", "OpenerDirector.open"),
        own("opener.open(url)", 53, "download"),
    ),
    # A metric reads the labels.
    "boosting_data_made": (
        of_library("lightgbm/basic.py", "Dataset.get_label"),
        own("data.get_label()", 21, "reciprocal_rank"),
    ),
    # The results are kept already.
    "pipeline_refitted": tuple(
        of_library(
            "joblib/memory.py",
            frame.function.replace("NotMemorizedFunc.__call__", "MemorizedFunc.call"),
        )
        if frame.file.endswith("joblib/memory.py")
        else frame
        for frame in STACKS["pipeline_refitted"]
    ),
}


@pytest.mark.parametrize("name", NOT)
def test_a_stack_that_only_resembles_an_activity(name):
    activity = activity_of(seen(NOT[name], 1.0))
    assert activity is None or activity.name != name


@pytest.mark.parametrize("name", ["futures_counted_again", "asked_repeatedly", "items_queued"])
def test_waiting_for_threads_that_compute_is_no_overhead_of_python(name):
    activity = activity_of(seen(STACKS[name], 1.0, State.THREADS))
    assert activity is None or activity.name != name


@pytest.mark.parametrize(
    "text",
    [
        "loss.backward()",
        "model(x)",
        "x = a @ b",
        "total += value",
        "loss[labels == -100]",
        "logits[mask == pad_token]",
        "np.where(a == b, x, y)",
        "model.eval()",
        "self.store.search(vector)",
        "torch.compile(model)",
    ],
)
def test_the_main_work_is_no_activity(text):
    assert activity_of(seen((own(text),), 1.0)) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('db.execute("INSERT INTO t VALUES (?, ?)", row)', "rows_inserted"),
        ("cur.execute(sql, row)", "database"),
        ("cur.execute(sql)", "database"),
        ("db.execute(INSERT, row)", "database"),
        ("db.execute(BALANCE).fetchall()", None),
        ("cur.execute(queries.BY_DAY)", None),
        ('db.executemany("INSERT INTO t VALUES (?, ?)", rows)', None),
        ("self.db.executemany(INSERT, rows)", None),
        ('db.execute("CREATE INDEX i ON t (a, b)")', None),
    ],
)
def test_rows_written_with_one_call_do_not_get_the_advice_for_single_statements(text, name):
    activity = activity_of(seen((own(text),), 1.0))
    assert (activity.name if activity else None) == name


def test_many_rows_written_with_sqlalchemy_are_not_single_statements():
    below = (of_library("sqlalchemy/engine/base.py", "Connection.execute"), own("c.execute(q, r)"))
    many = of_library("sqlalchemy/engine/default.py", "DefaultDialect.do_executemany")
    one = of_library("sqlalchemy/engine/default.py", "DefaultDialect.do_execute")
    assert activity_of(seen((many, *below), 1.0)) is None
    assert activity_of(seen((one, *below), 1.0)).name == "database"


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (State.NATIVE, "arrays_from_lists"),
        (State.PYTHON, "arrays_from_lists"),
        (State.CORE, "arrays_from_lists"),
        (State.THREADS, None),
        (State.LOCK, None),
    ],
)
def test_waiting_for_an_array_of_jax_converts_no_list(state, name):
    activity = activity_of(seen((own("np.asarray(energy[100:])"),), 1.0, state))
    assert (activity.name if activity else None) == name


@pytest.mark.parametrize("state", [State.NATIVE, State.THREADS])
def test_copies_of_a_jax_array_count_while_its_threads_make_them(state):
    activity = activity_of(seen(STACKS["jax_array_copied"], 1.0, state))
    assert activity.name == "jax_array_copied"


@pytest.mark.parametrize("function", ["eig", "eigvals", "svd"])
def test_other_decompositions_still_count(function):
    frames = (of_library("numpy/linalg/_linalg.py", function), own("decompose(a)"))
    assert activity_of(seen(frames, 1.0)).name == "matrices_decomposed"


def test_an_entry_can_need_a_second_function():
    frames = [frame for frame in STACKS["pipeline_refitted"] if frame.function != "_fit_and_score"]
    assert activity_of(seen(frames, 1.0)).name == "topics_found"
    # A step of the program itself is called by the pipeline.
    own_step = own("np.sort(x)", 50, "fit_transform")
    stack = (own_step, *STACKS["pipeline_refitted"][2:])
    assert activity_of(seen(stack, 1.0)).name == "pipeline_refitted"


@pytest.mark.parametrize("name", ["parquet_read", "parquet_written"])
def test_advice_for_parquet_files_names_row_groups_and_compression(name):
    advice = next(one.advice for one in activities() if one.name == name)
    for word in ("row group", "`write_table`", "`zstd`"):
        assert word in advice


WORK = {
    "groups of pandas in compiled code": (
        of_library("pandas/core/groupby/ops.py", "WrappedCythonOp._call_cython_op"),
        of_library("pandas/core/groupby/groupby.py", "GroupBy.mean"),
        own('df.groupby("a")["b"].mean()'),
    ),
    "a minimum with a given derivative": (
        own("model(p) - y"),
        of_library("scipy/optimize/_differentiable_functions.py", "ScalarFunction.fun_and_grad"),
        of_library("scipy/optimize/_lbfgsb_py.py", "_minimize_lbfgsb"),
        own("minimize(cost, start, jac=True)"),
    ),
    "predictions of a forest for a score": (
        of_library("sklearn/tree/_classes.py", "DecisionTreeClassifier.predict_proba"),
        of_library("sklearn/metrics/_scorer.py", "_Scorer._score"),
        own("scorer(model, x, y)"),
    ),
    "arithmetic of pandas": (
        of_library("pandas/core/computation/expressions.py", "evaluate"),
        of_library("pandas/core/ops/array_ops.py", "arithmetic_op"),
        of_library("pandas/core/arraylike.py", "OpsMixin.__mul__"),
        own('df["a"] * df["b"]'),
    ),
    "sorting a table": (
        of_library("pandas/core/internals/managers.py", "BaseBlockManager.take"),
        of_library("pandas/core/frame.py", "DataFrame.sort_values"),
        own('df.sort_values("a")'),
    ),
    "scaling with scikit-learn": (
        of_library("sklearn/utils/extmath.py", "_incremental_mean_and_var"),
        of_library("sklearn/utils/_param_validation.py", "validate_params.<locals>.wrapper"),
        of_library("sklearn/utils/_set_output.py", "_wrap_method_output.<locals>.wrapped"),
        own("StandardScaler().fit_transform(x)"),
    ),
    "a product with a sparse matrix": (
        of_library("scipy/sparse/_compressed.py", "_cs_matrix._matmul_vector"),
        of_library("scipy/sparse/_base.py", "_spbase.__matmul__"),
        own("a @ x"),
    ),
    "a random sparse matrix": (
        of_library("scipy/sparse/_construct.py", "_random"),
        of_library("scipy/sparse/_construct.py", "random"),
        own("sparse.random(n, n, 0.01)"),
    ),
    "a query of Polars": (
        of_library("polars/lazyframe/frame.py", "LazyFrame.collect"),
        own("query.collect()"),
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_work_of_a_library_is_no_activity(name):
    assert activity_of(seen(WORK[name], 1.0)) is None


def test_dates_count_before_the_table_that_has_them():
    stack = (
        of_library("pandas/core/tools/datetimes.py", "to_datetime"),
        of_library("pandas/io/parsers/base_parser.py", "date_converter"),
        of_library("pandas/io/parsers/readers.py", "read_csv"),
        own("pd.read_csv(path)"),
    )
    assert activity_of(seen(stack, 1.0)).name == "dates_parsed"


def test_a_library_function_below_the_program_counts_only_if_it_may():
    inner = own("slow(x)", 50, "feature")
    below = of_library("pandas/core/apply.py", "Apply.apply_standard")
    assert activity_of(seen((inner, below, own("df.apply(feature)")), 1.0)).name == (
        "function_per_row"
    )
    # The image library that called the program back does not decode.
    back = of_library("PIL/Image.py", "Image.resize")
    assert activity_of(seen((inner, back, own("im.resize(s)")), 1.0)) is None


def test_an_idle_worker_does_not_pass_objects():
    frames = (of_python("multiprocessing/connection.py", "Connection._recv"), own("pool.map(f, x)"))
    assert activity_of(seen(frames, 1.0, State.PROCESS)) is None
    assert activity_of(seen(frames, 1.0, State.NATIVE)).name == "objects_passed"


def test_threads_that_pass_tasks_do_not_wait_for_results():
    frames = (of_python("multiprocessing/pool.py", "IMapIterator.next"), own("pool.imap(f, x)"))
    assert activity_of(seen(frames, 1.0, State.LOCK)) is None
    assert activity_of(seen(frames, 1.0, State.THREADS)).name == "tasks_passed"


def test_a_pool_that_sends_large_arguments():
    frames = (
        of_python("multiprocessing/reduction.py", "ForkingPickler.dumps"),
        of_python("multiprocessing/connection.py", "_ConnectionBase.send"),
        of_python("multiprocessing/pool.py", "Pool._handle_tasks"),
        of_python("threading.py", "Thread.run"),
    )
    assert activity_of(seen(frames, 1.0, State.THREADS)).name == "large_tasks_passed"
    results = (frames[0], of_python("multiprocessing/pool.py", "Pool._handle_results"), frames[3])
    assert activity_of(seen(results, 1.0, State.THREADS)).name == "results_passed"


@pytest.mark.parametrize(
    "below",
    [
        of_library("joblib/externals/loky/process_executor.py", "_sendback_result"),
        of_python("concurrent/futures/process.py", "_sendback_result"),
        of_python("multiprocessing/pool.py", "worker"),
        None,
    ],
)
def test_workers_that_send_large_results(below):
    frames = (
        of_python("multiprocessing/reduction.py", "ForkingPickler.dumps"),
        of_python("multiprocessing/queues.py", "SimpleQueue.put"),
    )
    found = activity_of(seen((*frames, *filter(None, [below])), 1.0))
    assert found.name == ("results_passed" if below else "objects_passed")


def test_jax_without_jit_does_not_wait_for_compiled_code():
    frames = (of_library("jax/_src/numpy/ufunc_api.py", "ufunc.__call__"), own("a * b + c"))
    assert activity_of(seen(frames, 1.0)).name == "jax_one_by_one"
    # The compiled functions that it called before still compute, in other threads.
    assert activity_of(seen(frames, 1.0, State.THREADS)) is None


def test_an_import_of_a_library_is_none_of_its_activities():
    frames = (
        of_library("torchmetrics/__init__.py", "<module>"),
        of_python("<frozen importlib._bootstrap>", "_call_with_frames_removed"),
        own("import torchmetrics"),
    )
    assert activity_of(seen(frames, 1.0)).name == "imported_again"


def test_a_loop_over_a_list_is_no_search():
    assert activity_of(seen((own("for one in names:"),), 1.0)) is None


def test_names_are_unique_and_patterns_are_valid():
    names = [one.name for one in activities()]
    assert len(names) == len(set(names))
    for one in activities():
        assert one.files or one.calls or one.lines
        assert one.advice.endswith(".")
        assert 0 <= one.regain[0] <= one.regain[1] <= 1
        for pattern in (*one.files, *one.calls, *one.lines, *one.also, *one.beside, *one.unless):
            re.compile(pattern)


class TestTimes:
    @staticmethod
    def of(*processes):
        main = program_of(processes).mains[0]
        return {one.activity.name: one for one in activity_times(main)}

    def test_of_the_main_thread(self):
        times = self.of(process(seen(STACKS["checksums"], 30.0)))
        assert times["checksums"].wall_s == 30.0
        assert not times["checksums"].in_others

    def test_waiting_for_workers_is_divided_by_what_they_do(self):
        inner = (
            of_library("PIL/ImageFile.py", "ImageFile.load"),
            own("im.load()", 20, "__getitem__"),
        )
        busy = seen((*inner, *worker_frames()), 45.0)
        other = fetching(15.0, worker_frames())
        times = self.of(
            process(awaiting(40.0), loaders=[loader(num_workers=2)]),
            worker(busy, other, pid=11),
            worker(busy, other, pid=12),
        )
        assert times["images_decoded"].wall_s == pytest.approx(30.0)
        assert times["images_decoded"].in_others

    def test_a_pool_of_threads_passes_no_tasks(self):
        frames = (of_python("multiprocessing/pool.py", "IMapIterator.next"), own("pool.imap(f)"))
        main = process(seen(frames, 60.0, State.THREADS), progress=())
        child = process(pid=11, parent_pid=10, wall_s=60.0, progress=(), began_s=110.0)
        assert "tasks_passed" not in self.of(main)
        assert self.of(main, child)["tasks_passed"].wall_s == 60.0

    def test_workers_of_a_search_on_several_cores_count(self):
        search = of_library("sklearn/model_selection/_search.py", "BaseSearchCV.fit")
        wait = (of_library("joblib/parallel.py", "Parallel._retrieve"), search, own("s.fit(x, y)"))
        main = process(seen(wait, 90.0, State.SLEEPING), progress=())
        loop = of_library("joblib/externals/loky/process_executor.py", "_process_worker")
        counts = seen((STACKS["text_features"][0], loop), 60.0)
        child = process(counts, pid=11, parent_pid=10, progress=(), began_s=101.0)
        times = self.of(main, child)
        assert times["text_features"].wall_s == pytest.approx(54.0)
        assert times["text_features"].in_others

    def test_what_the_workers_of_a_search_fit(self):
        wait = (of_library("joblib/parallel.py", "Parallel._retrieve"), own("search.fit(x, y)"))
        main = process(seen(wait, 90.0, State.SLEEPING), progress=())
        fit, *rest = STACKS["sag_in_workers"]
        child = process(seen((fit, *rest), 60.0), pid=11, parent_pid=10, progress=())
        assert self.of(main, child)["sag_in_workers"].in_others
        # The same search without workers.
        alone = process(seen((fit, *rest[:-1], own("search.fit(x, y)")), 60.0), progress=())
        assert "searches_one_by_one" in self.of(alone)
        # Other models may be the purpose of the program.
        child = process(seen(rest, 60.0), pid=11, parent_pid=10, progress=())
        assert "searches_one_by_one" in self.of(main, child)

    def test_a_pipeline_counts_in_the_workers_of_a_search(self):
        search = of_library("sklearn/model_selection/_search.py", "BaseSearchCV.fit")
        wait = (of_library("joblib/parallel.py", "Parallel._retrieve"), search, own("s.fit(x, y)"))
        main = process(seen(wait, 90.0, State.SLEEPING), progress=())
        loop = of_library("joblib/externals/loky/process_executor.py", "_process_worker")
        forked = of_python("multiprocessing/process.py", "BaseProcess._bootstrap")
        counts = seen((*STACKS["pipeline_refitted"][:-2], loop, forked), 60.0)
        child = process(counts, pid=11, parent_pid=10, progress=(), began_s=101.0)
        times = self.of(main, child)
        assert times["pipeline_refitted"].wall_s == pytest.approx(54.0)
        assert times["pipeline_refitted"].in_others

    def test_what_is_usual_in_the_set_up_does_not_count_there(self):
        stack = seen(STACKS["archive_opened"], 30.0)
        assert "archive_opened" not in self.of(process(stack, set_up=(stack,)))
        assert self.of(process(stack))["archive_opened"].wall_s == 30.0

    def test_without_steps_the_first_quarter_is_set_up(self):
        stack = seen(STACKS["archive_opened"], 20.0)
        early = process(stack, progress=(), parts=((stack,), (), (), ()))
        assert "archive_opened" not in self.of(early)


def worker_frames():
    return (*fetch(), *in_worker())


class TestRule:
    @staticmethod
    def made(name, wall_s, *, used=4.0, **facts):
        one = process(seen(STACKS.get(name) or name, wall_s), **facts)
        return watched(one, parts=[NodePart(NODE, cores=8, cores_used=used)])

    @pytest.mark.parametrize(("wall_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold_of_overhead(self, wall_s, count):
        assert len(judged(known_activity, self.made("objects_copied", wall_s))) == count

    @pytest.mark.parametrize(
        ("wall_s", "severity"),
        [(29.9, None), (30.0, Severity.REMARK), (60.0, Severity.CRITICAL)],
    )
    def test_thresholds_of_work(self, wall_s, severity):
        findings = judged(known_activity, self.made("images_decoded", wall_s))
        assert [one.severity for one in findings] == ([severity] if severity else [])

    @pytest.mark.parametrize(
        ("name", "severity"),
        [
            ("hdf5_read", Severity.REMARK),
            ("convolved_directly", Severity.REMARK),  # Fourier transforms give the same result
            ("images_decoded", Severity.HINT),
        ],
    )
    def test_without_steps_it_may_be_the_purpose_of_the_program(self, name, severity):
        finding = found(known_activity, self.made(name, 90.0, progress=()))
        assert finding.severity is severity
        assert finding.certainty is Certainty.POSSIBLE
        assert finding.regain_percent is None
        assert ("may be the purpose of the program" in finding.sentence) is (
            severity is Severity.REMARK
        )

    @pytest.mark.parametrize(("ended", "severity"), [(2, Severity.HINT), (3, Severity.WARNING)])
    def test_a_program_that_sleeps_waits_for_children_that_end(self, ended, severity):
        main = process(seen((own("time.sleep(3)"),), 90.0, State.SLEEPING), progress=())
        children = [
            process(
                seen((own("fit(x)"),), 5.0),
                pid=50 + n,
                parent_pid=main.pid,
                wall_s=5.0,
                progress=(),
            )
            for n in range(ended)
        ]
        serving = seen((own("accept()"),), 99.0, State.NETWORK)
        server = process(serving, pid=80, parent_pid=main.pid, progress=())
        (finding,) = judged(known_activity, watched(main, *children, server))
        assert finding.severity is severity
        is_awaited = severity is Severity.WARNING
        assert ("child processes ended or waited" in finding.sentence) is is_awaited
        assert ("`Popen.wait()`" in finding.action) is is_awaited

    @pytest.mark.parametrize(
        ("idle_s", "severity"), [(9.9, Severity.HINT), (10.1, Severity.WARNING)]
    )
    def test_a_program_that_sleeps_keeps_its_children_waiting(self, idle_s, severity):
        main = process(seen((own("time.sleep(0.5)"),), 90.0, State.SLEEPING), progress=())
        asked = (
            of_python("multiprocessing/connection.py", "Connection._recv"),
            own("line.recv()", 46, "helper"),
            of_python("multiprocessing/process.py", "BaseProcess._bootstrap"),
        )
        child = process(
            seen(asked, idle_s, State.PROCESS),
            seen((own("fly(x)"), asked[-1]), 100.0 - idle_s),
            pid=50,
            parent_pid=main.pid,
            progress=(),
        )
        (finding,) = judged(known_activity, watched(main, child))
        assert finding.severity is severity
        assert "at train.py:12" in finding.sentence

    @pytest.mark.parametrize(("ran_s", "severity"), [(9.9, Severity.HINT), (10.0, Severity.REMARK)])
    def test_a_program_that_only_waits_in_asyncio_may_follow_something(self, ran_s, severity):
        waiting = (of_python("asyncio/base_events.py", "BaseEventLoop._run_once"), own("run(f())"))
        stacks = (
            seen(waiting, 100.0 - ran_s, State.PROCESS), seen((own("fit(x)"),), ran_s),
        )  # fmt: skip
        (finding,) = judged(known_activity, watched(process(*stacks, progress=())))
        assert finding.severity is severity

    @pytest.mark.parametrize(
        ("name", "wall_s", "whole_s", "count"),
        [
            ("rest_copied", 0.49, 7.0, 0),
            ("rest_copied", 0.5, 7.0, 1),  # never useful: from its own share on
            ("rest_copied", 6.9, 100.0, 0),
            ("rest_copied", 7.0, 100.0, 1),
            ("objects_copied", 1.9, 10.0, 0),
            ("objects_copied", 2.0, 10.0, 1),
            ("objects_copied", 0.9, 5.0, 0),
            ("objects_copied", 1.0, 5.0, 1),  # a large share of a short run
        ],
    )
    def test_thresholds_of_short_overhead(self, name, wall_s, whole_s, count):
        stack = seen(STACKS[name], wall_s)
        rest = seen((own("model(x)"),), whole_s - wall_s)
        made = watched(process(stack, rest, wall_s=whole_s, progress=()))
        assert len(judged(known_activity, made)) == count

    @pytest.mark.parametrize(("wall_s", "count"), [(29.9, 0), (30.0, 1)])
    def test_in_a_training_it_is_a_loss_from_its_own_share_on(self, wall_s, count):
        findings = judged(known_activity, self.made("hdf5_read", wall_s))
        assert [one.severity for one in findings] == [Severity.WARNING] * count

    def test_anomaly_detection_shows_as_tracebacks_and_has_a_rule_of_its_own(self):
        frames = (of_python("traceback.py", "format_stack"), own("model(x)"))
        main = process(seen(frames, 40.0), torch={"anomaly": True})
        assert judged(known_activity, watched(main)) == []
        finding = found(debug_mode, watched(main))
        assert finding.regain_percent == (32.0, 40.0)
        other = process(seen(frames, 40.0))
        assert found(known_activity, watched(other)).sentence.startswith(
            "Building the text of warnings and tracebacks"
        )

    def test_sentence_and_advice(self):
        finding = found(known_activity, self.made("archive_opened", 55.0))
        assert finding.sentence == (
            "Opening an archive and reading its table of contents took 55 % of the time, at "
            "train.py:12."
        )
        assert finding.action.startswith("Open the archive once in each process")
        assert finding.regain_percent == (pytest.approx(38.5), 55.0)

    @pytest.mark.parametrize(("wall_s", "count"), [(39.0, 0), (41.0, 1)])
    def test_a_pattern_that_healthy_lines_match_counts_from_its_own_share(self, wall_s, count):
        assert len(judged(known_activity, self.made("lists_searched", wall_s))) == count

    @pytest.mark.parametrize(("compiles", "count"), [(5, 0), (6, 1)])
    def test_jax_compiles_again_only_if_a_function_was_compiled_often(self, compiles, count):
        facts = {"functions": {"step": {"compiles": compiles, "compile_s": 40.0}}}
        one = process(seen(STACKS["jax_compiled_again"], 40.0))
        one = msgspec.structs.replace(one, libraries={"jax": facts})
        assert len(judged(known_activity, watched(one))) == count

    @pytest.mark.parametrize(("used", "count"), [(5.9, 1), (6.0, 0)])
    def test_waiting_counts_only_if_cores_are_idle(self, used, count):
        run = (of_python("subprocess.py", "Popen.wait"), own("subprocess.run(argv)"))
        made = self.made(run, 50.0, used=used)
        assert len(judged(known_activity, made)) == count
