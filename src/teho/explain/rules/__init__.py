"""One short file a bottleneck, and who gives way to whom.

A rule is a module with `KIND` and `judge(run, summary, thresholds)`, which returns
findings, or `[]` where all is well or the question does not arise, or an
`Abstention` where a signal was missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from teho.explain.causes import (
    batch_small,
    bound_to_few_cores,
    cold_cache,
    copies_from_pageable_memory,
    data_fits_gpu,
    double_precision,
    fixed_costs_dominate,
    framework_without_gpu,
    input_collated_one_by_one,
    input_in_main_process,
    input_of_one_rank_slower,
    input_read_again,
    input_skewed,
    input_slow,
    input_small_files,
    input_too_few_workers,
    input_too_many_workers,
    input_workers_needless,
    input_workers_restarted,
    problem_too_small,
    python_bound,
    saving_often,
    steps_uneven,
    waits_for_device,
)
from teho.explain.policy import Policy
from teho.explain.rules import (
    communication_bound,
    cores_taken_by_others,
    cores_unused,
    cpu_busy_gpu_idle,
    energy_disagrees,
    gpu_held_idle,
    gpu_invisible,
    gpu_launch_bound,
    gpu_low_occupancy,
    gpu_low_use,
    gpu_memory_bound,
    gpu_memory_full,
    gpu_never_used,
    gpu_one_idle,
    gpu_pcie_bound,
    gpu_power_capped,
    gpu_slow_fp64,
    gpu_sm_low,
    gpu_tensor_cores_idle,
    gpu_throttled,
    gpu_used_only_at_first,
    io_wait_gpu_idle,
    job_too_short,
    memory_grows,
    memory_near_limit,
    memory_overasked,
    out_of_memory,
    rank_imbalance,
    run_failed,
    serial_program,
    task_imbalance,
    time_overasked,
    too_many_threads,
)
from teho.explain.rules._look import Gpu, Located
from teho.explain.rules._suppressions import SAME_LOSS, SUPPRESSIONS, Suppression
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.program import Program
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["RULES", "SUPPRESSIONS", "Rule", "Suppression", "judge_all"]


class Rule(Protocol):
    """What a rule's module offers."""

    KIND: str

    def judge(
        self, run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
    ) -> list[Finding] | Abstention:
        """Judge one run by this rule's thresholds."""
        ...


RULES: tuple[Rule, ...] = (
    run_failed,
    out_of_memory,
    gpu_invisible,
    framework_without_gpu,
    gpu_never_used,
    gpu_one_idle,
    gpu_held_idle,
    gpu_used_only_at_first,
    input_of_one_rank_slower,
    bound_to_few_cores,
    input_read_again,
    input_small_files,
    input_workers_needless,
    input_workers_restarted,
    input_collated_one_by_one,
    input_skewed,
    input_too_many_workers,
    input_too_few_workers,
    input_in_main_process,
    input_slow,
    cold_cache,
    copies_from_pageable_memory,
    data_fits_gpu,
    waits_for_device,
    problem_too_small,
    batch_small,
    saving_often,
    steps_uneven,
    fixed_costs_dominate,
    python_bound,
    double_precision,
    gpu_low_use,
    io_wait_gpu_idle,
    cpu_busy_gpu_idle,
    communication_bound,
    rank_imbalance,
    task_imbalance,
    gpu_pcie_bound,
    gpu_launch_bound,
    gpu_slow_fp64,
    gpu_tensor_cores_idle,
    gpu_sm_low,
    cores_taken_by_others,
    memory_grows,
    memory_near_limit,
    serial_program,
    cores_unused,
    too_many_threads,
    memory_overasked,
    time_overasked,
    gpu_throttled,
    gpu_power_capped,
    gpu_memory_bound,
    gpu_low_occupancy,
    gpu_memory_full,
    energy_disagrees,
    job_too_short,
)
"""Every rule, sorted by how much its finding matters among those of equal severity."""

_SEVERITIES = tuple(Severity)


def judge_all(
    run: Run, summary: Summary, policy: Policy
) -> tuple[tuple[Finding, ...], tuple[Abstention, ...]]:
    """Judge a run by every rule.

    Returns:
        The findings, by severity and then in the order of `RULES`, and the abstentions
        in the order of `RULES`. How a failed run ended comes before all other findings.
        Muted rules neither find nor abstain.
    """
    findings: list[Finding] = []
    abstentions: list[Abstention] = []
    muted: dict[str, set[str]] = {}
    silent: set[str] = set()
    for rule in _suppressors_first():
        if rule.KIND in silent:
            continue
        seen = _without(summary, muted.get(rule.KIND, set()))
        verdict = rule.judge(run, seen, policy.of(rule.KIND))
        if isinstance(verdict, Abstention):
            abstentions.append(verdict)
            continue
        findings += verdict
        strong = [finding for finding in verdict if _mutes_others(finding)]
        subjects = {key for finding in strong for key in _subjects(finding)}
        for kind in _mutes(rule.KIND) if strong else ():
            muted.setdefault(kind, set()).update(subjects)
            if not subjects:
                silent.add(kind)
    rank = {rule.KIND: position for position, rule in enumerate(RULES)}
    findings.sort(
        key=lambda found: (
            found.kind != run_failed.KIND,
            _SEVERITIES.index(found.severity),
            -_middle(found),
            rank[found.kind],
        )
    )
    abstentions.sort(key=lambda lack: rank[lack.kind])
    return tuple(_plain(found) for found in _within_the_whole(findings)), tuple(abstentions)


def _middle(finding: Finding) -> float:
    """Return the share of the time that a finding may give back; what is not known is none."""
    return sum(finding.regain_percent) / 2 if finding.regain_percent else 0.0


def _within_the_whole(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Let no more be promised by all together than there is."""
    left = 100.0
    above: set[str] = set()
    for finding in findings:
        above.add(finding.kind)
        if above & SAME_LOSS.get(finding.kind, frozenset()):
            yield msgspec.structs.replace(finding, regain_percent=None)
        elif finding.regain_percent:
            least, most = (min(one, left) for one in finding.regain_percent)
            left -= most
            yield msgspec.structs.replace(finding, regain_percent=(least, most))
        else:
            yield finding


def _suppressors_first() -> Iterator[Rule]:
    by_kind = {rule.KIND: rule for rule in RULES}
    first = [suppression.by for suppression in SUPPRESSIONS]
    yield from (by_kind[kind] for kind in first)
    yield from (rule for rule in RULES if rule.KIND not in first)


def _mutes(kind: str) -> Iterable[str]:
    return (name for entry in SUPPRESSIONS if entry.by == kind for name in entry.mutes)


def _subjects(finding: Finding) -> tuple[str, ...]:
    return finding.subjects if isinstance(finding, Located) else ()


def _mutes_others(finding: Finding) -> bool:
    return finding.mutes if isinstance(finding, Located) else True


def _without(summary: Summary, keys: set[str]) -> Summary:
    """Return the summary without the nodes and GPUs of these keys, and what ran on those nodes."""
    if not keys:
        return summary
    nodes = tuple(_without_gpus(node, keys) for node in summary.nodes if node.name not in keys)
    mains = summary.program.mains if summary.program else ()
    program = Program(mains=tuple(main for main in mains if main.process.node not in keys))
    return msgspec.structs.replace(summary, nodes=nodes, program=program)


def _without_gpus(node: NodeSummary, keys: set[str]) -> NodeSummary:
    gpus = tuple(gpu for gpu in node.gpus if Gpu(node, gpu).key not in keys)
    return msgspec.structs.replace(node, gpus=gpus)


def _plain(finding: Finding) -> Finding:
    """Return the finding as reports know it, without its subjects."""
    fields = {name: getattr(finding, name) for name in Finding.__struct_fields__}
    return Finding(**fields)
