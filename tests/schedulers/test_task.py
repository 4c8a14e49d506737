"""Which task a process is, by the environment of every launcher that there is."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.errors import InputError
from teho.schedulers.task import Task, is_batch_script, is_step, rank_places, read_task

JOB = {
    "SLURM_JOB_ID": "1234",
    "SLURM_CLUSTER_NAME": "oak",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_NTASKS": "8",
}
BATCH = {**JOB, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
STEP = {
    **JOB,
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "OMPI_COMM_WORLD_NODE_RANK": "1",
    "PMIX_NAMESPACE": "3911581697",
    "PMIX_RANK": "5",
}
HYDRA = {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}
PMI = {"PMI_RANK": "5", "PMI_SIZE": "8", "PMI_LOCAL_RANK": "1", "PMI_LOCAL_SIZE": "4"}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "1234",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "29500",
}
HOROVODRUN = {
    "HOROVOD_GLOO_RENDEZVOUS_PORT": "40001",
    "HOROVOD_RANK": "5",
    "HOROVOD_SIZE": "8",
    "HOROVOD_LOCAL_RANK": "1",
    "HOROVOD_LOCAL_SIZE": "4",
    "HOROVOD_CROSS_RANK": "1",
    "HOROVOD_CROSS_SIZE": "2",
}
BY_HAND = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
HOST = "n2.oak.example"


def place(task: Task) -> tuple[str, int, int, int, int, int]:
    return (
        task.started_by, task.rank, task.size, task.local_rank, task.local_size, task.node_rank,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "started_by", "hosts"),
    [
        (STEP, "Slurm", ("n1", "n2")),
        # srun --mpi=pmix, and --mpi=pmi2 or Cray's PMI, whose numbers say the same.
        ({**STEP, "PMIX_RANK": "5", "PMIX_NAMESPACE": "slurm.pmix.1234.0"}, "Slurm", ("n1", "n2")),
        ({**STEP, "PMI_RANK": "5", "PMI_SIZE": "8"}, "Slurm", ("n1", "n2")),
        # mpirun starts its daemons through srun, whose numbers count daemons.
        ({**STEP, "SLURM_PROCID": "1", "SLURM_LOCALID": "0", **OPEN_MPI}, "Open MPI", ("n1", "n2")),
        ({**JOB, **OPEN_MPI}, "Open MPI", ("n1", "n2")),
        (OPEN_MPI, "Open MPI", ()),
        ({**STEP, "SLURM_PROCID": "1", **HYDRA}, "MPI (Hydra)", ("n1", "n2")),
        (HYDRA, "MPI (Hydra)", ()),
        (PMI, "PMI", ()),
        ({**STEP, "SLURM_PROCID": "1", **TORCHRUN}, "torchrun", ("n1", "n2")),
        (TORCHRUN, "torchrun", ()),
        (HOROVODRUN, "horovodrun", ()),
        ({**STEP, "SLURM_PROCID": "1", **HOROVODRUN}, "horovodrun", ("n1", "n2")),
        (BY_HAND, "RANK and WORLD_SIZE", ()),
        ({**JOB, **BY_HAND}, "RANK and WORLD_SIZE", ("n1", "n2")),
    ],
)  # fmt: skip
def test_every_launcher(environment: dict[str, str], started_by: str, hosts: tuple[str, ...]):
    task = read_task(environment, HOST)
    assert place(task) == (started_by, 5, 8, 1, 4, 1)
    assert task.hosts == hosts
    assert task.tasks_per_node == (4,) * len(hosts)
    assert task.node_count == (len(hosts) or None)
    assert environment[task.rank_name] == "5"
    assert task.job == environment.get("SLURM_JOB_ID", "")


@pytest.mark.parametrize(
    ("environment", "job"),
    [
        ({}, ""),
        (BATCH, "1234"),
        # The shell of salloc, with a step of its own or without, and a step that is not numbered.
        ({**BATCH, "SLURM_STEP_ID": "4294967290", "SLURM_STEPID": "4294967290"}, "1234"),
        (JOB, "1234"),
        ({**STEP, "SLURM_STEP_ID": "4294967291"}, "1234"),
        ({**BATCH, "SLURM_ARRAY_JOB_ID": "1200", "SLURM_ARRAY_TASK_ID": "3"}, "1200_3"),
        ({"JOB_ID": "77", "SGE_TASK_ID": "undefined", "NSLOTS": "4"}, "77"),
        ({"JOB_ID": "77", "SGE_TASK_ID": "2", "PE_HOSTFILE": "/nonexistent"}, "77.2"),
        # Half of a pair says nothing.
        ({"WORLD_SIZE": "8"}, ""),
        ({"RANK": "5"}, ""),
        ({"TORCHELASTIC_RUN_ID": "none"}, ""),
        ({"PMI_SIZE": "8"}, ""),
    ],
)
def test_a_single_program(environment: dict[str, str], job: str):
    task = read_task(environment, HOST)
    assert place(task) == ("", 0, 1, 0, 1, 0)
    assert (task.job, task.key, task.hosts) == (job, "", ())
    assert not is_step(task)


def test_a_batch_script_is_no_step():
    assert is_batch_script(BATCH)
    assert is_batch_script({**BATCH, "SLURM_STEP_ID": "4294967290"})
    assert not is_batch_script(STEP)
    assert not is_batch_script({})


def test_all_in_one_place_need_no_list_of_nodes(tmp_path: Path):
    few = {**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1"}
    task = read_task({**JOB, "SLURM_JOB_NODELIST": "a broken list", **few}, HOST)
    assert (task.hosts, task.tasks_per_node, task.node_rank) == ((HOST,), (4,), 0)
    task = read_task({**few, "JOB_ID": "77", "PE_HOSTFILE": str(tmp_path / "none")}, HOST)
    assert (task.hosts, task.job) == ((HOST,), "77")


def test_open_mpi_in_grid_engine(tmp_path: Path):
    hosts = tmp_path / "pe_hostfile"
    job = {"JOB_ID": "77", "SGE_TASK_ID": "undefined", "PE_HOSTFILE": str(hosts), **OPEN_MPI}
    hosts.write_text("n1.oak.example 4 q@n1 UNDEFINED\nn2.oak.example 4 q@n2 UNDEFINED\n")
    task = read_task(job, "n2")
    assert place(task) == ("Open MPI", 5, 8, 1, 4, 1)
    assert task.hosts == ("n1.oak.example", "n2.oak.example")
    assert task.job == "77"
    # As many slots as tasks, and uneven: every task of either node knows it.
    hosts.write_text("n1 5 q UNDEFINED\nn2 3 q UNDEFINED\n")
    first = {"OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "4"}
    second = {"OMPI_COMM_WORLD_RANK": "7", "OMPI_COMM_WORLD_LOCAL_RANK": "2"}
    first_task = read_task({**job, **first, "OMPI_COMM_WORLD_LOCAL_SIZE": "5"}, "n1")
    second_task = read_task({**job, **second, "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, "n2")
    assert first_task.tasks_per_node == second_task.tasks_per_node == (5, 3)
    assert (first_task.node_rank, second_task.node_rank) == (0, 1)
    assert first_task.port == second_task.port
    # Fewer tasks than slots, as many on each node.
    hosts.write_text("n1 20 q UNDEFINED\nn2 20 q UNDEFINED\n")
    assert read_task(job, "n2").tasks_per_node == (4, 4)
    # A host list that does not fit is none: mpirun may use some of the nodes alone.
    hosts.write_text("n1 4 q U\nn2 4 q U\nn3 4 q U\n")
    task = read_task(job, "n2")
    assert (task.hosts, task.node_count, task.node_rank) == ((), None, 1)
    hosts.write_text("n1 four q\n")
    wrong = r"rank 5 on n2: PE_HOSTFILE .* has a line that is not valid: 'n1 four q'"
    with pytest.raises(InputError, match=wrong):
        read_task(job, "n2")


def test_open_mpi_where_grid_engines_host_file_is_the_first_nodes(tmp_path: Path):
    """As node02 of a job on node01 and node02 has it, but for the numbers."""
    job = {
        "JOB_ID": "77", "SGE_TASK_ID": "undefined", "PE_HOSTFILE": str(tmp_path / "elsewhere"),
        "QRSH_PORT": "n1.oak.example:45963", "OMPI_MCA_orte_num_nodes": "2",
        "OMPI_MCA_orte_parent_uri": "522911744.0;tcp://10.0.77.1:60845", **OPEN_MPI,
    }  # fmt: skip
    task = read_task(job, "n2.oak.example")
    assert place(task) == ("Open MPI", 5, 8, 1, 4, 1)
    assert task.hosts == ("n1.oak.example", "n2.oak.example")
    assert (task.first_host, task.tasks_per_node) == ("n1.oak.example", (4, 4))
    # Uneven, and in turns.
    few = {"OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}
    task = read_task({**job, **few}, "n2")
    assert (task.tasks_per_node, task.node_rank) == ((5, 3), 1)
    second = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    assert read_task({**job, **second}, "n2").node_rank == 1
    # Of more nodes, only the first is known.
    task = read_task({**job, "OMPI_MCA_orte_num_nodes": "3"}, "n3")
    assert (task.first_host, task.hosts, task.tasks_per_node) == ("n1.oak.example", (), ())
    # Rank 0 is there, or nobody knows where it is.
    first = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    for nodes in ("2", "3"):
        task = read_task({**job, **first, "OMPI_MCA_orte_num_nodes": nodes}, "n2")
        assert (task.first_host, task.hosts) == ("", ())
    # A daemon that another node's daemon started.
    other = {**job, "OMPI_MCA_orte_parent_uri": "522911744.64;tcp://10.0.77.65:60845"}
    with pytest.raises(InputError, match=r"No such file.*mpirun -x MASTER_ADDR"):
        read_task(other, "n2")


def test_in_a_job_that_qrsh_began_the_first_node_reads_its_list(tmp_path: Path):
    hosts = tmp_path / "pe_hostfile"
    hosts.write_text("n1 4 q UNDEFINED\nn2 4 q UNDEFINED\nn3 4 q UNDEFINED\n")
    job = {"JOB_ID": "77", "PE_HOSTFILE": str(hosts), "QRSH_PORT": "login1:40901", **OPEN_MPI}
    task = read_task({**job, "OMPI_MCA_orte_num_nodes": "2"}, "n2")
    assert (task.first_host, task.hosts) == ("", ())


def test_rank_0_elsewhere_than_on_the_first_node_has_no_list(tmp_path: Path):
    hosts = tmp_path / "pe_hostfile"
    hosts.write_text("n1 4 q UNDEFINED\nn2 4 q UNDEFINED\n")
    first = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    job = {"JOB_ID": "77", "PE_HOSTFILE": str(hosts), **OPEN_MPI, **first}
    assert read_task(job, "n1").first_host == "n1"
    assert (read_task(job, "n2").first_host, read_task(job, "n2").hosts) == ("", ())


def test_nodes_that_torchrun_counts_as_they_come_have_no_list():
    task = read_task({**JOB, **TORCHRUN, "GROUP_RANK": "0"}, HOST)
    assert (task.node_rank, task.hosts, task.tasks_per_node) == (0, (), ())


@pytest.mark.parametrize(
    ("distribution", "places"),
    [
        ("block", [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)]),
        ("block:cyclic", [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)]),
        ("cyclic", [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2)]),
        ("cyclic:block,NoPack", [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2)]),
        ("plane", []),
        ("arbitrary", []),
    ],
)
def test_uneven_tasks_are_dealt_as_slurm_says(distribution: str, places: list[tuple[int, int]]):
    counts = {"SLURM_STEP_NODELIST": "n[1-3]", "SLURM_STEP_TASKS_PER_NODE": "3,1,2"}
    for rank, (node, local) in enumerate(places or [(0, 0)]):
        own = {"SLURM_PROCID": rank, "SLURM_LOCALID": local, "SLURM_NODEID": node}
        environment = {**STEP, **counts, **{name: str(value) for name, value in own.items()}}
        environment |= {"SLURM_STEP_NUM_TASKS": "6", "SLURM_DISTRIBUTION": distribution}
        task = read_task(environment, HOST)
        assert task.local_size == (3, 1, 2)[node]
        assert rank_places(task) == places


def test_ranks_that_mpirun_deals_to_nodes_in_turn():
    by_node = {**JOB, **OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK": "2"}
    assert rank_places(read_task(by_node, HOST)) == []
    task = read_task({**by_node, "OMPI_MCA_rmaps_base_mapping_policy": "node:OVERSUBSCRIBE"}, HOST)
    assert rank_places(task)[:4] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert rank_places(task)[5] == (1, 2)


def test_ranks_that_are_dealt_otherwise_are_not_guessed():
    task = read_task({**STEP, "SLURM_NODEID": "0", "SLURM_LOCALID": "2"}, HOST)
    assert rank_places(task) == []
    assert rank_places(Task(started_by="Slurm")) == []


def test_each_step_has_its_own_key():
    def key(**changes: str) -> str:
        return read_task({**STEP, **changes}, HOST).key

    assert key() == key(SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_NODEID="0")
    steps = [
        key(), key(SLURM_STEP_ID="1"), key(SLURM_JOB_ID="1235"), key(SLURM_CLUSTER_NAME="ash"),
        key(SLURM_RESTART_COUNT="1"), key(SLURM_RESTART_COUNT="2"),
    ]  # fmt: skip
    assert len({*steps}) == len(steps)
    assert key(SLURM_RESTART_COUNT="0") == key()
    array = {"SLURM_ARRAY_JOB_ID": "1200", "SLURM_ARRAY_TASK_ID": "3"}
    assert key(**array) == key()
    assert read_task({**STEP, **array}, HOST).job == "1200_3"


def test_launches_of_one_job_have_keys_of_their_own():
    open_mpi = {**JOB, **OPEN_MPI}
    first = read_task(open_mpi, HOST)
    second = read_task({**open_mpi, "PMIX_NAMESPACE": "3911581698"}, HOST)
    assert first.key != second.key
    assert first.port != second.port
    again = {"TORCHELASTIC_RESTART_COUNT": "1"}
    assert read_task(TORCHRUN, HOST).key != read_task({**TORCHRUN, **again}, HOST).key
    nameless = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}
    other = {**nameless, "MASTER_PORT": "29501"}
    assert read_task(nameless, HOST).key != read_task(other, HOST).key
    other = {**HOROVODRUN, "HOROVOD_GLOO_RENDEZVOUS_PORT": "40002"}
    assert read_task(HOROVODRUN, HOST).key != read_task(other, HOST).key
    # Nothing tells one launch from the next here, so there is no key.
    assert read_task(HYDRA, HOST).key == read_task(BY_HAND, HOST).key == ""


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({**STEP, "SLURM_PROCID": "8"}, ["rank 8 on n2", "rank 8 of 8", "numbers that agree"]),
        ({**STEP, "SLURM_LOCALID": "4"}, ["rank 5 on n2", "local rank 4 of 4"]),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "9"}, ["9 tasks in all, but", "add up to 8"]),
        ({**STEP, "SLURM_NODEID": "2"}, ["2 nodes and the numbers of tasks of 2", "number 2"]),
        ({**STEP, "SLURM_STEP_TASKS_PER_NODE": "4(x3)"}, ["the numbers of tasks of 3 nodes"]),
        ({**STEP, "SLURM_STEP_TASKS_PER_NODE": "four"}, ["rank 5 on n2", "'four'", "4(x2),3"]),
        ({**STEP, "SLURM_STEP_NODELIST": "n[1-"}, ["rank 5 on n2", "'n[1-'", "brackets"]),
        ({**STEP, "SLURM_PROCID": "five"}, ["rank ? on n2", "SLURM_PROCID is 'five'"]),
        ({**STEP, "SLURM_PROCID": "-1"}, ["SLURM_PROCID is '-1'"]),
        ({**STEP, "SLURM_PROCID": "²"}, ["SLURM_PROCID is '²'"]),
        ({**STEP, "SLURM_PROCID": "9" * 5000}, ["SLURM_PROCID is '999"]),
        ({**STEP, "SLURM_LOCALID": ""}, ["SLURM_LOCALID is not set"]),
        ({**STEP, "SLURM_NODEID": " 1"}, ["SLURM_NODEID is ' 1'"]),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": ""}, ["OMPI_COMM_WORLD_SIZE is not set"]),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "8"}, ["Open MPI reports rank 8 of 8"]),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "9"}, ["9 tasks on this node, but only 8"]),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "0"}, ["local rank 1 of 0"]),
        ({**OPEN_MPI, "SLURM_JOB_NODELIST": "n[1"}, ["rank 5 on n2", "'n[1'"]),
        ({**HYDRA, "MPI_LOCALNRANKS": "x"}, ["rank 5 on n2", "MPI_LOCALNRANKS is 'x'"]),
        ({**TORCHRUN, "WORLD_SIZE": "1e3"}, ["WORLD_SIZE is '1e3'"]),
        ({**BY_HAND, "WORLD_SIZE": "4"}, ["rank 5 of 4"]),
        ({**BY_HAND, "WORLD_SIZE": "1000000"}, ["WORLD_SIZE is '1000000'", "below 1000000"]),
        ({"RANK": "5", "WORLD_SIZE": "8", "NODE_RANK": "1"}, ["this node is number 1 of 1"]),
        ({"PMIX_RANK": "3"}, ["rank 3 on n2", "the number of tasks is not", "export RANK"]),
    ],
)  # fmt: skip
def test_impossible_numbers_are_reported(environment: dict[str, str], words: list[str]):
    with pytest.raises(InputError) as caught:
        read_task(environment, HOST)
    text = str(caught.value)
    assert [word for word in words if word not in text] == []
    assert text.startswith("rank ")
    assert len(text) < 300
    assert "\n" not in text


def test_a_thousand_million_tasks_are_a_slip_of_the_pen():
    huge = {"SLURM_STEP_NUM_TASKS": "999999999", "SLURM_STEP_TASKS_PER_NODE": "499999999,500000000"}
    with pytest.raises(InputError, match="SLURM_STEP_NUM_TASKS is '999999999'"):
        read_task({**STEP, **huge}, HOST)


VALUES = st.one_of(
    st.text(max_size=12),
    st.integers(-3, 20).map(str),
    st.sampled_from(["4(x2)", "n[1-2]", "n[1-", "4(x", "none", "4294967290", "²", "9" * 5000]),
)
STARTERS = [
    {}, BATCH, STEP, OPEN_MPI, HYDRA, TORCHRUN, HOROVODRUN, BY_HAND, {**JOB, **OPEN_MPI},
]  # fmt: skip
NAMES = sorted({name for one in STARTERS for name in one} | {"SLURM_DISTRIBUTION", "JOB_ID"})


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6), st.sampled_from(STARTERS))
def test_any_environment_is_a_task_or_an_error_that_names_it(changes, base):
    try:
        task = read_task({**base, **changes}, HOST)
    except InputError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert said.startswith("rank ")
        assert f" on {HOST}: " in said
        return
    assert 0 <= task.rank < task.size
    assert 0 <= task.local_rank < task.local_size <= task.size
    assert not task.tasks_per_node or sum(task.tasks_per_node) == task.size
    assert len(task.tasks_per_node) in {0, len(task.hosts)}
    assert not task.hosts or task.node_rank < len(task.hosts)
    assert 10_000 <= task.port < 30_000
    places = rank_places(task)
    assert not places or places[task.rank] == (task.node_rank, task.local_rank)


def port(job: int, step: int) -> int:
    changes = {"SLURM_JOB_ID": str(job), "SLURM_STEP_ID": str(step)}
    return read_task({**STEP, **changes}, HOST).port


@given(st.integers(0, 2**31), st.integers(0, 1000))
def test_ports_differ_for_jobs_and_steps_that_follow_each_other(job: int, step: int):
    ports = {
        port(job + later, step + more) for later, more in itertools.product(range(3), range(8))
    }
    assert len(ports) == 24
    assert all(10_000 <= one < 30_000 for one in ports)
    # TensorFlow takes one more for each task of the node.
    ordered = sorted(ports)
    assert min(b - a for a, b in itertools.pairwise(ordered)) > 16


@given(st.lists(st.integers(0, 7), min_size=2, max_size=2, unique=True))
def test_all_ranks_meet_at_one_port(ranks: list[int]):
    def of(rank: int) -> int:
        node, local = divmod(rank, 4)
        own = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local), "SLURM_NODEID": str(node)}
        return read_task({**STEP, **own}, f"n{node + 1}").port

    assert of(ranks[0]) == of(ranks[1])


def test_tasks_of_an_array_meet_at_ports_of_their_own():
    def of(environment: dict[str, str]) -> int:
        return read_task({**STEP, **environment}, HOST).port

    array = {"SLURM_ARRAY_JOB_ID": "1200"}
    first = of({**array, "SLURM_JOB_ID": "1201", "SLURM_ARRAY_TASK_ID": "1"})
    second = of({**array, "SLURM_JOB_ID": "1202", "SLURM_ARRAY_TASK_ID": "2"})
    assert first != second
