"""Host lists and host files: what goes in comes out, and what is wrong is said."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.errors import InputError
from teho.schedulers.hostlist import (
    expand_counts,
    expand_hosts,
    is_number,
    job_hosts,
    parse_pe_hostfile,
)

NAMES = st.from_regex(r"[a-z]{1,3}[-.a-z]{0,3}", fullmatch=True)
NUMBERED = st.builds(
    lambda prefix, suffix, width, numbers: [
        f"{prefix}{number:0{width}d}{suffix}" for number in numbers
    ],
    NAMES,
    st.sampled_from(["", "-ib", ".bullx"]),
    st.integers(1, 4),
    st.lists(st.integers(0, 2000), min_size=1, max_size=20),
)
HOSTS = st.lists(st.one_of(NUMBERED, NAMES.map(lambda name: [name])), min_size=1, max_size=5)


def compress(groups: list[list[str]]) -> str:
    """Write host names as Slurm does, by a way of its own: runs of digits side by side."""
    parts = []
    for names in groups:
        digits = [index for index, sign in enumerate(names[0]) if sign.isdigit()]
        if not digits:
            parts += names
            continue
        head = names[0][: digits[0]]
        tail = names[0].rstrip("-.abcdefghijklmnopqrstuvwxyz")
        tail = names[0][len(tail) :]
        numbers = [name[len(head) : len(name) - len(tail)] for name in names]
        runs: list[list[str]] = []
        for number in numbers:
            before = runs[-1][-1] if runs else None
            # A run goes on while its first number's width still writes the next one.
            if before and f"{int(before) + 1:0{len(runs[-1][0])}d}" == number:
                runs[-1].append(number)
            else:
                runs.append([number])
        inside = ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
        parts.append(f"{head}[{inside}]{tail}" if len(numbers) > 1 else f"{head}{numbers[0]}{tail}")
    return ",".join(parts)


@given(HOSTS)
def test_what_is_compressed_comes_back(groups: list[list[str]]) -> None:
    expected = tuple(name for names in groups for name in names)
    assert expand_hosts(compress(groups)) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("r01g01", ["r01g01"]),
        ("r01g[01-03,07],login1", ["r01g01", "r01g02", "r01g03", "r01g07", "login1"]),
        ("nid[005001-005002]", ["nid005001", "nid005002"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("r[1-2]n[01,3]-ib,x", ["r1n01-ib", "r1n3-ib", "r2n01-ib", "r2n3-ib", "x"]),
        ("[1-2]", ["1", "2"]),
        ("b,a,b", ["b", "a", "b"]),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert expand_hosts(text) == tuple(names)


@pytest.mark.parametrize(
    "text",
    [
        "", ",", "a,", ",a", "a,,b", "a[", "a]", "a[1", "a1]", "a]1[", "a[[1]]", "a[1-2]]", "a[]",
        "a[1,]", "a[-1]", "a[1-]", "a[3-1]", "a[1-2-3]", "a[x]", "a[1 ]", "a b", "a\n",
        "a[\uff11]", "a[²]", "a[1_0]", "a[+1]", "a[0x1]", "a[1.5]", "a[1-99999999999999999999]",
        "a[" + "9" * 5000 + "]", "a[0-100000]", "a[0-999999999999]", "a[1-99999]" * 2,
        "a[" + ",".join(["1-99999"] * 10_000) + "]", ",".join(["a[1-99999]"] * 10_000),
        "a[0-9]" * 9, "[" * 50_000, "a[0-9]" * 20_000,
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_a_list_that_does_not_parse_is_reported(text: str) -> None:
    with pytest.raises(InputError, match=r"a host list '.*expected a list such as") as caught:
        expand_hosts(text)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="ab[]-,0129 \n²", max_size=30))
def test_any_text_is_a_list_or_an_error(text: str) -> None:
    try:
        names = expand_hosts(text)
    except InputError:
        return
    assert names
    assert all(names)
    assert not any(sign in name for name in names for sign in "[], \n")


@pytest.mark.parametrize(
    ("text", "counts"),
    [("4", (4,)), ("4(x2),3", (4, 4, 3)), ("1,2,1(x3)", (1, 2, 1, 1, 1)), ("0", (0,))],
)
def test_counts(text: str, counts: tuple[int, ...]) -> None:
    assert expand_counts(text) == counts


@pytest.mark.parametrize(
    "text",
    [
        "", ",", "4,", "4(x", "4(x2", "4(x2)3", "4(x2))", "(x2)", "x2", "4(x-1)", "-4", "4 ",
        "\uff14", "4(x100001)", "4(x" + "9" * 5000 + ")", ",".join(["1(x100000)"] * 9000),
        "9" * 5000,
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_counts_that_do_not_parse_are_reported(text: str) -> None:
    with pytest.raises(InputError, match=r"list of counts '.*4\(x2\),3"):
        expand_counts(text)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 9)), min_size=1, max_size=20))
def test_counts_come_back(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in runs)
    assert expand_counts(text) == tuple(count for count, times in runs for _ in range(times))


def test_a_host_file_of_grid_engine() -> None:
    text = "db12 4 gpu.q@db12 UNDEFINED\n\ndb13 2 gpu.q@db13 0,1\ndb12 3 long.q@db12 <NULL>\n"
    assert parse_pe_hostfile(text) == ({"db12": 7, "db13": 2}, [])
    wrong = "db12\ndb13 four q\ndb14 \uff14 q\ndb15 " + "9" * 400
    slots, strange = parse_pe_hostfile(wrong)
    assert slots == {}
    assert [line[:8] for line in strange] == ["db12", "db13 fou", "db14 \uff14 q", "db15 999"]
    assert max(map(len, strange)) == 60


def test_numbers_are_plain_and_short() -> None:
    assert all(map(is_number, ("0", "007", "9" * 15)))
    assert not any(map(is_number, ("", " 1", "-1", "+1", "1.0", "\uff11", "²", "1_0", "9" * 16)))


def test_the_hosts_of_a_job(tmp_path: Path) -> None:
    assert job_hosts({}) == ((), ())
    slurm = {"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x2),1"}
    assert job_hosts(slurm) == (("n1", "n2", "n3"), (2, 2, 1))
    assert job_hosts({"SLURM_NODELIST": "n[1-3]"}) == (("n1", "n2", "n3"), ())
    hosts = tmp_path / "pe hostfile"
    hosts.write_text("b 4 q UNDEFINED\na 2 q UNDEFINED\n")
    assert job_hosts({"PE_HOSTFILE": str(hosts)}) == (("b", "a"), (4, 2))
    hosts.write_text("b four q\n")
    with pytest.raises(InputError, match="has a line that is not valid: 'b four q'"):
        job_hosts({"PE_HOSTFILE": str(hosts)})


def test_a_host_file_elsewhere_needs_an_address(tmp_path: Path) -> None:
    environment = {"PE_HOSTFILE": str(tmp_path / "none")}
    with pytest.raises(InputError, match=r"No such file.*mpirun -x MASTER_ADDR"):
        job_hosts(environment)
    assert job_hosts({**environment, "MASTER_ADDR": "db12"}) == ((), ())


@pytest.fixture(scope="module")
def scontrol(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `scontrol show hostnames` runs: it asks no controller."""
    if shutil.which("scontrol") is None:
        pytest.skip("no scontrol here; tests/debian-packages.sh installs it")
    conf = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    conf.write_text("ClusterName=oak\nSlurmctldHost=localhost\nNodeName=n1\n")
    return {"SLURM_CONF": str(conf), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    "text",
    [
        "r01g[01-04,07],login1", "nid[005001-005020]", "n[8-11,098-101]", "a,b[3],c[1,2]", "b,a,b",
        "x[0-300]", "r[01-03]c[1-2]", "r[2,1]n[5,3]", "tux[0,00,000]", "[1-2]",
    ],
)  # fmt: skip
def test_slurm_reads_lists_alike(scontrol: dict[str, str], text: str) -> None:
    answer = subprocess.run(
        ["scontrol", "show", "hostnames", text],
        env=scontrol, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert expand_hosts(text) == tuple(answer.stdout.split())


@pytest.mark.parametrize(
    "names", [["r01g01", "r01g02", "r02g01"], ["nid005001", "nid005003"], ["n9", "n10", "a", "b7"]]
)
def test_what_slurm_compresses_comes_back(scontrol: dict[str, str], names: list[str]) -> None:
    answer = subprocess.run(
        ["scontrol", "show", "hostlist", ",".join(names)],
        env=scontrol, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert list(expand_hosts(answer.stdout.strip())) == names
