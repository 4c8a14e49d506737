"""What `teho launch` knows of the site it runs at."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_trees import lumi
from msgspec.structs import replace

from teho.clusters.catalogue import load_catalogue
from teho.clusters.current import current_cluster
from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.schedulers.script.launch_site import launch_site
from teho.schedulers.site import find_generation, find_site, with_gpus
from teho.schedulers.sites import SITES

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
PATTERNS = sorted({pattern for cluster in CLUSTERS.values() for pattern in cluster.hosts})


def name(environment: dict[str, str], host: str = "laptop") -> str | None:
    site = find_site(environment, host)
    return site["name"] if site else None


def test_the_catalogue_is_there_in_small():
    assert [launch_site(cluster) for cluster in CLUSTERS.values()] == SITES


@pytest.mark.parametrize(
    ("environment", "host", "expected"),
    [
        ({"CC_CLUSTER": "narval"}, "ng10503", "narval"),
        ({"CC_CLUSTER": "narval"}, "r01g01.bullx", "narval"),
        ({}, "r01g01.bullx", "puhti"),
        ({}, "R01G01.bullx", "puhti"),
        ({}, "nid005001", "lumi"),
        ({}, "nid005001.lumi.example", "lumi"),
        ({}, "nid001001", None),
        ({"TEHO_CLUSTER": "mahti", "CC_CLUSTER": "narval"}, "r01g01.bullx", "mahti"),
        ({"TEHO_CLUSTER": "oak"}, "r01g01.bullx", None),
        ({}, "laptop", None),
        ({}, "", None),
    ],
)
def test_sites_are_recognised(environment: dict[str, str], host: str, expected: str | None):
    assert name(environment, host) == expected


def hosts_like(pattern: str) -> st.SearchStrategy[str]:
    """Return host names that a pattern means, or nearly."""
    text = pattern.replace(".", r"\.").replace("*", "[a-z0-9.]{0,3}").replace("?", "[a-z0-9]")
    return st.from_regex(f"{text}(\\.x)?", fullmatch=True)


@given(
    st.one_of(
        st.sampled_from(PATTERNS).flatmap(hosts_like),
        st.sampled_from(PATTERNS),
        st.text(alphabet="abcdefgilmnoprtuv0123456789.-?*[", max_size=16),
    ),
    st.sampled_from([None, *CLUSTERS, "lost"]),
)
def test_the_same_cluster_is_recognised_as_everywhere(host: str, told: str | None):
    environment = {"CC_CLUSTER": told} if told else {}
    expected = current_cluster(environment, host, CLUSTERS.values())
    assert name(environment, host) == (expected.name if expected else None)


def test_a_cluster_of_the_users_own_comes_whole():
    own = {**lumi(), "name": "oak"}
    assert find_site({"TEHO_SITE": json.dumps(own), "TEHO_CLUSTER": "lumi"}, "x") == own


@pytest.mark.parametrize(
    "text",
    [
        "rubbish", "{}", "[]", "1", "null", '"lumi"', "[" * 5000, "{" * 100_000, "1" * 5000,
        json.dumps({**SITES[0], "more": 1}),
        json.dumps({key: value for key, value in SITES[0].items() if key != "hosts"}),
        json.dumps({**SITES[0], "name": 1}),
        json.dumps({**SITES[0], "hosts": "puhti*"}),
        json.dumps({**SITES[0], "scratch_in_memory": 1}),
        json.dumps({**SITES[0], "reserved_cores": [True]}),
        json.dumps({**SITES[0], "cores_of_gpu": [1, 2]}),
        json.dumps({**SITES[0], "cores_of_gpu": [["1"]]}),
        json.dumps({**SITES[0], "recognised_by": {"A": 1}}),
        json.dumps({**SITES[0], "recognised_by": []}),
        json.dumps({**SITES[0], "generations": [{"name": "x"}]}),
        json.dumps({**SITES[0], "generations": ["x"]}),
    ],
    ids=lambda text: text[-30:],
)  # fmt: skip
def test_an_unreadable_site_is_reported(text: str):
    with pytest.raises(
        InputError, match=r"TEHO_SITE cannot be read: .*teho plan --script"
    ) as caught:
        find_site({"TEHO_SITE": text}, "x")
    assert len(str(caught.value)) < 250


def test_generations():
    known = lumi()["generations"]
    assert find_generation(lumi(), "") == known[0]
    assert find_generation(lumi(), "none") is None
    assert find_generation(lumi(), known[-1]["name"]) == known[-1]
    assert find_generation(None, "") is None
    assert find_generation(None, "none") is None
    with pytest.raises(InputError, match=r"--generation lost: lumi has only laif-rocm7, .*`none`"):
        find_generation(lumi(), "lost")
    with pytest.raises(InputError, match="Teho does not know this site, so it knows no gen"):
        find_generation(None, "laif-rocm7")


def arc4(*kinds: tuple[str, int | None]) -> Cluster:
    """Return ARC4 with these types of GPU; each brings its own number of cores, or none."""
    gpu_nodes, *others = CLUSTERS["arc4"].nodes
    share = CLUSTERS["arc4"].shares[0]
    assert gpu_nodes.gpu is not None
    return replace(
        CLUSTERS["arc4"],
        nodes=(
            *(replace(gpu_nodes, gpu=replace(gpu_nodes.gpu, type=name)) for name, _ in kinds),
            *others,
        ),
        shares=tuple(replace(share, gpu=name, cores=cores) for name, cores in kinds if cores),
    )


@pytest.mark.parametrize(
    ("cluster", "cores", "memory_mib"),
    [
        (CLUSTERS["arc4"], 10, 48 * 1024),
        (arc4(("v100", 10), ("p100", 10)), 10, 48 * 1024),
        # A job does not know the type of its GPUs.
        (arc4(("v100", 10), ("p100", 6)), 0, 48 * 1024),
        (arc4(("v100", 10), ("p100", None)), 0, 0),
        # Slurm counts such cores itself.
        (CLUSTERS["trillium"], 0, 0),
        (CLUSTERS["narval"], 0, 0),
    ],
)
def test_what_comes_with_each_gpu(cluster: Cluster, cores: int, memory_mib: int):
    site = launch_site(cluster)
    assert (site["cores_with_gpu"], site["memory_with_gpu_mib"]) == (cores, memory_mib)


@pytest.mark.parametrize(
    ("gpus", "slots", "cores"),
    [(2, 1, 20), (2, None, 20), (0, 4, 4), (None, 4, 4), (1, 16, 16), (None, None, None)],
)
def test_cores_of_a_job(gpus: int | None, slots: int | None, cores: int | None):
    assert with_gpus(launch_site(CLUSTERS["arc4"]), gpus, slots) == cores
    assert with_gpus(None, gpus, slots) == with_gpus(lumi(), gpus, slots) == slots
