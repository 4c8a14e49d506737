"""The rules together: order, who gives way to whom, and the page that lists them."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import teho
from explain.program_parts import alone, fetching, own, process, seen, watched
from explain.program_scenarios import node as quiet_node
from explain.scenario_parts import (
    BINS,
    UNSUPPORTED,
    NodePart,
    gpu,
    judged,
    kinds_of,
    needs_a_probed_program,
    repeated,
    scenario,
    untouched_gpu,
)
from explain.scenarios import SCENARIOS, missing_signals
from teho.explain import (
    context,
    good_use,
    gpu_lines,
    outliers,
    program_context,
    roofline,
    rules,
)
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.registry import RULES, in_judging_order, mutes_of
from teho.explain.rule import kind_of
from teho.explain.rules.gpu import gpu_low_use
from teho.explain.shared_thresholds import (
    DIGEST,
    EVERY_RULE,
    GOOD_USE,
    OUTLIERS,
    PRESENT,
    ROOFLINE,
    SMALL_FILES,
)
from teho.model.finding import Abstention, Finding, Lack, Severity
from teho.model.stack import State

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
KINDS = [kind_of(rule) for rule in RULES]

EXPECTED = {
    "well_used_8_gpus": [],
    "one_idle_gpu": ["gpu_one_idle"],
    "never_used_gpu": ["gpu_never_used"],
    "never_used_16_gpus": ["gpu_never_used"],
    "used_at_first": ["gpu_used_only_at_first"],
    "low_use": ["gpu_low_use"],
    "starved_by_io": ["gpu_low_use", "io_wait_gpu_idle"],
    "starved_by_cpu": ["gpu_low_use", "cpu_busy_gpu_idle"],
    "starved_by_all_cores": ["gpu_low_use", "cpu_busy_gpu_idle"],
    "serial_on_40_cores": ["serial_program"],
    "a_process_for_each_line": ["short_processes"],
    "unpacks_for_each_line": ["command_repeated"],
    "triangular_loop": ["openmp_uneven"],
    "oversubscribed": ["too_many_threads"],
    "memory_near_limit": ["memory_near_limit"],
    "memory_overasked": ["memory_overasked"],
    "time_overasked": ["time_overasked"],
    "out_of_memory": ["out_of_memory"],
    "hot_gpu": ["gpu_throttled", "gpu_power_capped"],
    "hidden_gpu": ["gpu_invisible"],
    "short_job": ["job_too_short"],
    "no_gpu_clean": [],
    "laptop": [],
    "missing_signals": [],
    "lost_gpu": [],
    "one_gpu_differs": ["rank_imbalance"],
    "one_node_died": ["rank_imbalance"],
    "waiting_for_the_network": ["communication_bound"],
    "one_task_killed": ["run_failed"],
    "failed_by_itself": ["run_failed"],
    "leaks_memory": ["memory_grows"],
    "busy_login_node": ["cores_taken_by_others"],
    "nothing_recorded": ["job_too_short"],
    "fed_well": [],
    "decodes_in_main_process": ["input_in_main_process"],
    "too_few_workers": ["input_too_few_workers"],
    "too_many_workers": ["input_too_many_workers"],
    "bound_to_two_cores": ["bound_to_few_cores"],
    "collated_one_by_one": ["input_collated_one_by_one"],
    "needless_workers": ["input_workers_needless"],
    "restarted_workers": ["input_workers_restarted"],
    "small_files": ["input_small_files"],
    "reads_again": ["input_read_again"],
    "skewed_samples": ["input_skewed"],
    "slow_rank": ["input_of_one_rank_slower"],
    "maps_one_by_one": ["input_map_serial"],
    "reads_one_by_one": ["input_files_one_by_one"],
    "loads_when_asked": ["input_not_prefetched"],
    "maps_again": ["input_not_cached"],
    "pipeline_ahead": [],
    "slow_input": ["input_slow"],
    "reads_at_first": ["cold_cache"],
    "long_steps": ["steps_uneven"],
    "pageable_copies": ["copies_from_pageable_memory"],
    "decodes_what_the_gpu_could_hold": ["input_in_main_process", "data_fits_gpu"],
    "small_batches": ["batch_small", "gpu_sm_low", "gpu_decides_speed"],
    "asks_the_gpu": ["waits_for_device"],
    "starts_kernels_one_by_one": ["host_bound"],
    "augments_one_by_one": ["gpu_idle_at_lines"],
    "tiny_steps": ["problem_too_small"],
    "cpu_build": ["framework_without_gpu"],
    "saves_often": ["saving_often"],
    "imports_for_long": ["fixed_costs_dominate"],
    "loops_in_python": ["python_bound"],
    "doubles": ["double_precision"],
    "exchanges_each_time": ["gradients_exchanged_often"],
    "trains_only_the_head": ["gradients_unused"],
    "makes_gradients_of_all_rows": ["table_gradient_dense"],
    "multiplies_integers": ["product_on_one_core"],
    "asks_for_no_probabilities": ["option_costly"],
    "decomposes_one_by_one": ["gpu_call_slow"],
    "diagnoses_each_step": ["result_unused"],
    "converts_whole_scenes": ["array_cut_late"],
    "reads_a_lazy_table_again": ["plan_repeated"],
    "makes_a_pool_for_each_step": ["pool_restarted"],
    "queries_without_index": ["index_missing"],
    "logs_in_for_each_measurement": ["connection_reopened"],
    "fetches_in_turn": ["requests_in_turn"],
    "looks_seldom_for_a_result": ["checked_seldom"],
    "sends_each_action": ["messages_small"],
    "searches_a_list": ["list_searched"],
    "sorts_for_few": ["sorted_for_few"],
    "saves_all_again": ["saved_again"],
    "pads_to_the_longest_of_all": ["input_padded"],
    "pads_series": ["input_padded"],
    "stuck_in_a_lock": ["run_stuck"],
    "unknown_storage": ["input_in_main_process"],
}
# A stuck run goes on, and how long it will go on is not known.
ABSTAINING = {"missing_signals", "lost_gpu", "unknown_storage", "stuck_in_a_lock"}


NEW_RULE = """
'The program ran for some time.'
from teho.model.finding import Evidence, Severity, Threshold

RANK = 9990
SEVERITY = "remark"
THRESHOLDS = {"elapsed_min_s": Threshold(1.0, "s", "this test")}


def judge(context):
    least_s = context.limit("elapsed_min_s")
    return [
        context.finding(
            Severity.REMARK,
            f"The program ran for longer than {least_s:.0f} s.",
            evidence=(Evidence("wall time", context.summary.elapsed_s, "s"),),
            judged_by=["elapsed_min_s"],
            action="Do nothing.",
        )
    ]
"""
JUDGE_ANEW = """
import sys
from pathlib import Path
import teho
from explain.scenarios import SCENARIOS
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
print(teho.__file__)
findings, _ = judge_all(*SCENARIOS["fed_well"](), load_policy(Path(sys.argv[1])))
for finding in findings:
    print(finding.kind, finding.sentence)
"""

CLEAN = ("well_used_8_gpus", "no_gpu_clean", "laptop", "fed_well")
NEEDS_A_NEIGHBOUR = {"gpu_one_idle", "communication_bound", "rank_imbalance"}
NEEDS_NOTHING = {
    "command_repeated", "compiled_slow", "energy_disagrees", "job_too_short", "native_function",
    "openmp_uneven", "openmp_waits", "run_failed", "task_imbalance",
}  # fmt: skip
NEEDS_A_POOR_GPU = {"gpu_slow_fp64"}
FILES = sorted(Path(rules.__file__).parent.glob("*/[!_]*.py"))
NEEDS_A_PROBED_PROGRAM = {kind_of(rule) for rule in RULES if needs_a_probed_program(rule)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name):
    findings, abstentions = judge_all(*SCENARIOS[name](), load_policy())
    assert [finding.kind for finding in findings] == EXPECTED[name]
    assert bool(abstentions) is (name in ABSTAINING)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_finding_is_complete_and_survives_json(name):
    findings, abstentions = judge_all(*SCENARIOS[name](), load_policy())
    for finding in findings:
        assert type(finding) is Finding
        assert finding.sentence[0].isupper()
        assert finding.sentence.endswith(".")
        assert "  " not in finding.sentence + finding.action
        assert finding.evidence
        assert all(limit.source and limit.unit for limit in finding.thresholds)
        # That a run failed is a fact: nothing was compared.
        assert finding.thresholds or finding.kind == "run_failed"
        assert finding.action.endswith(".")
        assert finding.action.count("`") % 2 == 0
    whole = msgspec.json.decode(msgspec.json.encode(findings), type=tuple[Finding, ...])
    assert whole == findings
    json.loads(msgspec.json.encode(abstentions))


@pytest.mark.parametrize("rule", RULES, ids=KINDS)
@pytest.mark.parametrize("name", CLEAN)
def test_each_single_rule_is_silent_on_a_clean_run(rule, name):
    assert judged(rule, SCENARIOS[name]()) == []


@pytest.mark.parametrize("rule", RULES, ids=KINDS)
def test_each_rule_abstains_if_its_signals_are_missing(rule):
    verdict = judged(rule, missing_signals())
    if (
        kind_of(rule)
        in NEEDS_A_NEIGHBOUR | NEEDS_NOTHING | NEEDS_A_POOR_GPU | NEEDS_A_PROBED_PROGRAM
    ):
        assert verdict == []
        return
    assert isinstance(verdict, Abstention)
    assert verdict.kind == kind_of(rule)
    assert "r01g01" in verdict.lacked


def test_an_abstention_groups_what_was_missing_and_says_why():
    made = scenario(NodePart(gpus=[gpu(UNSUPPORTED) for _ in range(6)]))
    verdict = judged(gpu_low_use, made)
    assert verdict.lacked == "GPU busy of GPUs 0–5 on r01g01: not offered under MIG"
    assert verdict.lacks == (Lack("GPU busy", "GPUs 0–5 on r01g01", "not offered under MIG"),)


def test_bins_of_the_scenarios_are_full():
    for name, made in SCENARIOS.items():
        for node in made()[1].nodes:
            places = [node.series, *(of.series for of in node.gpus)]
            lengths = {len(bins) for series in places for bins in series.values()}
            assert lengths == {BINS}, name


def test_sorted_by_severity_then_by_how_much_they_matter():
    part = NodePart(
        gpus=[gpu(20.0, gpu_memory_used_bytes=31.9 * 2**30), gpu(5.0)],
        memory_peak=359.0 * 2**30,
        oom_kills=0.0,
        signals={"job_runnable_threads": 400.0},
    )
    findings, _ = judge_all(*scenario(part), load_policy())
    assert [(finding.severity.value, finding.kind) for finding in findings] == [
        ("critical", "gpu_low_use"),
        ("warning", "too_many_threads"),  # of those, what could give back time comes first
        ("warning", "gpu_low_use"),
        ("warning", "memory_near_limit"),
        ("remark", "gpu_memory_full"),
    ]
    order = list(Severity)
    assert [order.index(finding.severity) for finding in findings] == [0, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("collected_s", "first"), [(12.0, "python_bound"), (20.0, "known_activity")]
)
def test_a_specific_cause_comes_before_a_general_one_unless_it_is_much_smaller(collected_s, first):
    python = seen((own("total += value"),), 55.0, State.PYTHON)
    made = watched(process(python, seen((own("gc.collect()"),), collected_s)))
    findings, _ = judge_all(*made, load_policy())
    kinds = [one.kind for one in findings if one.kind in {"python_bound", "known_activity"}]
    assert (kinds[0], len(kinds)) == (first, 2)


@pytest.mark.parametrize(
    ("text", "first"),
    [("urlopen(url)", "known_activity"), ("zlib.decompress(raw)", "input_in_main_process")],
)
def test_why_data_are_slow_comes_before_how_they_are_loaded_unless_it_is_usual(text, first):
    made = alone(fetching(62.0, text=text), parts=quiet_node(used=1.0))
    findings, _ = judge_all(*made, load_policy())
    kinds = [one.kind for one in findings]
    assert kinds.index(first) == 0
    assert {"known_activity", "input_in_main_process"} <= set(kinds)
    claims = {one.kind: one.regain_percent for one in findings}
    assert claims[first] is not None
    assert (claims["known_activity"] is None) != (claims["input_in_main_process"] is None)


def test_abstentions_come_in_the_order_of_the_rules():
    _, abstentions = judge_all(*SCENARIOS["missing_signals"](), load_policy())
    kinds = [abstention.kind for abstention in abstentions]
    assert kinds == [kind for kind in KINDS if kind in kinds]
    assert len(kinds) > 10


class TestSuppression:
    def test_only_the_same_gpu_is_muted(self):
        made = scenario(NodePart(gpus=[untouched_gpu(), gpu(40.0)]))
        findings, _ = judge_all(*made, load_policy())
        assert [finding.sentence for finding in findings] == [
            "GPU 0 on r01g01 was never used.",
            "GPU 1 on r01g01 was busy only 40 % of the time.",
        ]

    def test_only_the_same_node_is_muted(self):
        made = scenario(NodePart("r01c01", cores_used=1.0), NodePart("r01c02", cores_used=12.0))
        findings, _ = judge_all(*made, load_policy())
        assert [finding.sentence for finding in findings] == [
            "The program used only one of 40 cores on r01c01.",
            "The program kept 12 of 40 cores busy on r01c02.",
        ]

    def test_an_unused_gpu_does_not_wait_for_the_cpu(self):
        signals = {"cpu_busy_percent": 99.0, "cpu_iowait_percent": 80.0}
        made = scenario(NodePart(signals=signals, cores_used=39.0, gpus=[untouched_gpu()]))
        assert kinds_of(made) == ["gpu_never_used"]

    def test_a_released_gpu_is_not_idle_among_others(self):
        made = scenario(NodePart(gpus=[gpu(), gpu(repeated((80.0, 6), (0.0, 54)))]))
        assert kinds_of(made) == ["gpu_used_only_at_first"]

    def test_a_serial_program_on_a_gpu_node_that_never_used_the_gpu(self):
        made = scenario(NodePart(cores_used=1.0, gpus=[untouched_gpu()]))
        assert kinds_of(made) == ["gpu_never_used", "serial_program"]

    def test_a_short_run_keeps_what_does_not_judge_a_mean(self):
        part = NodePart(
            gpus=[untouched_gpu()], cores_used=1.0, memory_peak=400.0 * 2**30, oom_kills=1.0
        )
        made = scenario(part, elapsed_s=20.0)
        assert kinds_of(made) == ["out_of_memory", "gpu_never_used", "job_too_short"]

    def test_no_rule_mutes_one_that_was_judged_before_it(self):
        order = [kind_of(rule) for rule in in_judging_order()]
        assert sorted(order) == sorted(KINDS)
        for rule in RULES:
            muted = mutes_of(rule)
            assert set(muted) <= set(KINDS)
            assert all(order.index(kind_of(rule)) < order.index(kind) for kind in muted)


class TestRegistry:
    def test_every_file_is_a_rule_under_its_own_name(self):
        assert sorted(KINDS) == sorted(path.stem for path in FILES)
        assert len(set(KINDS)) == len(KINDS)

    def test_every_rule_has_a_rank_of_its_own(self):
        assert len({rule.RANK for rule in RULES}) == len(RULES)

    def test_every_rule_has_thresholds_and_every_threshold_a_rule(self):
        sections = {DIGEST, EVERY_RULE, GOOD_USE, OUTLIERS, PRESENT, ROOFLINE, SMALL_FILES}
        assert set(load_policy().thresholds) == {*KINDS} | sections

    def test_every_threshold_is_read_by_its_rule(self):
        sources = {path.stem: path.read_text("utf-8") for path in FILES}
        shared = inspect.getsource(context) + inspect.getsource(program_context)
        for kind, limits in load_policy().thresholds.items():
            if kind in {DIGEST, GOOD_USE, OUTLIERS, PRESENT, ROOFLINE, SMALL_FILES}:
                continue
            own = shared if kind == EVERY_RULE else sources[kind]
            if kind == gpu_lines.KIND:
                own += inspect.getsource(gpu_lines)
            for name in limits:
                read = rf'limit\("{name}"(, KIND)?\)|Level\(Severity.\w+, \w+, "{name}"\)'
                assert re.search(read, own + shared), f"{kind}.{name}"

    def test_one_new_file_is_a_new_rule(self, tmp_path):
        package = tmp_path / "teho"
        shutil.copytree(Path(teho.__file__).parent, package)
        (package / "explain" / "rules" / "job" / "ran_at_all.py").write_text(NEW_RULE)
        (tmp_path / "site.toml").write_text("[ran_at_all]\nelapsed_min_s = 1000\n")
        done = subprocess.run(
            [sys.executable, "-c", JUDGE_ANEW, str(tmp_path / "site.toml")],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[1]}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == [
            str(package / "__init__.py"),
            "ran_at_all The program ran for longer than 1000 s.",
        ]

    def test_every_threshold_of_outliers_is_read(self):
        source = Path(outliers.__file__).read_text(encoding="utf-8")
        for name in load_policy().thresholds[OUTLIERS]:
            assert f'limits["{name}"]' in source

    def test_every_threshold_of_good_use_is_read(self):
        source = Path(good_use.__file__).read_text(encoding="utf-8")
        for name in load_policy().thresholds[GOOD_USE]:
            assert f'limits["{name}"]' in source

    def test_every_threshold_of_the_roofline_is_read(self):
        source = Path(roofline.__file__).read_text(encoding="utf-8")
        for name in load_policy().thresholds[ROOFLINE]:
            assert f'limit("{name}")' in source


class TestPage:
    def test_names_the_day_of_the_sources(self):
        day = load_policy().verified_on.isoformat()
        assert f"read on {day}" in " ".join(PAGE.read_text(encoding="utf-8").split())

    def test_its_example_is_one(self, tmp_path):
        text = PAGE.read_text(encoding="utf-8")
        example = text.split("```toml\n")[1].split("```")[0]
        file = tmp_path / "site.toml"
        file.write_text(example, encoding="utf-8")
        policy = load_policy(file)
        assert policy.of("gpu_low_use")["busy_percent"].value == 40
        assert policy.of("gpu_throttled")["temperature_c"].source == "our cooling, ticket 4711"
