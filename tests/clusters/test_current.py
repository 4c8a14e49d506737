"""Which cluster this machine belongs to."""

from __future__ import annotations

import pytest

from teho.clusters.catalogue import load_catalogue
from teho.clusters.current import current_cluster
from teho.model.cluster import Cluster


@pytest.fixture(scope="module")
def clusters() -> dict[str, Cluster]:
    return load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})


@pytest.mark.parametrize(
    ("environment", "host", "name"),
    [
        ({"CC_CLUSTER": "narval"}, "login1", "narval"),
        ({"CC_CLUSTER": "narval"}, "puhti-login11", "narval"),
        ({}, "puhti-login11.bullx", "puhti"),
        ({}, "r01g01.bullx", "puhti"),
        ({}, "LUMI-UAN02", "lumi"),
        ({}, "login1.arc4.leeds.ac.uk", "arc4"),
        ({"CC_CLUSTER": "lost"}, "laptop", None),
        ({}, "", None),
    ],
)
def test_it_is_recognised(
    clusters: dict[str, Cluster], environment: dict[str, str], host: str, name: str | None
) -> None:
    found = current_cluster(environment, host, clusters.values())
    assert (found.name if found else None) == name


def test_two_that_fit_are_none(clusters: dict[str, Cluster]) -> None:
    twice = [clusters["puhti"], clusters["puhti"]]
    assert current_cluster({}, "puhti1", twice) is None
    assert current_cluster({}, "puhti1", twice[:1]) is clusters["puhti"]
