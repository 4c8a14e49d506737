"""Causes of lost time other than data, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    NODE,
    fetching,
    loader,
    of_library,
    own,
    process,
    seen,
    watched,
)
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    kinds_of,
    scenario,
    untouched_gpu,
)
from teho.explain.rules.cpu import (
    bound_to_few_cores,
    double_precision,
    python_bound,
    too_many_threads,
)
from teho.explain.rules.gpu import (
    copies_from_pageable_memory,
    framework_without_gpu,
    problem_too_small,
    waits_for_device,
)
from teho.explain.rules.job import fixed_costs_dominate, saving_often
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Severity
from teho.model.watched import Frame, Progress, State

MIB = 1024**2


def saving(wall_s):
    return seen((of_library("torch/serialization.py", "save"), own("torch.save(x, f)")), wall_s)


def importing(wall_s):
    return seen((Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, ""),), wall_s)


def compiling(wall_s):
    return seen((of_library("torch/_inductor/compile_fx.py", "compile_fx"),), wall_s)


def copying(wall_s):
    return seen((own("x.to(device)", 31),), wall_s)


def waiting(wall_s):
    return seen((own("loss.item()", 32),), wall_s, State.WAITING)


def in_python(wall_s):
    return seen((own("total += x * y", 33),), wall_s, State.PYTHON)


def using(watched_process, **libraries):
    """Return the process with what is known of its libraries."""
    return msgspec.structs.replace(watched_process, libraries=libraries)


def on_gpus(*processes, busy=40.0, gpus=1):
    """Make a run of these processes beside GPUs that are busy for so much of the time."""
    return watched(*processes, parts=[NodePart(NODE, gpus=[gpu(busy)] * gpus)])


class TestSaving:
    @pytest.mark.parametrize(("saves_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold(self, saves_s, count):
        verdict = judged(saving_often, watched(process(saving(saves_s))))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (5.0, 10.0)
            assert figures(verdict[0])["slowest line"] == "train.py:12  torch.save(x, f)"

    @pytest.mark.parametrize(
        ("file", "function", "count"),
        [
            ("torch/serialization.py", "load", 0),
            ("numpy/lib/npyio.py", "load", 0),
            ("numpy/lib/_npyio_impl.py", "savez_compressed", 1),
            ("safetensors/torch.py", "save_file", 1),
            ("safetensors/torch.py", "load_file", 0),
            ("torch/distributed/checkpoint/state_dict_saver.py", "async_save", 1),
            ("torch/distributed/checkpoint/state_dict_loader.py", "load", 0),
        ],
    )
    def test_reading_is_not_saving(self, file, function, count):
        made = watched(process(seen((of_library(file, function), own("x")), 40.0)))
        assert len(judged(saving_often, made)) == count


class TestAfterTheBeginning:
    """What is lost is held against the time that the program worked."""

    @pytest.mark.parametrize(("saves_s", "count"), [(59.9, 0), (60.0, 1)])
    @pytest.mark.parametrize("begin", [importing, compiling])
    def test_threshold_of_the_loss(self, begin, saves_s, count):
        made = watched(process(begin(1800.0), saving(saves_s), wall_s=2400.0))
        verdict = judged(saving_often, made)
        assert len(verdict) == count
        if verdict:  # what is said of it is a share of all the time
            assert verdict[0].sentence.startswith(
                "The program stopped its work for 2 % of the time"
            )
            assert verdict[0].regain_percent == (1.25, 2.5)

    @pytest.mark.parametrize(("works_s", "count"), [(60.0, 0), (61.0, 1)])
    def test_of_a_minute_and_less_nothing_is_said(self, works_s, count):
        made = watched(process(importing(500.0), saving(40.0), wall_s=500.0 + works_s))
        assert len(judged(saving_often, made)) == count

    def test_a_program_that_only_begins(self):
        made = watched(process(importing(500.0), compiling(100.0), wall_s=600.0))
        assert judged(saving_often, made) == []
        assert found(fixed_costs_dominate, made).regain_percent == (0.0, 100.0)

    def test_cores_are_no_time(self):
        one = process(importing(900.0), wall_s=1000.0, cores=tuple(range(19)))
        parts = [NodePart(NODE, cores=20, cores_used=19.0)]
        assert judged(bound_to_few_cores, watched(one, parts=parts)) == []


class TestFixedCosts:
    @pytest.mark.parametrize(("compiles_s", "count"), [(29.9, 0), (30.0, 1)])
    def test_threshold_of_their_share(self, compiles_s, count):
        made = watched(process(importing(20.0), compiling(compiles_s)))
        verdict = judged(fixed_costs_dominate, made)
        assert len(verdict) == count
        if verdict:
            assert "took 50.0 s in this run." in verdict[0].action
            assert verdict[0].regain_percent == (0.0, 50.0)

    @pytest.mark.parametrize(("wall_s", "count"), [(29.9, 0), (30.0, 1)])
    def test_threshold_of_the_time(self, wall_s, count):
        made = watched(process(importing(wall_s), wall_s=wall_s))
        assert len(judged(fixed_costs_dominate, made)) == count

    @pytest.mark.parametrize(
        ("longest", "text"), [(importing, "import torch"), (compiling, "step(x)")]
    )
    def test_names_the_line_of_what_took_longer(self, longest, text):
        other = compiling if longest is importing else importing
        stack = msgspec.structs.replace(
            longest(40.0), frames=(*longest(40.0).frames[:-1], own(text, 3))
        )
        finding = found(fixed_costs_dominate, watched(process(other(20.0), stack)))
        assert figures(finding)["slowest line"] == f"train.py:3  {text}"

    @staticmethod
    def compiled(**functions):
        """Make a run that compiles; of functions of JAX's: how often, and for how long."""
        facts = {
            name: {"compiles": compiles, "compile_s": compile_s, "at": None}
            for name, (compiles, compile_s) in functions.items()
        }
        jax = {"functions": facts, "compiles": sum(one["compiles"] for one in facts.values())}
        return watched(using(process(compiling(60.0)), jax=jax))

    @pytest.mark.parametrize(("compiles", "again"), [(5, False), (6, True)])
    def test_threshold_of_compiling_again(self, compiles, again):
        finding = found(fixed_costs_dominate, self.compiled(update=(compiles, 50.0), init=(40, 2)))
        assert figures(finding).get(f"compiled {compiles} times") == ("update" if again else None)
        assert finding.action.startswith(
            "Call `update` with arguments of the same shapes and types each time"
            if again
            else "If a function has a Python loop"
        )
        assert len(finding.thresholds) == (4 if again else 3)

    @pytest.mark.parametrize(("last", "is_large"), [(59.0, True), (50.0, False)])
    def test_a_compilation_that_had_not_ended(self, last, is_large):
        frames = (of_library("jax/_src/compiler.py", "backend_compile"), own("step(x)"))
        parts = ((), (), (), (seen(frames, last), seen((own("a @ b"),), 60.0 - last)))
        finding = found(
            fixed_costs_dominate,
            watched(using(process(seen(frames, 90.0), parts=parts), jax={"functions": {}})),
        )
        assert finding.action.startswith("If a function has a Python loop") is is_large

    @pytest.mark.parametrize("name", ["", "(others)", "<lambda>"])
    def test_names_of_several_functions_say_nothing(self, name):
        finding = found(fixed_costs_dominate, self.compiled(**{name: (90, 50.0), "update": (1, 9)}))
        assert finding.action.startswith("Do several parts")


class TestPython:
    @pytest.mark.parametrize(("runs_s", "count"), [(49.9, 0), (50.0, 1)])
    def test_threshold(self, runs_s, count):
        verdict = judged(python_bound, watched(process(in_python(runs_s))))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].severity is Severity.CRITICAL
            assert figures(verdict[0])["slowest line"] == "train.py:33  total += x * y"

    @pytest.mark.parametrize(("wall_s", "count"), [(1.9, 0), (2.0, 1)])
    def test_not_of_a_moment(self, wall_s, count):
        made = watched(process(in_python(wall_s), wall_s=wall_s))
        assert len(judged(python_bound, made)) == count

    def test_a_function_that_a_solver_calls_may_work_on_arrays_already(self):
        step = of_library("scipy/integrate/_ivp/rk.py", "rk_step")
        stack = seen((own("-x / (x @ x) ** 1.5"), step, own("solve_ivp(f)")), 60.0, State.PYTHON)
        assert judged(python_bound, watched(process(stack))) == []

    def test_where_the_program_is_wrapped_by_a_launchers_function(self):
        record = of_library(
            "torch/distributed/elastic/multiprocessing/errors/__init__.py", "record"
        )
        stack = seen((own("total += x * y"), record), 60.0, State.PYTHON)
        assert len(judged(python_bound, watched(process(stack)))) == 1


class TestDoubles:
    @pytest.mark.parametrize(("doubles", "count"), [(499, 0), (500, 1)])
    def test_threshold(self, doubles, count):
        sizes = {"float64": doubles - 100, "complex128": 100, "float32": 1000 - doubles}
        made = watched(process(fetching(20.0), torch={"parameter_dtypes": sizes}))
        verdict = judged(double_precision, made)
        assert len(verdict) == count
        if verdict:
            assert verdict[0].severity is Severity.REMARK
            assert verdict[0].regain_percent == (0.0, 40.0)

    @pytest.mark.parametrize("sizes", [{}, {"float64": 0}, None, "float64"])
    def test_nothing_to_judge(self, sizes):
        made = watched(process(torch={"parameter_dtypes": sizes}))
        assert judged(double_precision, made) == []
        cupy = {"version": "13.6.0", "to_device": {"dtypes": sizes}}
        assert judged(double_precision, watched(using(process(), cupy=cupy))) == []
        assert judged(double_precision, watched(using(process(), cupy={"version": "13"}))) == []

    @pytest.mark.parametrize(("doubles", "count"), [(499, 0), (500, 1)])
    def test_threshold_of_what_cupy_copies(self, doubles, count):
        sizes = {"float64": doubles - 100, "complex128": 100, "float32": 1000 - doubles}
        cupy = {"to_device": {"copies": 9, "bytes": 1000, "dtypes": sizes}}
        verdict = judged(double_precision, watched(using(process(fetching(20.0)), cupy=cupy)))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].sentence.startswith(
                "The data that CuPy copies to the GPU have 64 bits:"
            )
            assert figures(verdict[0])["64-bit data copied to the GPU"] == 50.0
            assert "`cupy.asarray(x, dtype=cupy.float32)`" in verdict[0].action
            assert verdict[0].regain_percent == (0.0, 40.0)

    def test_names_the_line_that_computes_longest(self):
        made = watched(process(waiting(60.0), torch={"parameter_dtypes": {"float64": 9}}))
        one = found(double_precision, made)
        assert figures(one)["slowest line"] == "train.py:12  loss.backward()"  # no GPU, no waiting


class TestBinding:
    @staticmethod
    def made(*cores, used=4.0, of=8):
        ranks = [process(pid=10 + n, cores=own_cores) for n, own_cores in enumerate(cores)]
        return watched(*ranks, parts=[NodePart(NODE, cores=of, cores_used=used)])

    @pytest.mark.parametrize(("used", "count"), [(3.19, 0), (3.21, 1)])
    def test_threshold_of_the_use(self, used, count):
        assert len(judged(bound_to_few_cores, self.made((0, 1, 2, 3), used=used))) == count

    @pytest.mark.parametrize(("of", "count"), [(40, 0), (39, 1), (32, 1), (31, 1)])
    def test_threshold_of_the_loss(self, of, count):
        cores = tuple(range(of - (4 if count else 3)))
        assert len(judged(bound_to_few_cores, self.made(cores, used=of, of=of))) == count

    def test_names_the_cores(self):
        finding = found(bound_to_few_cores, self.made((0, 1, 2, 3)))
        assert finding.sentence == (
            f"On {NODE} the program can use only 4 of the job's 8 cores, and needs more cores."
        )
        assert figures(finding)["cores that the program can use"] == "0–3"
        assert figures(finding)["slowest line"] == "train.py:12  loss.backward()"
        assert finding.regain_percent == (0.0, 50.0)

    def test_ranks_that_are_bound_beside_each_other_use_all(self):
        assert judged(bound_to_few_cores, self.made((0, 1, 2, 3), (4, 5, 6, 7), used=8.0)) == []
        assert len(judged(bound_to_few_cores, self.made((0, 1), (0, 1), used=2.0))) == 1

    @pytest.mark.parametrize("cores", [None, ()])
    def test_where_nobody_knows(self, cores):
        assert judged(bound_to_few_cores, self.made(cores)) == []
        assert judged(bound_to_few_cores, self.made((0,), None)) == []
        assert judged(bound_to_few_cores, self.made((0,), used=UNSUPPORTED)) == []


class TestBindingWithoutTheProbe:
    """The scheduler gave more cores than the program might run on when recording began."""

    @staticmethod
    def made(cores, asked, used, threads=30.0, *, elapsed_s=3600.0, **changes):
        given = Allocation(**{"scheduler": "slurm", "cores_asked": asked} | changes)
        signals = {"job_runnable_threads": threads}
        part = NodePart(NODE, cores=cores, cores_used=used, signals=signals, allocation=given)
        return scenario(part, elapsed_s=elapsed_s)

    def test_says_so(self):
        finding = found(bound_to_few_cores, self.made(1, 40, 1.0))
        assert finding.sentence == (
            f"On {NODE} the program can use only 1 of the job's 40 cores, and needs more cores."
        )
        assert figures(finding)["cores that the program can use"] == "0"
        assert finding.severity is Severity.CRITICAL

    @pytest.mark.parametrize(("used", "count"), [(2.39, 0), (2.41, 1)])
    def test_threshold_of_the_use(self, used, count):
        assert len(judged(bound_to_few_cores, self.made(3, 40, used))) == count

    @pytest.mark.parametrize(("cores", "count"), [(37, 0), (35, 1)])
    def test_threshold_of_the_share(self, cores, count):
        assert len(judged(bound_to_few_cores, self.made(cores, 40, 40.0))) == count

    @pytest.mark.parametrize(("elapsed_s", "count"), [(2.0, 0), (2.1, 1)])
    def test_threshold_of_the_loss(self, elapsed_s, count):
        one = self.made(1, 40, 1.0, elapsed_s=elapsed_s)
        assert len(judged(bound_to_few_cores, one)) == count

    @pytest.mark.parametrize(("threads", "count"), [(1.25, 0), (1.26, 1), (1.81, 1)])
    def test_half_of_the_cores_may_be_one_thread_of_each(self, threads, count):
        assert len(judged(bound_to_few_cores, self.made(1, 2, 0.99, threads))) == count
        assert judged(too_many_threads, self.made(1, 2, 0.99, threads)) == []

    def test_abstains_if_threads_are_not_known_there(self):
        one = self.made(1, 2, 0.99, UNSUPPORTED)
        assert isinstance(judged(bound_to_few_cores, one), Abstention)

    @pytest.mark.parametrize(
        "change", [{"scheduler": None}, {"scheduler": "local"}, {"cores_asked": None}]
    )
    def test_only_a_scheduler_s_count_counts(self, change):
        assert judged(bound_to_few_cores, self.made(1, 40, 1.0, **change)) == []

    def test_the_binding_is_the_only_finding(self):
        one = self.made(1, 4, 0.99, 3.5)
        kinds = kinds_of(one)
        assert "bound_to_few_cores" in kinds
        assert not {"too_many_threads", "serial_program", "cores_unused"} & set(kinds)


class TestBindingOfItself:
    """The recorder saw all cores of the job, and the program then bound itself to one of two."""

    def test_it_is_found(self):
        part = NodePart(NODE, cores=2, cores_used=0.99, signals={"job_runnable_threads": 1.81})
        one = watched(process(cores=(1,)), parts=[part])
        assert found(bound_to_few_cores, one).sentence == (
            f"On {NODE} the program can use only 1 of the job's 2 cores, and needs more cores."
        )
        kinds = kinds_of(one)
        assert "bound_to_few_cores" in kinds
        assert not {"too_many_threads", "serial_program", "cores_unused"} & set(kinds)


class TestCopies:
    @staticmethod
    def made(copies_s, busy=40.0, **settings):
        return on_gpus(process(copying(copies_s), loaders=[loader(**settings)]), busy=busy)

    @pytest.mark.parametrize(("copies_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold(self, copies_s, count):
        verdict = judged(copies_from_pageable_memory, self.made(copies_s))
        assert len(verdict) == count
        if verdict:
            assert "`DataLoader(…, pin_memory=True)` in train.py:8" in verdict[0].action
            assert verdict[0].regain_percent == (5.0, 10.0)

    @pytest.mark.parametrize(("busy", "count"), [(90.0, 1), (90.1, 0), (100.0, 0)])
    def test_a_copy_that_waits_for_work_on_the_gpu_is_no_loss(self, busy, count):
        verdict = judged(copies_from_pageable_memory, self.made(60.0, busy))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (5.0, 10.0)
            assert figures(verdict[0])["copying to the device"] == 60.0

    def test_abstains_where_the_gpu_was_not_seen(self):
        verdict = judged(copies_from_pageable_memory, self.made(60.0, UNSUPPORTED))
        assert isinstance(verdict, Abstention)
        assert judged(copies_from_pageable_memory, self.made(5.0, UNSUPPORTED)) == []

    @pytest.mark.parametrize("settings", [{"pin_memory": True}, {"pin_memory": None}])
    def test_pinned(self, settings):
        count = 0 if settings["pin_memory"] else 1
        assert len(judged(copies_from_pageable_memory, self.made(60.0, **settings))) == count

    def test_not_without_a_loader_or_a_gpu(self):
        assert judged(copies_from_pageable_memory, on_gpus(process(copying(60.0)))) == []
        made = watched(process(copying(60.0), loaders=[loader()]))
        assert judged(copies_from_pageable_memory, made) == []
        other = loader()
        other.settings.clear()  # another library's, which says nothing of it
        made = on_gpus(process(copying(60.0), loaders=[other]))
        assert judged(copies_from_pageable_memory, made) == []


class TestWaitsForDevice:
    @pytest.mark.parametrize(("waits_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold_of_the_wait(self, waits_s, count):
        assert len(judged(waits_for_device, on_gpus(process(waiting(waits_s))))) == count

    @pytest.mark.parametrize(("busy", "count"), [(79.9, 1), (80.0, 0)])
    def test_threshold_of_the_gpu(self, busy, count):
        verdict = judged(waits_for_device, on_gpus(process(waiting(60.0)), busy=busy))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == pytest.approx((0.0, 20.1))

    def test_the_busiest_of_several_counts(self):
        parts = [NodePart(NODE, gpus=[gpu(5.0), gpu(95.0)]), NodePart("r01g02", gpus=[gpu(5.0)])]
        assert judged(waits_for_device, watched(process(waiting(60.0)), parts=parts)) == []

    def test_abstains_where_it_was_not_seen(self):
        made = on_gpus(process(waiting(60.0)), busy=UNSUPPORTED)
        assert isinstance(judged(waits_for_device, made), Abstention)
        assert judged(waits_for_device, on_gpus(process(waiting(5.0)), busy=UNSUPPORTED)) == []

    def test_without_a_gpu_there_is_nothing_to_wait_for(self):
        assert judged(waits_for_device, watched(process(waiting(60.0)))) == []


class TestTooSmall:
    @staticmethod
    def made(step_ms=1.0, size=MIB, busy=20.0, steps=1001, **torch):
        progress = Progress(steps=steps, first_s=101.0, last_s=101.0 + (steps - 1) * step_ms / 1e3)
        facts = {"parameter_bytes": size, "devices": ["cuda:0"], **torch}
        return on_gpus(process(progress=[progress], torch=facts), busy=busy)

    @pytest.mark.parametrize(
        ("facts", "count"),
        [
            ({"step_ms": 4.99}, 1),
            ({"step_ms": 5.01}, 0),
            ({"size": 10 * MIB}, 1),
            ({"size": 10 * MIB + 1}, 0),
            ({"busy": 49.9}, 1),
            ({"busy": 50.0}, 0),
            ({"steps": 2}, 1),
            ({"steps": 1}, 0),
            ({"size": None}, 0),
            ({"devices": ["cpu"]}, 0),
            ({"devices": ["cpu", "cuda:0"]}, 1),
        ],
    )
    def test_thresholds(self, facts, count):
        assert len(judged(problem_too_small, self.made(**facts))) == count

    def test_the_mean_step(self):
        finding = found(problem_too_small, self.made(step_ms=2.5))
        assert finding.sentence == (
            "A step takes only 2.5 ms, and the GPU is busy 20 % of the time: "
            "the problem is too small for a GPU."
        )
        assert figures(finding)["slowest line"] == "train.py:12  loss.backward()"
        assert finding.regain_percent is None

    def test_abstains_where_the_gpu_was_not_seen(self):
        assert isinstance(judged(problem_too_small, self.made(busy=UNSUPPORTED)), Abstention)
        assert judged(problem_too_small, self.made(busy=UNSUPPORTED, step_ms=50)) == []

    def test_not_without_steps_or_a_gpu(self):
        assert judged(problem_too_small, on_gpus(process(torch={"parameter_bytes": 1}))) == []
        made = watched(process(torch={"parameter_bytes": 1, "devices": ["cuda:0"]}))
        assert judged(problem_too_small, made) == []
        made = on_gpus(process(progress=(), loaders=[loader()], torch={"parameter_bytes": 1}))
        assert judged(problem_too_small, made) == []


class TestWithoutGpu:
    @staticmethod
    def made(*torches, signals=None):
        ranks = [process(pid=10 + n, torch=torch) for n, torch in enumerate(torches)]
        return watched(*ranks, parts=[NodePart(NODE, gpus=[signals or untouched_gpu()])])

    def test_a_build_for_cpus(self):
        finding = found(framework_without_gpu, self.made({"cuda": None, "hip": None}))
        assert finding.severity is Severity.CRITICAL
        assert (
            finding.sentence == "The job has a GPU, but its PyTorch 2.13.0 is built for CPUs only."
        )
        assert "`python -c 'import torch; print(torch.cuda.is_available())'`" in finding.action

    def test_a_build_for_intels_gpus_is_not_one_for_cpus(self):
        torch = {"version": "2.13.0+xpu", "cuda": None, "hip": None}
        sentence = found(framework_without_gpu, self.made(torch)).sentence
        assert sentence.endswith("its PyTorch 2.13.0+xpu is built for Intel's GPUs only.")

    @pytest.mark.parametrize(
        ("devices", "count"),
        [(["cpu"], 1), (["cuda:0"], 0), (["cpu", "cuda:0"], 0), ([], 0), (None, 0)],
    )
    @pytest.mark.parametrize("built", [{"cuda": "12.8"}, {"hip": "6.2"}])
    def test_a_model_in_the_hosts_memory(self, devices, count, built):
        verdict = judged(framework_without_gpu, self.made({**built, "devices": devices}))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].sentence.endswith("the model's parameters are in the host's memory.")

    def test_all_of_its_processes(self):
        made = self.made({"cuda": "12.8", "devices": ["cpu"]}, {"cuda": "12.8"})
        assert judged(framework_without_gpu, made) == []

    @pytest.mark.parametrize(("busy", "count"), [(0.9, 1), (1.0, 0)])
    def test_something_else_may_use_it(self, busy, count):
        # JAX computes on the GPU, PyTorch loads the data; or parameters are offloaded.
        assert len(judged(framework_without_gpu, self.made({}, signals=gpu(busy)))) == count

    def test_abstains_where_it_was_not_seen(self):
        hidden = self.made({}, signals=gpu(UNSUPPORTED))
        assert isinstance(judged(framework_without_gpu, hidden), Abstention)
        assert (
            judged(framework_without_gpu, self.made({"cuda": "12"}, signals=gpu(UNSUPPORTED))) == []
        )

    @staticmethod
    def computed_by_jax(*platforms, signals=None, **libraries):
        ranks = [
            using(process(pid=10 + n), jax={"version": "0.10.2", "platform": platform}, **libraries)
            for n, platform in enumerate(platforms)
        ]
        return watched(*ranks, parts=[NodePart(NODE, gpus=[signals or untouched_gpu()])])

    def test_jax_on_cpus(self):
        finding = found(framework_without_gpu, self.computed_by_jax("cpu", "cpu"))
        assert finding.severity is Severity.CRITICAL
        assert finding.sentence == "The job has a GPU, but its JAX 0.10.2 computes on CPUs."
        assert figures(finding) == {"JAX": "0.10.2", "GPUs": 1.0}
        assert "`pip install 'jax[cuda12]'`" in finding.action
        assert "`JAX_PLATFORMS` does not say `cpu`" in finding.action

    def test_a_tensorflow_that_is_built_for_cpus(self):
        facts = {"version": "2.19.0", "cuda": False, "rocm": False}
        parts = [NodePart(NODE, gpus=[untouched_gpu()])]
        finding = found(
            framework_without_gpu, watched(using(process(), tensorflow=facts), parts=parts)
        )
        assert finding.sentence == (
            "The job has a GPU, but its TensorFlow 2.19.0 is built for CPUs only."
        )
        assert "list_physical_devices" in finding.action
        for other in (
            {"tensorflow": {**facts, "cuda": True}},
            {"tensorflow": {"version": "2.19.0"}},
            {"tensorflow": facts, "cupy": {"version": "13"}},
        ):
            made = watched(using(process(), **other), parts=parts)
            assert judged(framework_without_gpu, made) == []

    @pytest.mark.parametrize("platforms", [("gpu",), ("cpu", "gpu"), ("cpu", None), (None,)])
    def test_all_of_jaxs_processes_are_known_to(self, platforms):
        assert judged(framework_without_gpu, self.computed_by_jax(*platforms)) == []

    def test_jax_beside_a_pytorch_that_could(self):
        made = self.computed_by_jax("cpu", torch={"version": "2.13.0", "cuda": "12.8"})
        assert "JAX" in found(framework_without_gpu, made).sentence
        used = self.computed_by_jax(
            "cpu", torch={"version": "2.13.0", "cuda": "12.8"}, signals=gpu(1.0)
        )
        assert judged(framework_without_gpu, used) == []

    def test_abstains_where_jaxs_gpu_was_not_seen(self):
        hidden = self.computed_by_jax("cpu", signals=gpu(UNSUPPORTED))
        assert isinstance(judged(framework_without_gpu, hidden), Abstention)

    def test_other_programs_and_nodes(self):
        assert judged(framework_without_gpu, self.made(None)) == []
        assert judged(framework_without_gpu, watched(process(torch={}))) == []
