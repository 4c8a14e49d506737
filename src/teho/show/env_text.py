"""A planned environment as a commented script, and a checked one for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from rich.text import Text

from teho.model.software import Build, Checked, EnvironmentPlan, Problem, Refused
from teho.show.cells import plain
from teho.show.flow import dotted, flow, printed, sentence, words
from teho.software.choose import TITLES

__all__ = ["render_checked", "render_refused", "render_script"]

_WIDTH = 98
_KINDS = {
    "module": "the site's module",
    "conda": "an environment of conda",
    "venv": "a virtual environment",
    "container": "a container",
}
_ACCELERATORS = {
    "cuda": "CUDA", "rocm": "ROCm", "xpu": "Intel's GPUs", "cpu": "CPU-only",
    "unknown": "not told",
}  # fmt: skip
_MARKS = {"critical": ("✗", "bold red"), "warning": ("!", "bold yellow")}


def render_script(plan: EnvironmentPlan) -> str:
    """Write a plan as a script of bash: its reasons are comments, its steps commands."""
    lines = ["#!/bin/bash", *_comment(_purpose(plan)), *_comment("Run it on a login node, once.")]
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
        *_comment("In each job; `teho plan --env FILE` takes it from what --format json writes:"),
    ]
    lines += [f"#   {line}" for line in plan.job.lines]
    if plan.job.run_prefix:
        lines.append(f"#   {plan.job.run_prefix} python train.py")
    return "\n".join(lines) + "\n"


def render_refused(what: str, refused: Iterable[Refused], *, width: int, color: bool) -> str:
    """Say that nothing fits, and why each does not; ends in a line break."""
    lead = Text.assemble(("✗", "bold red"), " ")
    blocks = [flow(words(f"No {what} fits."), width, lead, style="bold")]
    blocks.append([line for one in refused for line in _refused(one, width)])
    return printed((block for block in blocks if block), width=width, color=color)


def render_checked(checked: Checked, *, width: int, color: bool) -> str:
    """Render what was found in an environment; ends in a line break."""
    blocks = [_head(checked, width), _builds(checked.builds)]
    blocks += [_problem(problem, width) for problem in checked.problems]
    blocks.append(
        [
            line
            for text in checked.not_checked
            for line in flow(words(text), width, Text("? ", "bold yellow"))
        ]
    )
    return printed((block for block in blocks if block), width=width, color=color)


def _purpose(plan: EnvironmentPlan) -> str:
    title = TITLES[plan.framework]
    if plan.proposal:
        label = _ACCELERATORS[plan.proposal.accelerator]
        title += f" {plan.proposal.version} with {label} {plan.proposal.toolkit}"
        title += f" and Python {plan.proposal.python}" if plan.kind != "venv" else ""
    return f"{title} for the {plan.gpu} of {plan.title}: {_KINDS[plan.kind]}."


def _reasons(plan: EnvironmentPlan) -> Iterator[str]:
    assert plan.proposal is not None  # noqa: S101 - the caller looked
    yield from _comment(f"It is the newest that fits, by {plan.proposal.source}.")
    for one in plan.proposal.refused:
        yield from _comment(f"Not {one.what}: {one.why}.", "  ")


def _comment(text: str, lead: str = "") -> list[str]:
    """Return a text as lines of comment, which hang below their mark; commands stay whole."""
    indent = " " * len(lead)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"# {lead}", subsequent_indent=f"# {indent}",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _refused(one: Refused, width: int) -> list[Text]:
    lead = Text.assemble("  ", (plain(one.what), "bold"), ": ")
    return flow(sentence(one.why, one.source), width, lead, hang=4)


def _head(checked: Checked, width: int) -> list[Text]:
    mark, style, verdict = _verdict(checked)
    facts = [Text(plain(f"{checked.source} ({checked.form})"))]
    for label, value in (
        ("Python", checked.python), ("CUDA", checked.cuda), ("cuDNN", checked.cudnn),
        ("NCCL", checked.nccl), ("GPU", checked.gpu),
    ):  # fmt: skip
        facts += [Text(plain(f"{label} {value}"))] if value else []
    if checked.driver:
        cuda = checked.driver.cuda or "none that is known"
        driver = f"driver {checked.driver.version}".strip()
        facts.append(Text(plain(f"{driver} for CUDA {cuda}, of {checked.driver.where}")))
    lead = Text.assemble((mark, style), " ")
    return [
        *flow(words(verdict), width, lead, style="bold"),
        *flow(dotted(facts), width, Text("  "), style="dim"),
    ]


def _verdict(checked: Checked) -> tuple[str, str, str]:
    """Return the mark, its style, and a sentence: what of it uses the GPU."""
    critical = [one for one in checked.problems if one.severity == "critical"]
    if critical:
        reasons = "one reason" if len(critical) == 1 else f"{len(critical)} reasons"
        return "✗", "bold red", f"Not fit for the GPU, for {reasons}:"
    groups = {
        what: list(dict.fromkeys(TITLES[b.framework] for b in checked.builds if b.kind in kinds))
        for what, kinds in (
            ("for the GPU", ("cuda", "rocm")), ("for Intel's GPUs", ("xpu",)),
            ("CPU-only", ("cpu",)), ("not told", ("unknown",)),
        )
    }  # fmt: skip
    told = "; ".join(f"{', '.join(names)}: {what}" for what, names in groups.items() if names)
    if groups["not told"]:
        return "?", "bold yellow", f"{told}."
    is_told = not any(line.startswith("Driver:") for line in checked.not_checked)
    cuda_alone = [one.kind for one in checked.builds] == ["cuda"]
    runs = ", and the driver runs it" if cuda_alone and is_told else ""
    return ("!", "bold yellow", f"{told}.") if checked.problems else (
        "✓", "bold green", f"{told}{runs}.",
    )  # fmt: skip


def _builds(builds: tuple[Build, ...]) -> list[Text]:
    column = max((len(TITLES[one.framework]) for one in builds), default=0)
    lines = []
    for one in builds:
        style = {"cpu": "red", "unknown": "yellow"}.get(one.kind, "green")
        kind = f"{_ACCELERATORS[one.kind]} {one.toolkit}".strip()
        lines.append(
            Text.assemble(
                f"  {TITLES[one.framework].ljust(column)}  ",
                plain(f"{one.package} {one.version}  "),
                (kind, style),
                (plain(f"  {one.evidence}"), "dim"),
            )
        )
    return lines


def _problem(problem: Problem, width: int) -> list[Text]:
    mark, style = _MARKS[problem.severity]
    return [
        *flow(words(problem.sentence), width, Text.assemble((mark, style), " "), style="bold"),
        *flow(words(problem.evidence), width, Text("  "), style="dim"),
        *flow(words(problem.action), width, Text("  → ")),
    ]
