"""Judge a run by every rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from teho.explain.context import BinsAtWork, Located
from teho.explain.kinds import INPUT_CAUSES
from teho.explain.places import NodeGpu
from teho.explain.policy import Policy
from teho.explain.program_context import ProgramContext
from teho.explain.registry import BY_KIND, in_judging_order, mutes_of, same_loss_as
from teho.explain.rule import Rule, kind_of
from teho.model.finding import Abstention, Certainty, Finding, Severity
from teho.model.program import Program
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["judge_all", "judge_by", "without_future"]

_SEVERITIES = tuple(Severity)
_OF_POSSIBLE = 0.64
"""Part of the regain of a finding that is only possible: in blind rounds 2 to 8, 34 % of such
first findings were right, and 53 % of the likely ones."""
_FIRST = ("run_stuck", "run_failed", "run_idle", "limit_too_short")
"""Kinds of findings that come before all others: a run that was stuck was ended because of this."""
_OF_RUNNING = frozenset({"limit_too_short"})


def judge_by(
    rule: Rule,
    run: Run,
    summary: Summary,
    policy: Policy,
    bins_at_work: BinsAtWork | None = None,
) -> list[Located] | Abstention:
    """Judge a run by one rule; no other rule mutes it.

    Args:
        rule: the rule.
        run: the description of the run.
        summary: its figures.
        policy: the thresholds.
        bins_at_work: what other rules have found out about these GPUs.

    Returns:
        The findings, or an abstention if there are none and a signal was missing.
    """
    kind = kind_of(rule)
    certainty = getattr(rule, "CERTAINTY", Certainty.LIKELY)
    context = ProgramContext(
        kind, run, summary, policy.of(kind), certainty, bins_at_work, policy.thresholds
    )
    return context.outcome(rule.judge(context))


def judge_all(
    run: Run, summary: Summary, policy: Policy
) -> tuple[tuple[Finding, ...], tuple[Abstention, ...]]:
    """Judge a run by every rule.

    Returns:
        The findings: first that a run is stuck, how a failed run ended, and that the time limit is
        too short; then by severity, by the time that could be saved, and by rank; a general cause
        comes after a specific one of similar size. The abstentions, by rank. Muted rules make
        neither.
    """
    findings: list[Located] = []
    abstentions: list[Abstention] = []
    muted: dict[str, set[str]] = {}
    silent: set[str] = set()
    doubtful: set[str] = set()
    bins_at_work: BinsAtWork = {}
    for rule in in_judging_order():
        if kind_of(rule) in silent:
            continue
        seen = _without(summary, muted.get(kind_of(rule), set()))
        outcome = judge_by(rule, run, seen, policy, bins_at_work)
        if isinstance(outcome, Abstention):
            abstentions.append(outcome)
            continue
        findings += outcome
        strong = [finding for finding in outcome if finding.mutes]
        subjects = {key for finding in strong for key in finding.subjects}
        doubted = {kind for finding in strong for kind in finding.doubts}
        doubtful |= doubted
        for kind in mutes_of(rule) if strong else ():
            if kind in doubted:
                continue
            muted.setdefault(kind, set()).update(subjects)
            if not subjects:
                silent.add(kind)
    findings = [_perhaps_of_others(one, run, summary) for one in findings]
    general = _general(findings)
    findings.sort(
        key=lambda found: (
            _FIRST.index(found.kind) if found.kind in _FIRST else len(_FIRST),
            _grade(found, general),
            -_middle(found, general),
            BY_KIND[found.kind].RANK,
        )
    )
    abstentions.sort(key=lambda lack: BY_KIND[lack.kind].RANK)
    certain = (_doubted(one) if one.kind in doubtful else one for one in findings)
    return tuple(_plain(found) for found in _within_the_whole(certain)), tuple(abstentions)


def without_future(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a run that has ended: nothing is expected of it any more."""
    return tuple(one for one in findings if one.kind not in _OF_RUNNING)


def _perhaps_of_others(finding: Located, run: Run, summary: Summary) -> Located:
    """Return a finding about some GPUs of an imported log as a possible one, at most a warning."""
    if not run.may_have_other_gpus:
        return finding
    gpus = {NodeGpu(node, gpu).key for node in summary.nodes for gpu in node.gpus}
    if not finding.subjects or not gpus > set(finding.subjects):
        return finding
    severity = Severity.WARNING if finding.severity is Severity.CRITICAL else finding.severity
    return msgspec.structs.replace(finding, certainty=Certainty.POSSIBLE, severity=severity)


def _doubted(finding: Located) -> Located:
    return msgspec.structs.replace(finding, certainty=Certainty.POSSIBLE)


def _grade(finding: Located, general: frozenset[str]) -> int:
    """Return the place of a severity in the order; a general cause counts as a warning at most."""
    grade = _SEVERITIES.index(finding.severity)
    is_general = finding.kind in general
    return max(grade, _SEVERITIES.index(Severity.WARNING)) if is_general else grade


def _middle(finding: Located, general: frozenset[str]) -> float:
    """Return the share of the time that a finding could save; 0 if it claims none.

    Only half of it counts for a general cause, so a specific cause comes before it unless the
    specific cause is much smaller. Less counts also if the finding is only possible.
    """
    if not finding.regain_percent:
        return 0.0
    middle = sum(finding.regain_percent) / 2
    if finding.certainty is Certainty.POSSIBLE:
        middle *= _OF_POSSIBLE
    return middle / 2 if finding.kind in general else middle


def _general(findings: Sequence[Located]) -> frozenset[str]:
    """Return the kinds of findings that say what takes the time, but not why.

    If stacks show why the program waits for its data, the causes in the settings of the data loader
    are general: more workers would hide the wait, but not remove it.
    """
    general = {kind for kind, rule in BY_KIND.items() if getattr(rule, "NAMES_NO_CAUSE", False)}
    reasons = [one for one in findings if one.explains_loading and one.regain_percent]
    for one in findings:
        if one.kind in INPUT_CAUSES and any(2 * _most(why) >= _most(one) for why in reasons):
            general.add(one.kind)
    return frozenset(general)


def _most(finding: Located) -> float:
    return finding.regain_percent[1] if finding.regain_percent else 0.0


def _within_the_whole(findings: Iterable[Located]) -> Iterator[Located]:
    """Yield the findings with their shares limited: all together claim at most 100 %."""
    left = 100.0
    above: set[str] = set()
    is_explained = False
    for finding in findings:
        above.add(finding.kind)
        is_same = bool(above & same_loss_as(BY_KIND[finding.kind]))
        if is_same or (is_explained and finding.kind in INPUT_CAUSES):
            yield msgspec.structs.replace(finding, regain_percent=None)
        elif finding.regain_percent:
            least, most = (min(one, left) for one in finding.regain_percent)
            left -= most
            yield msgspec.structs.replace(finding, regain_percent=(least, most))
        else:
            yield finding
        is_explained = is_explained or finding.explains_loading


def _without(summary: Summary, keys: set[str]) -> Summary:
    """Return the summary without these nodes and GPUs, and without the processes of these nodes."""
    if not keys:
        return summary
    nodes = tuple(_without_gpus(node, keys) for node in summary.nodes if node.name not in keys)
    mains = summary.program.mains if summary.program else ()
    program = Program(mains=tuple(main for main in mains if main.process.node not in keys))
    return msgspec.structs.replace(summary, nodes=nodes, program=program)


def _without_gpus(node: NodeSummary, keys: set[str]) -> NodeSummary:
    gpus = tuple(gpu for gpu in node.gpus if NodeGpu(node, gpu).key not in keys)
    return msgspec.structs.replace(node, gpus=gpus)


def _plain(finding: Located) -> Finding:
    """Return the finding without its subjects, which reports do not have."""
    fields = {name: getattr(finding, name) for name in Finding.__struct_fields__}
    return Finding(**fields)
