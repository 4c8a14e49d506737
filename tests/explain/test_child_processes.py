"""Starting worker processes, waiting for them, and the objects that they share."""

from __future__ import annotations

import pytest

from explain.program_parts import of_library, of_python, own, process, seen, watched, worker
from explain.scenario_parts import NodePart, found, judged
from teho.explain.activities import activity_of, activity_times
from teho.explain.program import program_of
from teho.explain.rules.cpu import known_activity
from teho.model.stack import Frame, State

POPEN = of_python("multiprocessing/popen_fork.py", "Popen.wait")
JOIN = of_python("multiprocessing/process.py", "BaseProcess.join")
WAIT = of_python("multiprocessing/connection.py", "Connection._recv")
BOOT = of_python("multiprocessing/process.py", "BaseProcess._bootstrap")
EXECUTOR = "concurrent/futures/process.py"
MANAGERS = "multiprocessing/managers.py"


def call(proxy="BaseProxy._callmethod"):
    return of_python(MANAGERS, proxy)


STARTED = (
    (of_python("multiprocessing/popen_fork.py", "Popen._launch"), own("worker.start()")),
    (of_python("multiprocessing/popen_spawn_posix.py", "Popen.__init__"), own("p.start()")),
    (of_python("multiprocessing/process.py", "BaseProcess.start"), own("p.start()")),
    (of_python("multiprocessing/context.py", "SpawnProcess._Popen"), own("p.start()")),
    (of_python("multiprocessing/forkserver.py", "ForkServer.ensure_running"), own("p.start()")),
    (of_python("multiprocessing/pool.py", "Pool._repopulate_pool_static"), own("Pool(4)")),
    (of_python("multiprocessing/pool.py", "Pool._terminate_pool"), own("with Pool(4) as pool:")),
    (of_python(EXECUTOR, "ProcessPoolExecutor._spawn_process"), own("pool.submit(f)")),
    (of_python(EXECUTOR, "ProcessPoolExecutor.shutdown"), own("with pool:")),
    (of_library("joblib/externals/loky/reusable_executor.py", "_ReusablePoolExecutor._resize"),
     own("Parallel(4)(jobs)")),
    (own("Pool(4)"),),
)  # fmt: skip
NOT_STARTED = (
    (POPEN, JOIN, own("process.join()")),
    (of_python("multiprocessing/popen_fork.py", "Popen.poll"), POPEN, JOIN, own("p.join()")),
    (of_python("multiprocessing/popen_forkserver.py", "Popen.poll"), own("p.is_alive()")),
    (of_python("multiprocessing/pool.py", "Pool.join"), own("pool.join()")),
    (of_python("threading.py", "Thread.join"), of_python("multiprocessing/pool.py", "Pool.join"),
     own("pool.join()")),
    (of_python("multiprocessing/util.py", "_exit_function"),),
    (of_python("multiprocessing/pool.py", "ApplyResult.wait"), own("pool.map(f, x)")),
    (of_library("joblib/externals/loky/backend/popen_loky_posix.py", "Popen.wait"), own("p()")),
)  # fmt: skip


@pytest.mark.parametrize("frames", STARTED)
@pytest.mark.parametrize("state", [State.NATIVE, State.PROCESS])
def test_starting_and_ending_processes(frames, state):
    assert activity_of(seen(frames, 1.0, state)).name == "processes_started"


@pytest.mark.parametrize("frames", NOT_STARTED)
@pytest.mark.parametrize("state", [State.NATIVE, State.PROCESS, State.LOCK])
def test_waiting_for_processes_starts_none(frames, state):
    activity = activity_of(seen(frames, 1.0, state))
    assert activity is None or activity.name != "processes_started"


class TestShutdown:
    """`with ProcessPoolExecutor() as pool: pool.submit(f)` waits at the end of the block."""

    @staticmethod
    def ended(*children, ending_s=80.0, waits_s=0.0):
        frames = of_python(EXECUTOR, "ProcessPoolExecutor.shutdown"), own("with pool:")
        result = of_python("concurrent/futures/_base.py", "Future.result"), own("f.result()")
        stacks = [
            seen(frames, ending_s, State.LOCK), seen(result, waits_s, State.LOCK),
        ]  # fmt: skip
        main = process(*(one for one in stacks if one.wall_s), progress=())
        times = activity_times(program_of((main, *children)).mains[0])
        return next((one.wall_s for one in times if one.activity.name == "processes_started"), 0.0)

    @staticmethod
    def child(worked_s, idle_s=0.0, pid=50, **facts):
        loop = of_python(EXECUTOR, "_process_worker")
        get = of_python("multiprocessing/queues.py", "Queue.get")
        stacks = [
            seen((own("fit(x)"), loop, BOOT), worked_s), seen((get, loop, BOOT), idle_s),
        ]  # fmt: skip
        return worker(*(one for one in stacks if one.wall_s), pid=pid, **facts)

    def test_workers_that_work_are_waited_for(self):
        assert self.ended(self.child(80.0), self.child(80.0, pid=51)) == 0.0

    def test_one_worker_with_all_the_work(self):
        crew = [self.child(1.0, 79.0, pid=51 + n) for n in range(7)]
        assert self.ended(self.child(80.0), *crew) == 0.0

    def test_only_the_rest_counts(self):
        assert self.ended(self.child(60.0, 20.0)) == pytest.approx(20.0)
        assert self.ended(self.child(60.0, 20.0), waits_s=15.0) == pytest.approx(35.0)

    def test_pools_that_are_made_again(self):
        crew = [
            self.child(2.0, 1.0, pid=50 + n, began_s=101.0 + 8 * n, wall_s=3.0) for n in range(10)
        ]
        assert self.ended(*crew) == pytest.approx(60.0)

    def test_without_known_workers_all_of_it_counts(self):
        assert self.ended() == 80.0


REPORT = own("tally.get(key, 0)", 49, "report")
LOCKED = own("with lock:", 48, "report")
THREAD = Frame("<thread>", "", 0, "")


class TestManager:
    @staticmethod
    def counts(proxy, line):
        return (WAIT, call(), call(proxy), line)

    @pytest.mark.parametrize("state", [State.PYTHON, State.PROCESS])
    @pytest.mark.parametrize(
        ("proxy", "line"),
        [
            ("DictProxy.get", REPORT),
            ("DictProxy.__setitem__", own("tally[key] = n")),
            ("ListProxy.append", own("found.append(x)")),
            ("ValueProxy.get", own("count.value += 1")),
            ("AcquirerProxy.__exit__", LOCKED),
        ],
    )
    def test_round_trips_count_also_while_they_wait(self, state, proxy, line):
        assert activity_of(seen(self.counts(proxy, line), 1.0, state)).name == "manager_asked"

    @pytest.mark.parametrize(
        ("proxy", "line"),
        [
            ("QueueProxy.get", own("queue.get()")),
            ("QueueProxy.get", own("queue.get(timeout=5)")),
            ("QueueProxy.get", own("queue.get(True, 5)")),
            ("JoinableQueueProxy.join", own("queue.join()")),
            ("EventProxy.wait", own("stop.wait(60)")),
            ("BarrierProxy.wait", own("barrier.wait()")),
            ("ConditionProxy.wait_for", own("ready.wait_for(is_full)")),
            ("AcquirerProxy.acquire", own("lock.acquire()")),
            ("AcquirerProxy.__enter__", LOCKED),  # another process may have it for long
        ],
    )
    def test_waiting_for_others_does_not(self, proxy, line):
        assert activity_of(seen(self.counts(proxy, line), 1.0, State.PROCESS)) is None

    @staticmethod
    def run(*of_workers):
        """Return a program that waits for two workers, beside a manager that serves them."""
        main = process(
            seen((of_python("multiprocessing/popen_fork.py", "Popen.poll"), POPEN, JOIN,
                  own("process.join()", 71, "main")), 98.0, State.PROCESS),
            progress=(),
        )  # fmt: skip
        serving = seen(
            (of_python(MANAGERS, "Server.serve_client"), of_python("threading.py", "Thread.run"),
             THREAD, of_python(MANAGERS, "Server.serve_forever"),
             of_python(MANAGERS, "BaseManager._run_server"), BOOT,
             own("mp.Manager()", 61, "main")),
            97.0, State.THREADS,
        )  # fmt: skip
        crew = [worker(*of_workers, pid=60 + n) for n in range(2)]
        parts = [NodePart(cores=2, cores_used=1.2)]
        return watched(main, worker(serving, pid=50), *crew, parts=parts)

    def test_workers_that_wait_for_the_manager(self):
        inner = (own("report(day, age)", 40, "spread"), BOOT)
        made = self.run(
            seen((*self.counts("DictProxy.get", REPORT), *inner), 40.0, State.PROCESS),
            seen((*self.counts("AcquirerProxy.__exit__", LOCKED), *inner), 30.0, State.PYTHON),
            seen((own("rng.random()", 37, "spread"), BOOT), 10.0),
        )
        finding = found(known_activity, made)
        assert finding.sentence == (
            "Accessing the shared objects of a `Manager()` took 86 % of the time, in the program's "
            "worker processes, at train.py:49 and train.py:48."
        )
        assert "`with lock:`" in finding.action

    def test_workers_that_work_are_no_finding(self):
        asks = seen((*self.counts("DictProxy.get", REPORT), BOOT), 3.0, State.PROCESS)
        made = self.run(asks, seen((own("rng.random()", 37, "spread"), BOOT), 90.0))
        assert judged(known_activity, made) == []

    def test_workers_that_wait_for_a_task(self):
        asks = seen((*self.counts("QueueProxy.get", own("tasks.get()")), BOOT), 90.0, State.PROCESS)
        made = self.run(asks, seen((own("rng.random()", 37, "spread"), BOOT), 5.0))
        assert judged(known_activity, made) == []

    def test_a_function_of_the_program_in_the_manager_is_work(self):
        main = process(seen((POPEN, JOIN, own("p.join()")), 98.0, State.PROCESS), progress=())
        stack = (own("copy.deepcopy(x)", 8, "Shared.add"),
                 of_python(MANAGERS, "Server.serve_client"), THREAD,
                 of_python(MANAGERS, "BaseManager._run_server"), BOOT)  # fmt: skip
        child = worker(seen(stack, 97.0, State.THREADS), pid=50)
        finding = found(known_activity, watched(main, child))
        assert finding.sentence.startswith("Copying Python objects")


class TestCommands:
    """A program starts Python for each task, and sleeps until some of the processes have ended."""

    IMPORT = Frame("<frozen importlib._bootstrap>", "_find_and_load", 0, "")
    LINE = own("from sklearn.ensemble import ExtraTreesClassifier", 15, "<module>")
    SLEEP = own("time.sleep(2.0)", 56, "search")

    def made(self, count=12, import_s=4.0, work_s=4.0, beside=(), waits=None):
        crew = [
            worker(
                seen((self.IMPORT, self.LINE, *beside), import_s),
                seen((own("trial(x)", 66), *beside), work_s),
                pid=20 + n,
                began_s=101.0 + 12 * (n // 2),
            )
            for n in range(count)
        ]
        main = process(waits or seen((self.SLEEP,), 90.0, State.SLEEPING), progress=())
        return watched(main, *crew, parts=[NodePart(cores=8, cores_used=2.0)])

    def of_imports(self, *args, **facts):
        findings = judged(known_activity, self.made(*args, **facts))
        return [one for one in findings if one.sentence.startswith("Importing")]

    def test_each_command_imports_again(self):
        sleep, imports = judged(known_activity, self.made())
        assert sleep.sentence.startswith("Sleeping took 90 % of the time")
        # Two processes at a time: 12 · 4 s / 2.
        assert imports.sentence.startswith("Importing modules took 24 % of the time")
        assert "train.py:15" in imports.sentence
        assert "`with concurrent.futures.ProcessPoolExecutor(2) as pool:" in imports.action

    def test_a_program_that_waits_for_each_command(self):
        waits = seen(
            (of_python("subprocess.py", "Popen.wait"), own("p.wait()", 56)), 90.0, State.PROCESS
        )
        (imports,) = self.of_imports(waits=waits)
        assert "ProcessPoolExecutor" in imports.action

    def test_workers_of_multiprocessing_are_kept(self):
        (imports,) = self.of_imports(beside=(BOOT,))
        assert "Keep the worker processes for the whole run" in imports.action

    def test_a_few_commands_or_short_imports(self):
        assert self.of_imports(7) == []
        assert self.of_imports(import_s=1.0, work_s=7.0) == []
