"""The software that a script loads: versions, old versions, Horovod, and frameworks that a site
does not name."""

from __future__ import annotations

import pytest
from script_parts import script_of

from teho.errors import InputError
from teho.model.cluster import Software
from teho.schedulers.script.write import ScriptOptions


def loaded(cluster: str, framework: str = "", **request: object) -> tuple[list[str], str]:
    """Return the lines of the script that load modules or packages, and the remarks."""
    script = script_of(cluster, ScriptOptions(framework=framework), **request)
    lines = [
        line for line in script.text.splitlines() if line.startswith(("module ", "pip install "))
    ]
    return lines, " ".join(script.remarks)


@pytest.mark.parametrize("framework", ["tensorflow==2.12", "tensorflow/2.12"])
def test_a_version_of_the_sites_module_is_loaded(framework: str) -> None:
    lines, remarks = loaded("puhti", framework)
    assert lines == ["module purge", "module load tensorflow/2.12"]
    assert "tensorflow" not in remarks


def test_the_folder_of_modules_comes_first_on_lumi() -> None:
    lines, _ = loaded("lumi", "tensorflow")
    assert lines == [
        "module purge",
        "module use /appl/local/csc/modulefiles/",
        "module load tensorflow",
    ]


def test_an_old_version_needs_another_folder_of_modules_and_says_what_does_not_work() -> None:
    lines, remarks = loaded("puhti", "tensorflow==2.7")
    assert lines == [
        "module purge",
        "module use /appl/soft/ai/rhel7/modulefiles/",
        "module load tensorflow/2.7",
    ]
    assert "MPI and Horovod are not expected to work" in remarks


def test_a_version_that_the_site_does_not_have_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match=r"tensorflow 2\.99 on Puhti; expected one of 2\.18"):
        loaded("puhti", "tensorflow==2.99")


def test_a_container_without_documented_versions_takes_none() -> None:
    with pytest.raises(InputError, match=r"the cluster documents none.*--env"):
        loaded("lumi", "pytorch==2.7")


def test_a_virtual_environment_installs_the_version() -> None:
    lines, remarks = loaded("narval", "pytorch==2.6")
    assert "pip install --no-index torch==2.6" in lines
    assert "`avail_wheels` lists the available versions" in remarks


def test_a_framework_that_the_site_does_not_name_loads_its_entry_for_any() -> None:
    lines, remarks = loaded("aire", "jax")
    assert lines == ["module load miniforge"]
    assert "Aire does not document software for jax" in remarks
    assert "--env" in remarks


def test_an_unknown_framework_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'jax'"):
        loaded("aire", "jaxx")


def test_horovod_gets_a_module_that_contains_it() -> None:
    lines, remarks = loaded("mahti", gpus=8, launcher="horovod")
    assert lines == ["module purge", "module load pytorch/1.12"]
    assert "--framework tensorflow==2.10" in remarks
    assert loaded("mahti", "tensorflow", gpus=8, launcher="horovod")[0][-1] == (
        "module load tensorflow/2.10"
    )
    assert loaded("mahti", "tensorflow==2.8", gpus=8, launcher="horovod")[0][-1] == (
        "module load tensorflow/2.8"
    )


@pytest.mark.parametrize(
    ("cluster", "framework", "sentence"),
    [
        ("mahti", "tensorflow==2.18", r"a version with Horovod: 2\.10, 2\.9, 2\.8"),
        ("mahti", "jax", "documents no jax with Horovod"),
        ("narval", "", r"documents no module with Horovod\. Next: .*--launcher torchrun"),
    ],
)
def test_horovod_is_refused_if_no_module_contains_it(
    cluster: str, framework: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        loaded(cluster, framework, gpus=8, launcher="horovod")


def test_the_users_own_software_may_have_horovod() -> None:
    own = Software(framework="any", lines=("source env/bin/activate",), source="test")
    options = ScriptOptions(software=own)
    assert (
        "source env/bin/activate" in script_of("narval", options, gpus=8, launcher="horovod").text
    )
    assert script_of("narval", ScriptOptions(framework="none"), gpus=8, launcher="horovod").text
