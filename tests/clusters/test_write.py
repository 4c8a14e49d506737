"""A cluster that is written reads back equal."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teho.clusters.catalogue import cluster_files, read_cluster
from teho.clusters.write import cluster_text
from teho.config.toml import read_toml, to_noun
from teho.model.cluster import Cluster

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    date: st.dates(),
}


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of one of the nouns' types."""
    if kind in PLAIN:
        return PLAIN[kind]
    if kind is type(None):
        return st.none()
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return st.sampled_from(arguments)
    if get_origin(kind) is tuple:
        return st.lists(of(arguments[0]), max_size=2).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(TEXT, of(arguments[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return st.builds(kind, **{field.name: of(field.type) for field in fields})
    assert get_origin(kind) is Union or arguments, kind
    return st.one_of(*(of(argument) for argument in arguments))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written") / "any.toml"


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cluster=of(Cluster))
def test_any_cluster_reads_back_equal(place: Path, cluster: Cluster) -> None:
    place.write_text(cluster_text(cluster, ["head"]), encoding="utf-8")
    assert to_noun(read_toml(place), Cluster, place) == cluster


@pytest.mark.parametrize("name", sorted(cluster_files({})))
def test_every_cluster_of_the_catalogue_reads_back_equal(name: str, tmp_path: Path) -> None:
    cluster = read_cluster(cluster_files({})[name])
    path = tmp_path / f"{name}.toml"
    path.write_text(cluster_text(cluster), encoding="utf-8")
    assert read_cluster(path) == cluster


def test_the_head_is_a_comment_and_defaults_are_left_out(tmp_path: Path) -> None:
    cluster = read_cluster(cluster_files({})["narval"])
    text = cluster_text(cluster, ["first", ""])
    assert text.startswith('# first\n#\n\nname = "narval"\n')
    assert "in_memory" not in text
    assert 'memory = "498GiB"\n' in text
