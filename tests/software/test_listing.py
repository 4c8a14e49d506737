"""Every form of a list of packages is read, and what is none is named."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.errors import InputError
from teho.model.software import Package
from teho.software.listing import read_listing

DATA = Path(__file__).parents[1] / "data" / "software"

# file -> form, number of packages, one of them
FORMS = {
    "arc4-conda-create.txt": (
        "conda create", 74, ("pytorch", "2.4.1", "cuda120_py313h6ccb88c_302", "conda")),
    "conda-explicit.txt": (
        "conda explicit list", 5, ("tensorflow", "2.19.0", "cuda128py312hf0b5c3a_253", "conda")),
    "conda-export.yml": ("conda export", 5, ("cupy", "14.1.1", "py312h1acd1a8_0", "conda")),
    "conda-list.json": (
        "JSON list", 3, ("pytorch", "2.8.0", "cuda129_mkl_py313_h1e53aa0_301", "conda")),
    "conda-list.txt": (
        "conda list", 10, ("pytorch", "2.8.0", "cuda129_mkl_py313_h1e53aa0_301", "conda")),
    "mamba-create.txt": (
        "mamba create", 4, ("jaxlib", "0.9.2", "cuda129_py313h2a5dcca_200", "conda")),
    "pip-freeze.txt": ("pip freeze", 8, ("torch", "2.8.0+cu126", "", "pip")),
    "pip-freeze-alliance.txt": ("pip freeze", 2, ("torch", "2.9.0+computecanada", "", "pip")),
    "pip-list.txt": ("pip list", 7, ("jax-cuda12-plugin", "0.10.2", "", "pip")),
    "pixi.lock": (
        "conda explicit list", 2,
        ("pytorch", "2.7.1", "cuda126_mkl_py312_h30b5a27_300", "conda")),
    "requirements-hashed.txt": ("pip freeze", 2, ("tensorflow-cpu", "2.19.1", "", "pip")),
    "uv.lock": ("lock file", 2, ("torch", "2.9.1", "", "pip")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_listing_is_read(name: str) -> None:
    form, count, one = FORMS[name]
    listing = read_listing((DATA / name).read_text(), name)
    assert (listing.form, len(listing.packages)) == (form, count)
    assert Package(name=one[0], version=one[1], build=one[2], origin=one[3]) in listing.packages


def test_pips_packages_in_a_list_of_conda_are_pips() -> None:
    for name in ("conda-list.txt", "conda-list.json"):
        packages = read_listing((DATA / name).read_text(), name).packages
        assert Package(name="optuna", version="4.5.0", origin="pip") in packages


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "Lorem ipsum dolor sit amet.\n", "{}",
                                  "[1, 2]", '{"actions": null}', '{"actions": [1]}',
                                  '{"packages": 3}', "[[package]]\nname = 1\n",
                                  "\x00\x01"])  # fmt: skip
def test_what_is_no_listing_is_named(text: str) -> None:
    with pytest.raises(
        InputError, match=r"list\.txt: none of \d+ lines? names a package; expected"
    ):
        read_listing(text, "list.txt")


def test_a_page_with_a_table_of_figures_is_no_listing() -> None:
    rows = [f"  g1  {gpu}  13.{gpu}" for gpu in range(2)]
    page = "\n".join(["GPU energy", "of each GPU:", "  Hostname  GPU Id  Energy", *rows, "and on"])
    with pytest.raises(InputError, match=r"page\.txt: only 2 of 6 lines name a package; expected"):
        read_listing(page, "page.txt")


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,6}){0,2}", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}", fullmatch=True)
BUILDS = st.from_regex(r"(cuda|cpu|py)[0-9]{2,3}_[a-z0-9]{3,8}_[0-9]{1,3}", fullmatch=True)


@given(NAMES, VERSIONS, BUILDS)
def test_conda_forms_come_back(name: str, version: str, build: str) -> None:
    whole = Package(name=name, version=version, build=build, origin="conda")
    for line in (
        f"{name}    {version}    {build}    conda-forge",
        f"  + {name}   {version}  {build}   conda-forge/linux-64   37MB",
        f"  {name}   conda-forge/linux-64::{name}-{version}-{build} ",
        f"  - {name}={version}={build}",
        f"https://conda.example.org/conda-forge/linux-64/{name}-{version}-{build}.conda#00aa",
        f"https://conda.example.org/conda-forge/noarch/{name}-{version}-{build}.tar.bz2",
    ):
        assert read_listing(line, "x").packages == [whole], line


@given(NAMES, VERSIONS, st.sampled_from(["", "+cu126", "+rocm6.2", "+cpu", "+computecanada"]))
def test_pip_forms_come_back(name: str, version: str, local: str) -> None:
    whole = Package(name=name, version=version + local, origin="pip")
    for line in (
        f"{name}=={version}{local}",
        f"{name}[extra]=={version}{local} ; python_version >= '3.10'",
        f"{name}=={version}{local} \\",
        f"{name} @ file:///w/{name.replace('-', '_')}-{version}{local}-cp311-cp311-any.whl",
    ):
        assert read_listing(line, "x").packages == [whole], line


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        assert read_listing(text, "x").packages
