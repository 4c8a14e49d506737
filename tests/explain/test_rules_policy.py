"""Thresholds from the shipped file and from one that overrides it."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import msgspec
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from explain.scenarios import low_use
from teho.errors import InputError
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.model.finding import Threshold


@pytest.fixture
def site(tmp_path):
    def write(text: str) -> Path:
        file = tmp_path / "site.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def test_shipped_thresholds_have_units_and_sources():
    policy = load_policy()
    assert policy.verified_on == date(2026, 11, 20)
    for limits in policy.thresholds.values():
        for name, limit in limits.items():
            assert limit.unit, name
            assert limit.source, name


def test_a_rule_sees_its_own_and_everyones_thresholds():
    assert set(load_policy().of("out_of_memory")) == {
        "at_work_percent",
        "at_work_run_percent",
        "at_work_time_percent",
        "batches_min",
        "covered_percent_min",
        "kills_min",
        "lost_beside_gpus_percent",
        "lost_critical_percent",
        "lost_min_s",
        "lost_percent",
        "margin_percent",
        "small_messages_mb_per_s",
        "switches_per_s_min",
        "work_min_s",
    }


def test_the_shipped_policy_is_made_once():
    assert load_policy() is load_policy()


def test_a_bare_number_replaces_one_value(site):
    file = site("[gpu_low_use]\nbusy_percent = 15\n")
    changed, before = load_policy(file), load_policy()
    assert changed.of("gpu_low_use")["busy_percent"] == Threshold(15.0, "%", f"set in {file}")
    assert (
        changed.of("gpu_low_use")["warning_percent"] == before.of("gpu_low_use")["warning_percent"]
    )
    assert changed.of("gpu_one_idle") == before.of("gpu_one_idle")
    assert before.of("gpu_low_use")["busy_percent"].value == 50


def test_an_override_changes_the_verdict(site):
    findings, _ = judge_all(*low_use(), load_policy(site("gpu_low_use.busy_percent = 15\n")))
    assert findings == ()


def test_the_long_form_gives_a_source(site):
    file = site('[gpu_throttled.temperature_c]\nvalue = 85\nunit = "°C"\nsource = "our cooling"\n')
    assert load_policy(file).of("gpu_throttled")["temperature_c"] == Threshold(
        85.0, "°C", "our cooling"
    )


def test_a_file_with_all_that_is_shipped_changes_nothing(site):
    shipped = msgspec.to_builtins(load_policy().thresholds)
    text = tomli_w.dumps({"meta": {"verified_on": date(2026, 11, 20)}, **shipped})
    assert load_policy(site(text)) == load_policy()


def test_an_empty_file_changes_nothing(site):
    assert load_policy(site("")) == load_policy()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gpu_lo_use]\nbusy_percent = 1", ["unknown rule: 'gpu_lo_use'", "'gpu_low_use'?"]),
        ("[nonsense_xyz]\n", ["unknown rule: 'nonsense_xyz'", "known are", "out_of_memory"]),
        (
            "[gpu_low_use]\nbusy_per_cent = 1",
            ["unknown threshold of gpu_low_use: 'busy_per_cent'", "'busy_percent'?"],
        ),
        (
            "[gpu_low_use.busy_percent]\nvalu = 1",
            ["unknown key of gpu_low_use.busy_percent: 'valu'", "'value'?"],
        ),
        ("gpu_low_use = 3", ["gpu_low_use is 3", "a section of thresholds"]),
        (
            "[gpu_low_use]\nbusy_percent = '40'",
            ["gpu_low_use.busy_percent is '40'", "a number (%)"],
        ),
        ("[gpu_low_use]\nbusy_percent = true", ["gpu_low_use.busy_percent is True"]),
        ("[gpu_low_use]\nbusy_percent = nan", ["gpu_low_use.busy_percent is nan"]),
        ("[gpu_low_use]\nbusy_percent = inf", ["gpu_low_use.busy_percent is inf"]),
        (
            "[gpu_low_use.busy_percent]\nvalue = 'many'",
            ["gpu_low_use.busy_percent:", "`$.value`", "value = a number (%)"],
        ),
        ("[gpu_low_use.busy_percent]\nsource = 'us'", ["gpu_low_use.busy_percent:", "`value`"]),
        (
            "[gpu_throttled.temperature_c]\nvalue = 363\nunit = 'K'",
            ["gpu_throttled.temperature_c has the wrong unit 'K'", "'°C'"],
        ),
        ("[gpu_low_use\n", ["site.toml"]),
    ],
)
def test_a_mistake_is_named(site, text, words):
    file = site(text)
    with pytest.raises(InputError) as caught:
        load_policy(file)
    message = str(caught.value)
    assert str(file) in message
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        load_policy(tmp_path / "nowhere.toml")


def test_a_file_that_is_not_text(tmp_path):
    file = tmp_path / "site.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"site\.toml"):
        load_policy(file)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_names_are_read_or_refused(tmp_path_factory, rule, name):
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text(f"[{quoted(rule)}]\n{quoted(name)} = 1\n", encoding="utf-8")
    try:
        policy = load_policy(file)
    except InputError:
        return
    assert rule == "meta" or policy.thresholds[rule][name].value == 1


def quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(character):08X}" for character in text) + '"'


def test_importing_the_policy_reads_no_file():
    code = (
        "import sys; sys.addaudithook(lambda event, arguments: print(arguments[0]) "
        "if event == 'open' and str(arguments[0]).endswith('.toml') else None); "
        "import teho.explain.policy, teho.explain.judge"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == ""
