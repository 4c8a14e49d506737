"""A planned environment as a bash script with its reasons as comments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from teho.model.software import EnvironmentPlan
from teho.software.choose import purpose_of

__all__ = ["render_script"]

_WIDTH = 98


def render_script(plan: EnvironmentPlan) -> str:
    """Write a plan as a bash script: the steps are commands, the reasons are comments."""
    lines = ["#!/bin/bash", *_comment(purpose_of(plan))]
    lines += _comment("Run this script once, on a login node.")
    lines += ["#", *_reasons(plan)] if plan.proposal else []
    lines += [line for text in plan.cautions for line in _comment(text, "! ")]
    lines += _comment(f"Source: {plan.source}") if plan.source else []
    if plan.other_kinds:
        also = " or ".join(f"--kind {kind}" for kind in plan.other_kinds)
        lines += _comment(f"Also possible here: {also}.")
    lines += ["set -e"]
    for number, step in enumerate(plan.steps, 1):
        lines += ["", *_comment(step.comment, f"{number}. "), *step.lines]
    lines += [
        "",
        *_comment(
            "Each job needs these lines; `teho plan --env FILE` reads them from the output of "
            "--format json:"
        ),
    ]
    lines += [f"#   {line}" for line in plan.job.lines]
    if plan.job.run_prefix:
        lines.append(f"#   {plan.job.run_prefix} python train.py")
    return "\n".join(lines) + "\n"


def _reasons(plan: EnvironmentPlan) -> Iterator[str]:
    assert plan.proposal is not None  # noqa: S101 - the caller checked
    source = plan.proposal.source
    yield from _comment(f"This is the newest version that fits, according to {source}.")
    for one in plan.proposal.refused:
        yield from _comment(f"Not {one.what}: {one.why}.", "  ")


def _comment(text: str, lead: str = "") -> list[str]:
    """Return a text as lines of a comment with a hanging indent; words are not broken."""
    indent = " " * len(lead)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"# {lead}", subsequent_indent=f"# {indent}",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
