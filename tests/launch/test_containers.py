"""What brings variables and folders into a container."""

from __future__ import annotations

import pytest

from teho.launch.containers import container_variables, is_container, is_inside

RUN = ["singularity", "run", "image.sif", "python", "train.py"]
VARIABLES = {"RANK": "5", "OMP_NUM_THREADS": "7"}
BINDS = ("APPTAINER_BIND", "SINGULARITY_BIND")


def test_which_commands_are_containers():
    assert is_container(RUN)
    assert is_container(["/usr/bin/apptainer", "exec", "x"])
    assert not is_container(["python", "singularity"])
    assert not is_container([])
    assert is_inside({"SINGULARITY_CONTAINER": "/x.sif"})
    assert is_inside({"APPTAINER_CONTAINER": "/x.sif"})
    assert not is_inside({"APPTAINER_CONTAINER": ""})


def test_a_container_takes_the_environment_as_it_is():
    assert container_variables(RUN, VARIABLES, ["/tmp/a", "/var/tmp/b"], {}) == {}


@pytest.mark.parametrize(
    ("option", "environment", "clean", "apart"),
    [
        ("-e", {}, True, False),
        ("--cleanenv", {}, True, False),
        ("-C", {}, True, True),
        ("--containall", {}, True, True),
        ("-c", {}, False, True),
        ("--contain", {}, False, True),
        ("--nv", {"APPTAINER_CLEANENV": "1"}, True, False),
        ("--nv", {"SINGULARITY_CONTAIN": "true"}, False, True),
        ("--nv", {"SINGULARITY_CONTAINALL": "0"}, False, False),
    ],
)
def test_what_a_container_must_not_import(option, environment, clean, apart):
    command = ["apptainer", "exec", option, "image.sif", "python"]
    found = container_variables(command, VARIABLES, ["/tmp/a"], environment)
    prefixed = {name: value for name, value in found.items() if "ENV_" in name}
    expected = {
        f"{prefix}ENV_{name}": value
        for prefix in ("APPTAINER", "SINGULARITY")
        for name, value in VARIABLES.items()
    }
    assert prefixed == (expected if clean else {})
    assert {name: value for name, value in found.items() if "BIND" in name} == (
        dict.fromkeys(BINDS, "/tmp/a") if apart else {}
    )


@pytest.mark.parametrize(
    ("environment", "bound"),
    [
        ({}, "/local/a,/local/b"),
        ({"APPTAINER_BIND": "/pfs"}, "/pfs,/local/a,/local/b"),
        # Apptainer would leave out what is bound by the other name alone.
        ({"SINGULARITY_BIND": "/pfs:/pfs:ro,/opt"}, "/pfs:/pfs:ro,/opt,/local/a,/local/b"),
        ({"APPTAINER_BIND": "/x", "SINGULARITY_BIND": "/y"}, "/x,/local/a,/local/b"),
        # Both forms of the name count, and add up.
        ({"SINGULARITY_BINDPATH": "/pfs"}, "/local/a,/local/b"),
    ],
)
def test_folders_elsewhere_are_bound_with_the_users_own(environment, bound):
    found = container_variables(RUN, VARIABLES, ["/local/a", "/tmp/c", "/local/b"], environment)
    assert found == dict.fromkeys(BINDS, bound)


def test_a_folder_whose_name_begins_like_tmp_is_elsewhere():
    assert container_variables(RUN, {}, ["/tmpfs/a"], {}) == dict.fromkeys(BINDS, "/tmpfs/a")
