"""Activities recognised by stack, and the rule that reports them."""

from __future__ import annotations

import re

import msgspec
import pytest

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
from teho.model.watched import State

STACKS = {
    "archive_opened": (of_python("zipfile/__init__.py", "ZipFile._RealGetContents"), own("f()")),
    "decompressing": (own("zlib.decompress(raw)"),),
    "images_decoded": (of_library("PIL/ImageFile.py", "ImageFile.load"), own("im.load()")),
    "images_transformed": (of_library("PIL/Image.py", "Image.resize"), own("im.resize((9, 9))")),
    "hdf5_read": (of_library("h5py/_hl/dataset.py", "Dataset.__getitem__"), own("d[i]")),
    "hdf5_opened": (of_library("h5py/_hl/files.py", "File.__init__"), own("h5py.File(path)")),
    "jax_one_by_one": (of_library("jax/_src/dispatch.py", "apply_primitive"), own("x + 1")),
    "objects_copied": (of_python("copy.py", "deepcopy"), own("copy.deepcopy(model)")),
    "logging": (of_python("logging/__init__.py", "StreamHandler.emit"), own("log.info(x)")),
    "synced_writes": (own("os.fsync(f.fileno())"),),
    "dates_parsed": (of_python("_strptime.py", "_strptime"), own("datetime.strptime(a, b)")),
    "text_tables_parsed": (of_library("pandas/io/parsers/readers.py", "read_csv"), own("read(p)")),
    "arrays_joined": (own("np.concatenate([all, new])"),),
    "sparse_changed": (of_library("scipy/sparse/_index.py", "__setitem__"), own("m[i, j] = 1")),
    "patterns_compiled": (of_python("re/_compiler.py", "compile"), own("re.match(p, line)")),
    "garbage_collected": (own("gc.collect()"),),
    "checksums": (own("hashlib.sha256(block)"),),
    "compressing": (of_python("gzip.py", "GzipFile.write"), own("out.write(row)")),
    "compressed_rewound": (
        of_python("_compression.py", "DecompressReader.read"),
        of_python("_compression.py", "DecompressReader.seek"),
        of_python("gzip.py", "GzipFile.seek"),
        own("archive.extractfile(name).read()"),
    ),
    "lists_searched": (own("if name in done:"),),
    "lists_copied": (own("random.sample(list(self.buffer), 64)"),),
    "equations_solved": (own("spsolve(left, right)"),),
    "hdf5_written": (of_library("h5py/_hl/dataset.py", "Dataset.resize"), own("d.resize(n)")),
    "store_opened": (own("lmdb.open(path, readonly=True)"),),
    "database": (own("fetchall()"),),
    "objects_passed": (own("_ForkingPickler.loads(res)"),),
    "manager_asked": (
        of_python("multiprocessing/connection.py", "Connection.recv"),
        of_python("multiprocessing/managers.py", "BaseProxy._callmethod"),
        own("counts[word] += 1"),
    ),
    "predictions_joined": (
        of_library("transformers/trainer_pt_utils.py", "torch_pad_and_concatenate"),
        of_library("transformers/trainer.py", "Trainer.evaluation_loop"),
        own("trainer.train()"),
    ),
    "boosting_evaluated": (
        own("sorted(zip(score, label))", 26, "distance"),
        of_library("xgboost/core.py", "Booster.eval_set"),
        own("xgb.train(settings, rows)"),
    ),
    "text_features": (
        of_library("sklearn/feature_extraction/text.py", "CountVectorizer._count_vocab"),
        own("search.fit(texts, labels)"),
    ),
    "fourier_transforms": (own("np.fft.rfft(trace)"),),
    "jax_compiled_again": (
        of_library("jax/_src/compiler.py", "backend_compile"),
        own("step(weights, batch)"),
    ),
    "tensorflow_traced_again": (
        own("tf.matmul(a, b)", 20, "tf__step"),
        of_library("tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"),
        own("step(x, 3)"),
    ),
}


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_has_its_activity(name):
    activity = activity_of(seen(STACKS[name], 1.0))
    assert activity is not None
    assert activity.name == name


@pytest.mark.parametrize(
    "text",
    ["loss.backward()", "model(x)", "x = a @ b", "np.linalg.solve(a, b)", "total += value"],
)
def test_the_main_work_is_no_activity(text):
    assert activity_of(seen((own(text),), 1.0)) is None


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


def test_threads_that_pass_tasks_are_told_from_waiting_for_results():
    frames = (of_python("multiprocessing/pool.py", "IMapIterator.next"), own("pool.imap(f, x)"))
    assert activity_of(seen(frames, 1.0, State.LOCK)) is None
    assert activity_of(seen(frames, 1.0, State.THREADS)).name == "tasks_passed"


def test_jax_without_jit_is_told_from_waiting_for_compiled_code():
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
        assert one.files or one.calls
        assert one.advice.endswith(".")
        assert 0 <= one.regain[0] <= one.regain[1] <= 1
        for pattern in (*one.files, *one.calls):
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

    def test_without_steps_it_may_be_the_purpose_of_the_program(self):
        for name in ("hdf5_read", "images_decoded"):
            finding = found(known_activity, self.made(name, 90.0, progress=()))
            assert finding.severity is Severity.REMARK
            assert finding.certainty is Certainty.POSSIBLE
            assert finding.regain_percent is None

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
        assert found(known_activity, watched(other)).sentence.startswith("Warnings and tracebacks")

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
