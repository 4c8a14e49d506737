"""What is made of stacks: who does the program's work, who loads its data, and what that takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain.program_parts import (
    LOADERS,
    LOOP,
    PYTHONS,
    asked,
    awaiting,
    begun,
    collating,
    computing,
    fetch,
    fetching,
    idle,
    in_process,
    in_worker,
    loader,
    of_library,
    of_python,
    opening,
    own,
    process,
    seen,
    starting,
    worker,
)
from teho.explain.program import program_of
from teho.model.program import Doing, Part
from teho.model.stack import Frame, State


def parts_of(*stacks, workers=()):
    (main,) = program_of([process(*stacks), *workers]).mains
    return main.feed.main_s


DATALOADER = f"{LOADERS}/dataloader.py"


class TestParts:
    @pytest.mark.parametrize("python", PYTHONS)
    def test_in_the_process_itself(self, python):
        below = in_process(python)
        samples = (own("decode(raw)", 20, "__getitem__"), *fetch(python), *below)
        whole = fetch(python, "data = self.dataset.__getitems__(possibly_batched_index)")
        assert parts_of(seen(samples, 3.0)) == {Part.FETCHING: 3.0}
        # From PyTorch 2.0 on a data set may be asked for all samples of a batch at once.
        assert parts_of(seen((*whole, *below), 3.0)) == {Part.FETCHING: 3.0}
        assert parts_of(collating(2.0, python=python)) == {Part.COLLATING: 2.0}

    @pytest.mark.parametrize("python", PYTHONS)
    def test_with_workers(self, python):
        name = "_MultiProcessingDataLoaderIter"
        assert parts_of(awaiting(5.0, python)) == {Part.AWAITING: 5.0}
        assert parts_of(starting(1.0, python)) == {Part.STARTING: 1.0}
        join = of_python("multiprocessing/process.py", "BaseProcess.join", python)
        end = of_library(DATALOADER, f"{name}._shutdown_workers", "", python)
        following = of_library(DATALOADER, f"{name}._next_data", "", python)
        assert parts_of(seen((join, end, following, *asked(python)), 1.0)) == {Part.STARTING: 1.0}
        # Those that stay are told to begin anew, and answer.
        again = of_library(DATALOADER, f"{name}._reset", "", python)
        answer = of_library(DATALOADER, f"{name}._get_data", "", python)
        begin = of_library(DATALOADER, "DataLoader.__iter__", "", python)
        assert parts_of(seen((answer, again, begin, LOOP), 1.0)) == {Part.STARTING: 1.0}

    @pytest.mark.parametrize("forked", [True, False])
    @pytest.mark.parametrize("python", PYTHONS)
    def test_of_workers(self, python, forked):
        below = in_worker(python, forked=forked)
        one = worker(
            idle(9.0, python, forked=forked),
            seen((own("decode(raw)"), *fetch(python), *below), 4.0),
            collating(2.0, below, python),
        )
        (main,) = program_of([process(awaiting(6.0)), one]).mains
        assert main.feed.workers_s == {Part.IDLE: 9.0, Part.FETCHING: 4.0, Part.COLLATING: 2.0}
        assert main.feed.main_s == {Part.AWAITING: 6.0}

    def test_a_forked_worker_that_has_not_begun_yet_is_starting(self):
        bootstrap = of_python("multiprocessing/process.py", "BaseProcess._bootstrap")
        one = worker(seen((bootstrap, *begun()), 0.5), idle(1.0))
        (main,) = program_of([process(), one]).mains
        assert main.feed.workers_s == {Part.STARTING: 0.5, Part.IDLE: 1.0}

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("open(self.paths[i], 'rb')", Part.OPENING),
            ("builtins.open(filename, 'rb')", Part.OPENING),
            ("file.read()", Part.OPENING),
            ("np.load(self.paths[i])", Part.OPENING),
            ("cv2.imread(path)", Part.OPENING),
            ("torchvision.io.read_image(path)", Part.OPENING),
            ("h5py.File(path)", Part.OPENING),
            ("decode(self.raw[i])", Part.FETCHING),
            ("self.reopen(i)", Part.FETCHING),
            ("", Part.FETCHING),
        ],
    )
    def test_opening_and_reading_by_the_innermost_call(self, text, part):
        assert parts_of(fetching(3.0, text=text)) == {part: 3.0}

    def test_reading_a_part_of_one_large_file_opens_none(self):
        read = Frame("/opt/site-packages/h5py/_hl/dataset.py", "__getitem__", 7, "self.id.read(a)")
        stack = seen((read, own("self.images[i]"), *fetch(), *in_process()), 3.0)
        assert parts_of(stack) == {Part.FETCHING: 3.0}

    def test_a_batch_put_together_by_the_programs_own_function_is_its_own_work(self):
        stack = (own("tokenize(batch)", 25, "collate"), *fetch(text="self.collate_fn(data)"))
        assert parts_of(seen((*stack, *in_process()), 2.0)) == {Part.FETCHING: 2.0}

    def test_files_and_functions_of_the_program_may_bear_the_same_names(self):
        frames = (
            Frame("/home/ann/collate.py", "collate", 3, ""),
            Frame("/home/ann/fetch.py", "fetch", 3, ""),
        )
        below = (
            Frame("/home/ann/fetch.py", "start", 9, ""),
            Frame("/home/ann/a.py", "_reset", 1, ""),
        )
        assert parts_of(seen((*frames, *fetch(), *in_process(), *below), 2.0)) == {
            Part.FETCHING: 2.0
        }
        waits = awaiting(2.0).frames
        assert parts_of(seen((*waits, *below), 2.0)) == {Part.AWAITING: 2.0}
        assert parts_of(seen((own("x"), *frames, *below), 2.0)) == {}

    def test_other_libraries_loaders_are_waited_for(self):
        step = of_library("tensorflow/python/data/ops/iterator_ops.py", "OwnedIterator.__next__")
        assert parts_of(seen((step, LOOP), 2.0)) == {Part.AWAITING: 2.0}


class TestWorkers:
    @pytest.mark.parametrize(
        ("facts", "count"),
        [({}, 1), ({"parent_pid": 99}, 0), ({"node": "r01g02"}, 0)],
    )
    def test_are_children_of_the_same_node(self, facts, count):
        one = worker(idle(5.0), fetching(5.0, in_worker()), **facts)
        (main,) = program_of([process(awaiting(9.0)), one]).mains
        assert main.feed.workers == count
        assert bool(main.feed.workers_s) is bool(count)

    def test_of_a_fork_server_are_its_own(self):
        server = worker(seen((own("select()"),), 9.0), pid=20)
        ours, other = worker(idle(5.0), parent_pid=20), worker(idle(5.0), pid=12, parent_pid=30)
        (main,) = program_of([process(awaiting(9.0)), server, ours, other]).mains
        assert main.feed.workers == 1

    def test_other_children_are_none(self):
        helper = worker(seen((own("tar()"),), 5.0))
        (main,) = program_of([process(awaiting(9.0)), helper]).mains
        assert main.feed.workers == 0

    def test_lines_of_all_processes_together(self):
        many = [
            worker(fetching(4.0, in_worker()), idle(1.0), opening(2.0, in_worker()), pid=11 + n)
            for n in range(2)
        ]
        (main,) = program_of([process(awaiting(9.0), fetching(1.0)), *many]).mains
        assert [(frame.line, wall_s) for frame, wall_s in main.feed.lines] == [(20, 13.0)]
        assert main.feed.wait_s == 10.0


class TestMains:
    def test_a_launcher_is_none(self):
        launcher = process(
            seen((own("time.sleep(1)"),), 110.0, State.WAITING), pid=1, wall_s=110.0, progress=()
        )
        ranks = [process(pid=10 + n, parent_pid=1) for n in range(2)]
        assert [main.process.pid for main in program_of([launcher, *ranks]).mains] == [10, 11]

    def test_nor_what_is_short_compared_with_the_longest(self):
        short = process(pid=11, wall_s=4.9)
        stage = process(pid=12, wall_s=5.0)
        mains = program_of([short, process(), stage]).mains
        assert [main.process.pid for main in mains] == [10, 12]

    def test_without_steps_it_is_the_busiest(self):
        waits = process(
            seen((own("run()"),), 200.0, State.WAITING), wall_s=200.0, pid=1, progress=()
        )
        works = process(progress=())
        assert [main.process.pid for main in program_of([waits, works]).mains] == [10]

    def test_a_process_that_requests_batches_is_one(self):
        evaluates = process(pid=12, progress=(), loaders=[loader()])
        idles = process(pid=13, progress=(), loaders=[loader(batches=0)])
        mains = program_of([evaluates, idles, process()]).mains
        assert {main.process.pid for main in mains} == {10, 12}

    def test_ranks_that_exchange_data_are_each_one(self):
        agent = process(seen((own("sleep(1)"),), 99.0, State.SLEEPING), pid=5, progress=())
        waits = process(seen((own("dist.all_reduce(x)"),), 40.0), pid=10, parent_pid=5, progress=())
        works = process(pid=11, parent_pid=5, progress=())
        helper = process(pid=12, parent_pid=5, wall_s=49.0, progress=())
        mains = program_of([agent, waits, works, helper]).mains
        assert [main.process.pid for main in mains] == [10, 11]

    def test_none_without_time(self):
        assert program_of([]) is None
        assert program_of([process(wall_s=0.0)]) is None

    def test_its_loader_is_the_one_that_it_waited_for(self):
        loaders = [loader(first_s=1.0, batches=900), loader(first_s=9.0, batches=9)]
        (main,) = program_of([process(loaders=loaders)]).mains
        assert main.feed.loader is loaders[1]

    def test_shares(self):
        (main,) = program_of([process(awaiting(20.0), torch={"rank": 3})]).mains
        assert main.percent(Doing.LOADING) == 20.0
        assert main.seconds(Doing.LOADING, Doing.NATIVE) == 100.0
        assert main.lines(Doing.NATIVE)[0][0] == computing(1.0).frames[0]
        assert main.lines(Doing.SAVING) == ()
        assert main.library["rank"] == 3
        assert program_of([process()]).mains[0].library == {}


FRAMES = st.lists(
    st.sampled_from(
        [
            *in_process(),
            *in_worker(),
            *fetch(),
            *collating(1.0).frames,
            *awaiting(1.0).frames,
            own("open(path)"),
            own("x.item()"),
            Frame("", "", 0, ""),
        ]
    ),
    max_size=6,
)
SECONDS = st.floats(0, 1e4)
PROCESSES = st.lists(
    st.builds(
        lambda stacks, pid, parent, wall_s: process(
            *stacks, pid=pid, parent_pid=parent, wall_s=wall_s, loaders=[loader()]
        ),
        st.lists(st.builds(seen, FRAMES, SECONDS), max_size=5),
        st.integers(1, 4),
        st.integers(1, 4),
        SECONDS,
    ),
    max_size=4,
)


@given(PROCESSES)
def test_the_parts_add_up_to_the_waiting_and_doings_to_all(processes):
    program = program_of(processes)
    for main in program.mains if program else ():
        assert main.feed.wait_s == pytest.approx(main.seconds(Doing.LOADING))
        of_stacks = sum(one.wall_s for one in main.process.stacks)
        assert sum(spent.wall_s for spent in main.spent) == pytest.approx(of_stacks)
