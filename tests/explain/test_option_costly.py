"""An option in the source that makes a part of the work expensive, as a finding."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    LOOP,
    awaiting,
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
from explain.program_scenarios import WATCHED
from explain.program_scenarios import node as quiet_node
from explain.scenario_parts import figures, found, gpu, judged
from teho.explain.options import option_times
from teho.explain.rules.cpu import double_precision, known_activity, option_costly
from teho.explain.rules.job import ranks_wait_for_each_other, saving_often
from teho.explain.rules.memory import memory_saved_with_time
from teho.model.finding import Certainty, Severity
from teho.model.in_source import CostlyOption, Need, Unneeded
from teho.model.stack import Frame, State

FIT = (
    of_library("sklearn/svm/_base.py", "BaseLibSVM._dense_fit"),
    own("model(c).fit(x, y)", 41, "cross_validate"),
)
PROBABILITY = CostlyOption(name="svm_probability", at=own("probability=True", 31, "model"))
ONE_CORE = {"used": 1.02}


def made(*stacks, options=(PROBABILITY,), parts=None, **facts):
    one = process(*stacks, progress=(), costly_options=tuple(options), **facts)
    return watched(one, parts=parts or quiet_node())


def option(name, text="x=1", line=31, lines=()):
    return CostlyOption(name=name, at=own(text, line, "main"), lines=tuple(lines))


def test_names_the_option_and_the_slow_line():
    finding = found(option_costly, made(seen(FIT, 60.0)))
    assert finding.sentence == (
        "The option `probability=True` at train.py:31 trains five more models in each call of "
        "`fit`, but the program never asks for probabilities. Training support vector machines "
        "took 60 % of the run time, mostly at train.py:41."
    )
    assert finding.action.startswith("Remove `probability=True` at train.py:31. ")
    assert figures(finding)["time spent on this work"] == pytest.approx(60.0)
    assert figures(finding)["option"] == "train.py:31  probability=True"
    assert figures(finding)["slowest line"] == "train.py:41  model(c).fit(x, y)"
    assert finding.regain_percent == (pytest.approx(36.0), pytest.approx(51.0))
    assert finding.certainty is Certainty.SURE


def test_instead_of_what_the_activity_advises():
    assert judged(known_activity, made(seen(FIT, 60.0))) == []
    assert judged(known_activity, made(seen(FIT, 60.0), options=())) != []


@pytest.mark.parametrize(
    ("wall_s", "severity"), [(9.9, None), (10.0, Severity.WARNING), (60.0, Severity.CRITICAL)]
)
def test_limits(wall_s, severity):
    findings = judged(option_costly, made(seen(FIT, wall_s)))
    assert [one.severity for one in findings] == ([severity] if severity else [])


@pytest.mark.parametrize(("wall_s", "count"), [(0.7, 1), (0.5, 0)])
def test_a_large_share_of_a_short_run_needs_few_samples(wall_s, count):
    other = seen((own("load()"),), 3.0 - wall_s)
    given = made(seen(FIT, wall_s), other, wall_s=3.0)
    assert len(judged(option_costly, given)) == count


def test_several_places_are_one_finding():
    second = CostlyOption(name="svm_probability", at=own("probability=True", 52, "final"))
    finding = found(option_costly, made(seen(FIT, 60.0), options=(PROBABILITY, second)))
    assert "`probability=True` at train.py:31 and `probability=True` at train.py:52" in (
        finding.action
    )


def test_the_place_whose_lines_took_the_most_time_is_named():
    short, long = own("votes @ votes.T", 22, "agreement"), own("links @ links", 33, "closure")
    options = (
        option("integer_products", "x.astype(int)", 14, lines=[short]),
        option("integer_products", "y.astype(int)", 27, lines=[long]),
    )
    finding = found(option_costly, made(seen((short,), 20.0), seen((long,), 60.0), options=options))
    assert finding.sentence.startswith("The call `y.astype(int)` at train.py:27 ")


def test_the_same_time_is_named_once():
    prints = (of_library("numpy/_core/arrayprint.py", "array2string"), own("log.debug(x)", 23))
    options = (option("debug_messages"), option("all_elements_printed"))
    (one,) = judged(option_costly, made(seen(prints, 40.0), options=options))
    assert one.sentence.startswith(
        "The option `x=1` at train.py:31 lets the program write all debug messages"
    )


def test_an_option_of_another_version_is_ignored():
    assert judged(option_costly, made(seen(FIT, 60.0), options=(option("no_such_option"),))) == []


def test_words_of_the_source_are_in_the_sentence():
    transform = own("np.fft.rfft(x, n)", 36, "correlate")
    words = {"length": "186007", "kind": "is a prime number", "set": "35", "old": "n = a"}
    words |= {"new": "n = next_fast_len(a, True)", "import": "import scipy.fft"}
    call = CostlyOption(name="slow_length", at=transform, lines=(transform,), words=words)
    finding = found(option_costly, made(seen((transform,), 60.0), options=(call,)))
    assert finding.sentence.startswith(
        "The call `np.fft.rfft(x, n)` at train.py:36 transforms arrays of the length 186007, which "
        "is a prime number"
    )
    assert "At line 35, write `n = next_fast_len(a, True)` instead of `n = a`" in finding.action


class TestLines:
    SAVE = own("image.save(path, optimize=True)", 28, "cut")
    PNG = (of_library("PIL/PngImagePlugin.py", "_save"), SAVE)

    def test_only_these_lines_count(self):
        other = (self.PNG[0], own("panel.save(path)", 50, "show"))
        given = option("png_optimized", "optimize=True", 28, [self.SAVE])
        stacks = seen(self.PNG, 40.0), seen(other, 30.0)
        finding = found(option_costly, made(*stacks, options=(given,)))
        assert "Saving PNG files took 40 % of the run time." in finding.sentence  # without a place
        assert finding.certainty is Certainty.LIKELY

    def test_work_in_a_worker_counts_while_the_program_waits(self):
        waits = seen((of_library("multiprocessing/pool.py", "Pool.map"),), 80.0, State.PROCESS)
        given = option("png_optimized", "optimize=True", 28, [self.SAVE])
        serves = of_python("multiprocessing/pool.py", "worker")
        stacks = seen((*self.PNG, serves), 60.0), seen((own("read()"), serves), 20.0)
        child = worker(*stacks, costly_options=(given,))
        main = process(waits, progress=())
        finding = found(option_costly, watched(main, child, parts=quiet_node()))
        assert "Saving PNG files took 60 % of the run time" in finding.sentence


class TestCores:
    LONG = (of_library("torch/nn/modules/linear.py", "Linear.forward"), own("model(x)", 61))
    BACK = (of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()", 62))
    LIMIT = option("one_thread_for_torch", "torch.set_num_threads(1)", 9)

    def made(self, *stacks, parts=None, torch=None, **facts):
        stacks = stacks or (seen(self.LONG, 30.0), seen(self.BACK, 40.0))
        torch = {"threads": 1} if torch is None else torch
        parts = parts or quiet_node(cores=8, **ONE_CORE)
        return made(*stacks, options=(self.LIMIT,), parts=parts, torch=torch, **facts)

    def test_a_limit_that_leaves_cores_unused(self):
        finding = found(option_costly, self.made())
        assert finding.sentence.startswith(
            "The call `torch.set_num_threads(1)` at train.py:9 lets PyTorch use only one core. "
            "Computing with PyTorch on one core took 70 % of the run time"
        )
        assert finding.regain_percent == (pytest.approx(7.0), pytest.approx(61.25))
        assert finding.mutes

    @pytest.mark.parametrize(
        "change",
        [
            {"torch": {"threads": 4}},  # another line sets another limit
            {"torch": {}},  # not known
            {"parts": quiet_node(cores=1, used=1.0)},
            {"parts": quiet_node(cores=8, used=1.3)},
            {"wait_for_core_s": 10.1},
            {"cores": (3,)},
        ],
    )
    def test_a_limit_that_does_not_matter(self, change):
        assert judged(option_costly, self.made(**change)) == []

    def test_short_operations_would_not_be_faster(self):
        short = seen(self.LONG, 11.0, State.PYTHON)
        stacks = (seen(self.LONG, 30.0), short, seen(self.BACK, 40.0))
        assert judged(option_costly, self.made(*stacks)) == []
        # A backward pass is one call, however short its operations are.
        assert judged(option_costly, self.made(seen(self.BACK, 60.0))) == []

    def test_processes_that_share_the_cores(self):
        main = self.made()[1].program.mains[0].process
        child = worker(seen((own("read()"),), 20.0))
        given = watched(main, child, parts=quiet_node(cores=8, **ONE_CORE))
        assert judged(option_costly, given) == []

    def test_elementwise_work_of_numpy_uses_one_core_anyway(self):
        limit = option("one_thread_for_all", 'os.environ["OMP_NUM_THREADS"] = "1"', 4)
        parts = quiet_node(cores=8, **ONE_CORE)
        for text, count in (("np.exp(x)", 0), ("rng.normal(size=9)", 0), ("a @ b", 1)):
            stack = seen((own(text, 30),), 60.0)
            main = process(stack, progress=(), costly_options=(limit,))
            main = msgspec.structs.replace(main, libraries={"numpy": {"blas_threads": 1}})
            assert len(judged(option_costly, watched(main, parts=parts))) == count


def test_what_is_slow_only_on_cpus():
    linear = (of_library("torch/nn/modules/conv.py", "Conv2d.forward"), own("model(x)", 61))
    given = option("onednn_off", "torch.backends.mkldnn.enabled = False", 3)
    assert judged(option_costly, made(seen(linear, 60.0), options=(given,))) != []
    parts = quiet_node(gpus=[gpu(80.0)])
    assert judged(option_costly, made(seen(linear, 60.0), options=(given,), parts=parts)) == []


def test_imports_do_not_count():
    imports = Frame("<frozen importlib._bootstrap>", "_load", 0, "")
    main = made(seen((FIT[0], imports, FIT[1]), 60.0))[1].program.mains[0]
    assert option_times(main) == []
    assert option_times(made(seen(FIT, 60.0))[1].program.mains[0]) != []


@pytest.mark.parametrize(("compiles", "count"), [(1, 1), (5, 1), (6, 0)])
def test_a_loop_that_jax_unrolls_counts_if_jax_compiles_its_function_only_a_few_times(
    compiles, count
):
    pjit = Frame("/env/lib/python3.11/site-packages/jax/_src/pjit.py", "_cpp_pjit", 0, "")
    call = own("step(p, x)", 72)
    words = {"file": "train.py", "loop": "46", "last": "48", "code": "`f()`", "results": ""}
    loop = CostlyOption(
        name="loop_unrolled_by_jax", at=own("for t in range(n)", 46), lines=(call,), words=words
    )
    main = process(seen((pjit, call), 60.0), progress=(), costly_options=(loop,))
    functions = {"step": {"compiles": compiles, "compile_s": 50.0}}
    main = msgspec.structs.replace(main, libraries={"jax": {"functions": functions}})
    found_here = judged(option_costly, watched(main, parts=quiet_node()))
    assert len(found_here) == count
    if found_here:
        assert found_here[0].sentence.startswith(
            "The loop `for t in range(n)` at train.py:46 is a "
        )


class TestOtherRules:
    def test_the_place_that_makes_parameters_double(self):
        _, summary = WATCHED["doubles"]()
        main = summary.program.mains[0].process
        precision = option("double_by_trainer", 'precision="64-true"', 85)
        main = msgspec.structs.replace(main, costly_options=(precision,))
        finding = found(double_precision, watched(main, parts=quiet_node()))
        assert finding.action == (
            'If 32 bits are enough, use `precision="32-true"` instead of `precision="64-true"` at '
            "train.py:85, which converts the model and the batches to 64 bits."
        )

    def test_small_matrices_need_their_64_bits(self):
        _, summary = WATCHED["doubles"]()
        main = summary.program.mains[0].process
        scan = option("small_matrices_by_jax", "jax.lax.scan(epoch, start, readings)", 52)
        main = msgspec.structs.replace(main, costly_options=(scan,))
        assert judged(double_precision, watched(main, parts=quiet_node())) == []

    def test_the_line_that_gives_each_rank_a_block(self):
        ranks = [
            process(
                seen((own("dist.all_reduce(grad)"),), share),
                pid=10 + rank,
                torch={"rank": rank, "world_size": 2},
            )
            for rank, share in enumerate((60.0, 20.0))
        ]
        split = CostlyOption(
            name="block_of_rank",
            at=own("x[rank * n:(rank + 1) * n]", 54),
            words={"new": "x[rank:n * world:world]", "old": "x[rank * n:(rank + 1) * n]"},
        )
        for one, is_said in ((ranks[1], True), (ranks[0], False)):  # only the slowest rank counts
            with_split = msgspec.structs.replace(one, costly_options=(split,))
            both = [with_split if each is one else each for each in ranks]
            finding = found(ranks_wait_for_each_other, watched(*both))
            said = "`x[rank * n:(rank + 1) * n]` at train.py:54 gives each rank one block"
            assert finding.action.startswith(said) is is_said
            assert ("write `x[rank:n * world:world]` instead." in finding.action) is is_said

    def test_how_often_a_trainer_saves(self):
        save = (of_library("torch/serialization.py", "save"), own("trainer.train()", 60))
        given = made(seen(save, 40.0), options=(option("saved_by_transformers", "save_steps=5"),))
        finding = found(saving_often, given)
        assert finding.action.startswith(
            "Save less often: use a larger number instead of `save_steps=5` at train.py:31. Save "
        )

    def test_where_checkpointing_is_switched_on(self):
        again = (
            of_library("torch/utils/checkpoint.py", "_checkpoint_hook.__init__.unpack_hook"),
            *(own("loss.backward()"), LOOP),
        )
        name = "checkpointed_by_transformers"
        run, summary = made(
            seen(again, 40.0), options=(option(name, "gradient_checkpointing=True"),)
        )
        (node,) = summary.nodes
        node = msgspec.structs.replace(node, memory_peak_bytes=0.1 * node.memory_limit_bytes)
        given = run, msgspec.structs.replace(summary, nodes=(node,))
        assert found(memory_saved_with_time, given).action.startswith(
            "Keep the activations: remove `gradient_checkpointing=True` at train.py:31. "
        )

    def test_the_option_of_an_activity_replaces_its_advice(self):
        trees = (
            of_library("sklearn/ensemble/_forest.py", "_parallel_build_trees"),
            own("fit()", 5),
        )
        options = (option("forest_one_thread", "n_jobs=1"),)
        parts = quiet_node(cores=8, **ONE_CORE)
        finding = found(known_activity, made(seen(trees, 60.0), options=options, parts=parts))
        assert finding.action.startswith("Use `n_jobs=-1` instead of `n_jobs=1` at train.py:31.")
        other = (option("search_one_thread", "n_jobs=1"),)
        finding = found(known_activity, made(seen(trees, 60.0), options=other, parts=parts))
        assert "at train.py:31" not in finding.action


class TestSlowCalls:
    CALL = own("db.execute(QUERY, (PAGE, start))", 33, "pages")
    PAGES = CostlyOption(
        name="pages_by_offset",
        at=own("LIMIT ? OFFSET ?", 33, "pages"),
        lines=(CALL,),
        words={"size": "PAGE", "query": "db.execute", "key": "id", "sign": ">"},
    )

    def test_the_advice_has_parts_of_the_source(self):
        stacks = seen((self.CALL,), 60.0), seen((own("group(rows)", 50),), 30.0)
        finding = found(option_costly, made(*stacks, options=(self.PAGES,)))
        assert finding.sentence == (
            "The clause `LIMIT ? OFFSET ?` at train.py:33 makes the database read all earlier rows "
            "again for each page. Reading a table page by page took 60 % of the run time."
        )
        assert "`rows = cursor.fetchmany(PAGE)`" in finding.action
        assert "`WHERE id > ? ORDER BY id LIMIT ?`" in finding.action
        assert figures(finding)["clause"] == "train.py:33  LIMIT ? OFFSET ?"

    def test_other_words_are_another_finding(self):
        line = own("db.execute(OTHER, (PAGE, start))", 73, "pages")
        other = msgspec.structs.replace(
            self.PAGES,
            at=own("LIMIT ? OFFSET ?", 73, "pages"),
            lines=(line,),
            words=self.PAGES.words | {"key": "day"},
        )
        stacks = seen((self.CALL,), 40.0), seen((line,), 30.0)
        findings = judged(option_costly, made(*stacks, options=(self.PAGES, other)))
        assert ["ORDER BY id" in one.action for one in findings] == [True, False]
        assert "ORDER BY day" in findings[1].action


class TestHashes:
    SEARCH = own("cell in ice", 39, "grow")
    EQUAL = (own("self.x == other.x", 14, "Cell.__eq__"), SEARCH)
    HASH = (own("hash(self.x + self.y)", 17, "Cell.__hash__"), SEARCH)
    OPTION = CostlyOption(
        name="hashes_collide",
        at=own("return hash(self.x + self.y)", 17, "__hash__"),
        lines=(SEARCH,),
        words={"owner": "Cell", "new": "return hash((self.x, self.y))"},
    )

    def made(self, equal_s, hash_s, search_s=20.0):
        stacks = seen(self.EQUAL, equal_s), seen(self.HASH, hash_s), seen((self.SEARCH,), search_s)
        return made(*stacks, options=(self.OPTION,))

    def test_names_the_hash_and_the_search(self):
        finding = found(option_costly, self.made(40.0, 3.0))
        assert finding.sentence == (
            "The line `return hash(self.x + self.y)` at train.py:17 gives the same hash to many "
            "different objects. Each search in a set or dictionary then compares the object "
            "with many others. Searching in sets and dictionaries took 63 % of the run time, "
            "mostly at train.py:14."
        )
        assert finding.action.startswith(
            "In the class `Cell`, write `return hash((self.x, self.y))` at train.py:17. "
        )

    def test_instead_of_the_search_in_a_list(self):
        assert judged(known_activity, self.made(5.0, 1.0, 60.0)) == []

    @pytest.mark.parametrize(("equal_s", "count"), [(29.0, 0), (31.0, 1)])
    def test_objects_that_are_compared_about_once(self, equal_s, count):
        assert len(judged(option_costly, self.made(equal_s, 10.0))) == count


class TestRequests:
    READ = own("read_exact(link, 8)", 43, "scan")
    OPTION = CostlyOption(
        name="request_in_two_parts",
        at=own("link.sendall(body)", 42, "scan"),
        lines=(READ,),
        words={
            "link": "link", "new": 'link.sendall(b"".join((head, body)))', "first": "line 41",
            "made": "train.py:60",
        },
    )  # fmt: skip

    def made(self, state, used=0.2, read_s=80.0):
        stack = seen((own("link.recv(n)", 15, "read_exact"), self.READ), read_s, state)
        return made(stack, options=(self.OPTION,), parts=quiet_node(used=used))

    @pytest.mark.parametrize("state", [State.NETWORK, State.PROCESS])
    def test_names_both_parts(self, state):
        finding = found(option_costly, self.made(state))
        assert finding.sentence.startswith(
            "The call `link.sendall(body)` at train.py:42 sends the second part of a request. "
        )
        assert "Waiting for the answers took 80 % of the run time" in finding.sentence
        assert '`link.sendall(b"".join((head, body)))` at train.py:42, and remove line 41.' in (
            finding.action
        )
        assert "directly after the connection is made at train.py:60." in finding.action
        assert finding.certainty is Certainty.LIKELY

    def test_time_that_reading_computes_does_not_count(self):
        assert judged(option_costly, self.made(State.NATIVE)) == []

    @pytest.mark.parametrize(("used", "count"), [(0.5, 1), (0.6, 0)])
    def test_another_process_that_computes_the_answers(self, used, count):
        assert len(judged(option_costly, self.made(State.PROCESS, used))) == count


class TestProducts:
    LINE = own("counts.T @ counts", 25, "r_squared")
    TYPE = option("integer_products", "dtype=np.int64", 24, [LINE])

    @pytest.mark.parametrize(
        ("frames", "state", "count"),
        [
            ((LINE,), State.NATIVE, 1),
            ((LINE,), State.PYTHON, 0),  # tiny matrices
            ((of_library("scipy/sparse/_base.py", "__matmul__"), LINE), State.NATIVE, 0),
            ((own("counts.T * counts", 25, "r_squared"),), State.NATIVE, 0),
        ],
    )
    def test_only_long_products_count(self, frames, state, count):
        given = made(seen(frames, 60.0, state), options=(self.TYPE,))
        findings = judged(option_costly, given)
        assert len(findings) == count
        for finding in findings:
            assert finding.sentence.startswith(
                "The option `dtype=np.int64` at train.py:24 makes integers or booleans, for "
                "which NumPy has no fast matrix product"
            )

    @pytest.mark.parametrize(("share", "is_named"), [(0.5, True), (0.05, False)])
    def test_a_result_that_is_used_seldom(self, share, is_named):
        """The option comes first if it saves more of the time than seldom computing the result."""
        call = own("closure(links)", 59, "main")
        unneeded = Unneeded(
            calls=(call,), need=Need.SELDOM, moved=(59,), at=(own("step % 2 == 0", 63, "main"),),
            loop=own("for step in range(STEPS)", 55, "main"), last=64, periods=50, share=share,
        )  # fmt: skip
        given = made(
            seen((self.LINE, call), 60.0, State.NATIVE), options=(self.TYPE,), unneeded=(unneeded,)
        )
        assert bool(judged(option_costly, given)) is is_named


class TestShownByTheStacks:
    AGG = own("groups.agg(n=('n', 'sum'))", 27, "monthly")
    GROUPS = CostlyOption(
        name="groups_removed_again",
        at=own("observed=False", 26, "monthly"),
        lines=(AGG,),
        words={"call": "26"},
    )
    SUMS = (of_library("pandas/core/groupby/ops.py", "BaseGrouper._cython_operation"), AGG)
    PRODUCT = (
        of_library("pandas/core/indexes/multi.py", "MultiIndex.from_product"),
        of_library("pandas/core/groupby/ops.py", "BaseGrouper._unob_index_and_ids"),
        AGG,
    )
    KEYS = (PRODUCT[1], AGG)  # of few combinations and many rows
    OLD = (of_library("pandas/core/groupby/groupby.py", "GroupBy._reindex_output"), AGG)

    @pytest.mark.parametrize(
        ("frames", "wall_s", "count"),
        [(PRODUCT, 2.0, 1), (OLD, 2.0, 1), (PRODUCT, 1.5, 0), (SUMS, 8.0, 0), (KEYS, 8.0, 0)],
    )
    def test_rows_of_all_combinations(self, frames, wall_s, count):
        stacks = seen(self.SUMS, 60.0 - wall_s), seen(frames, wall_s)
        findings = judged(option_costly, made(*stacks, options=(self.GROUPS,)))
        assert len(findings) == count
        for finding in findings:
            assert "Computing this grouped table took 60 % of the run time, mostly at" in (
                finding.sentence
            )
            assert "call of `groupby` at train.py:26: pandas" in finding.action


class TestJacobians:
    CALL = own("solve_ivp(rates, span, start, method='BDF')", 41, "run")
    SOLVER = of_library("scipy/integrate/_ivp/ivp.py", "solve_ivp")
    LU = of_library("scipy/integrate/_ivp/bdf.py", "BDF.__init__.<locals>.lu")
    DENSE = of_library("scipy/integrate/_ivp/common.py", "num_jac")
    STEP = of_library("scipy/integrate/_ivp/bdf.py", "BDF._step_impl")
    RATES = own("np.exp(u)", 20, "rates")
    WORDS = dict.fromkeys(("start", "base", "changes", "pattern", "file", "line", "call"), "x")

    def option(self, name):
        at = own("method='BDF'", 41, "run")
        return CostlyOption(name=name, at=at, lines=(self.CALL,), words=self.WORDS)

    def test_calls_for_the_jacobian_and_factors_count(self):
        stacks = (
            seen((self.LU, self.STEP, self.SOLVER, self.CALL), 30.0, State.NATIVE),
            seen((self.RATES, self.DENSE, self.STEP, self.SOLVER, self.CALL), 20.0),
            seen((self.RATES, self.STEP, self.SOLVER, self.CALL), 40.0),
        )
        given = made(*stacks, options=(self.option("jacobian_dense"),))
        finding = found(option_costly, given)
        assert "Computing and factorising the Jacobian took 50 % of the run time." in (
            finding.sentence
        )
        others = judged(known_activity, given)  # without the factors, and with no claim
        assert [one.severity for one in others] == [Severity.HINT]

    def test_of_lsoda_only_its_own_long_calls_count(self):
        step = of_library("scipy/integrate/_ivp/lsoda.py", "LSODA._step_impl")
        stacks = (
            seen((step, self.SOLVER, self.CALL), 30.0, State.NATIVE),
            seen((step, self.SOLVER, self.CALL), 20.0, State.PYTHON),
            seen((self.RATES, step, self.SOLVER, self.CALL), 40.0, State.NATIVE),
        )
        given = made(*stacks, options=(self.option("jacobian_dense_lsoda"),))
        assert "took 30 % of the run time" in found(option_costly, given).sentence


class TestColumns:
    READ = own("self.table[index]", 39, "__getitem__")
    DECODE = (of_library("datasets/formatting/formatting.py", "PythonArrowExtractor.extract_row"),)
    WORDS = {  # noqa: RUF012 - no test changes it
        "file": "train.py", "line": "33", "used": "'dose', 'summary'", "old": "load_from_disk(x)",
        "new": "load_from_disk(x).select_columns(['dose', 'summary'])",
    }  # fmt: skip

    def made(self, *tables, seconds=40.0):
        given = CostlyOption(
            name="rows_with_all_columns", at=self.READ, lines=(self.READ,), words=self.WORDS
        )
        facts = {"datasets": {"tables": [{"rows": 9, "columns": one} for one in tables]}}
        one = process(seen((*self.DECODE, self.READ), seconds), costly_options=(given,))
        return watched(msgspec.structs.replace(one, libraries=facts), parts=quiet_node())

    def test_names_the_columns(self):
        finding = found(
            option_costly, self.made({"dose": 4, "summary": 96, "curve": 2400, "grain": 6})
        )
        assert finding.sentence == (
            "The expression `self.table[index]` at train.py:39 decodes all columns of a row, but "
            "the program uses only 'dose', 'summary' and not `curve`. Reading rows of a Hugging "
            "Face data set took 40 % of the run time."
        )
        assert finding.action == (
            "Select the columns that the program uses: at train.py:33, write "
            "`load_from_disk(x).select_columns(['dose', 'summary'])` instead of "
            "`load_from_disk(x)`."
        )

    @pytest.mark.parametrize(
        "tables",
        [
            (),
            ({"dose": 4, "summary": 96},),
            ({"dose": 4, "summary": 96, "curve": 399},),  # less than 4 times as large
            ({"dose": 4, "curve": 2400},),  # another data set
            # Which of the two data sets does the line read?
            ({"dose": 4, "summary": 96, "curve": 2400}, {"dose": 4, "summary": 96, "number": 8}),
        ],
    )
    def test_no_large_column_is_unused(self, tables):
        assert judged(option_costly, self.made(*tables)) == []

    def test_comes_before_the_conversion_of_the_same_rows(self):
        convert = own('torch.tensor(grain["summary"])', 40, "__getitem__")
        lists = option("rows_as_lists", convert.text, 40, [convert, self.READ])
        run, summary = self.made({"dose": 4, "summary": 96, "curve": 2400})
        one = summary.program.mains[0].process
        both = msgspec.structs.replace(
            one,
            stacks=(*one.stacks, seen((convert,), 20.0)),
            costly_options=(lists, *one.costly_options),
        )
        names = [time.option.name for time in option_times(made_of(both).program.mains[0])]
        assert names == ["rows_with_all_columns", "rows_as_lists"]
        findings = judged(option_costly, (run, made_of(both)))
        assert "decodes all columns" in findings[0].sentence
        assert len(findings) == 1


def made_of(one):
    return watched(one, parts=quiet_node())[1]


@pytest.mark.parametrize(("workers", "count"), [(1, 0), (2, 1)])
def test_work_of_all_workers_needs_several_workers(workers, count):
    call = own("prepare(data)", 50, "pictures")
    words = dict.fromkeys(("file", "line", "old", "new", "before", "prepare"), "x")
    given = CostlyOption(name="worker_chooses_after_generator", at=call, lines=(call,), words=words)
    stacks = [seen((call, *in_worker()), 60.0)]
    children = [
        worker(*stacks, pid=11 + number, costly_options=(given,)) for number in range(workers)
    ]
    main = process(awaiting(60.0), loaders=[loader(num_workers=workers)], progress=())
    assert len(judged(option_costly, watched(main, *children, parts=quiet_node()))) == count


def test_the_function_that_jax_should_compile():
    compiling = (
        of_library("jax/_src/compiler.py", "backend_compile"),
        own("optimizer.update(grad, state)", 51, "step"),
        own("step(params, state)", 60, "main"),
    )
    jax = {"functions": {"while": {"compiles": 15, "compile_s": 60.0}}}
    given = CostlyOption(
        name="jax_step_not_compiled",
        at=own("def step", 49, "step"),
        lines=(compiling[1],),
        words={"function": "step", "jax": ""},
    )
    for options, begin in (((), "Call `jax.jit` once"), ((given,), "Compile `step` as a whole: ")):
        one = process(seen(compiling, 80.0), progress=(), costly_options=options)
        parts = tuple((seen(compiling, 8.0),) for _ in range(10))
        one = msgspec.structs.replace(one, libraries={"jax": jax}, parts=parts)
        finding = found(known_activity, watched(one, parts=quiet_node()))
        assert finding.action.startswith(begin)
    assert "`@jax.jit` in the line above `def step` at train.py:49" in finding.action


@pytest.mark.parametrize(("ranks", "most"), [(1, None), (2, 24.5), (4, 36.75)])
def test_data_that_each_rank_reads_need_several_ranks(ranks, most):
    back = own("loss.backward()", 58, "main")
    words = {"file": "train.py", "line": "52", "sampler": "s = 1", "new": "f(s)", "first": ""}
    given = CostlyOption(
        name="all_data_on_each_rank",
        at=own("DataLoader(data, 40, shuffle=True)", 52, "main"),
        lines=(back,),
        words=words,
    )
    torch = {"rank": 0, "world_size": ranks}
    main = process(seen((back,), 50.0), torch=torch, progress=(), costly_options=(given,))
    findings = judged(option_costly, watched(main))
    assert [one.regain_percent[1] for one in findings] == ([pytest.approx(most)] if most else [])
