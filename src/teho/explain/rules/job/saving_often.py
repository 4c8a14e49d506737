"""Saving files, such as checkpoints, takes a large part of the time."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.activities import main_activity
from teho.explain.options import option_of_rule
from teho.explain.program_context import mostly
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.explain.where import doing_of
from teho.model.program import Doing
from teho.model.stack import Seen
from teho.patterns import lazy_pattern

RANK = 270
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}

_AS_TEXT = "arrays_written_as_text"
"""Name in activities.toml."""

_TORCH_SAVES = lazy_pattern(r"/torch/serialization\.py$")
_TRAINERS = lazy_pattern(r"/(lightning|pytorch_lightning|transformers|accelerate|fabric)/")
_MEANWHILE = (
    " To save while the program works, use `torch.distributed.checkpoint.async_save` instead of "
    "`torch.save`: it writes a folder with several files."
)


def judge(context: ProgramContext) -> Findings:
    """Check how long the program saved."""
    for main, share in context.losses(Doing.SAVING):
        stacks = [seen for seen in main.process.stacks if doing_of(seen) is Doing.SAVING]
        found = main_activity(stacks)
        most, faster = mostly(found)
        if most and found and found[0].activity.name == _AS_TEXT:
            continue  # the rule known_activity says how to do it faster
        option = option_of_rule(main, "saving_often")
        less = f"Save less often: {option}" if option else "Save less often"
        yield context.lost(
            f"The program stopped its work for {share:.0f} % of the time to save data.{most}",
            share_percent=share,
            evidence=(
                Evidence("share of the run spent on saving", share, "%"),
                Evidence("time spent on saving", main.seconds(Doing.SAVING), "s"),
            ),
            action=f"{faster}. Or save less often."
            if faster
            else (
                f"{less}. Save only what you need to continue the run, and save to the "
                f"node's own disk or scratch.{_MEANWHILE if _saves_itself(stacks) else ''}"
            ),
            regain_percent=(share / 2, share),
            lines=main.lines(Doing.SAVING),
        )
        return


def _saves_itself(stacks: Sequence[Seen]) -> bool:
    """Return whether the program calls `torch.save`, and no trainer of a library calls it."""
    files = {frame.file for seen in stacks for frame in seen.frames}
    return any(map(_TORCH_SAVES.search, files)) and not any(map(_TRAINERS.search, files))
