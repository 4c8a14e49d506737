"""Many tokens or time steps of the batches are padding."""

from __future__ import annotations

from teho.explain.lines import sections_s
from teho.explain.rule import Evidence, Findings, Located, ProgramContext, chosen
from teho.model.program import Doing, MainProcess, Section
from teho.model.watched import Loader

RANK = 204
SEVERITY = "critical, warning"
THRESHOLDS = {
    "padding_percent": chosen(
        40.0, "%", "texts of different lengths need some padding, even if they are sorted"
    ),
    "series_percent": chosen(
        25.0,
        "%",
        "series of different lengths need some padding; these time steps come after the longest "
        "series of a batch, so no batch needs them",
    ),
}

_COMPUTING = (Section.LOOP, Section.EVALUATION, Section.PROGRAM)
_REST_PERCENT = 20.0
"""Padding inside of the batches from which sorting by length is worth a sentence."""
_TEXTS = (
    "Pad each batch only to the length of its longest text. With Transformers, tokenize without "
    "`padding`, and use `DataCollatorWithPadding(tokenizer)`. Without Transformers, call "
    "`torch.nn.utils.rnn.pad_sequence` in `collate_fn`. Put texts of similar lengths into the same "
    "batch, for example with `group_by_length=True` in `TrainingArguments`."
)


def judge(context: ProgramContext) -> Findings:
    """Judge the share of padding in the batches of a loader.

    The probe counts the padding in the first batches. It uses the attention mask, or the token that
    ends most texts. In batches of series, it uses the lengths of the series. A model computes the
    padding in the same way as all other tokens and time steps.
    """
    for main in context.mains:
        loader, padding = _most_padded(main, "padding_percent")
        if loader is not None and padding >= context.limit("padding_percent"):
            found = _found(context, main, padding)
            if found is not None:
                yield found
                return
        loader, padding = _most_padded(main, "series_after_longest_percent")
        if loader is not None and padding >= context.limit("series_percent"):
            found = _found(context, main, padding, loader)
            if found is not None:
                yield found
                return


def _most_padded(main: MainProcess, fact: str) -> tuple[Loader | None, float]:
    """Return the loader with the most batches of those with padding, and its padding in %."""
    loaders = [one for one in main.process.loaders if fact in one.batch]
    loader = max(loaders, key=lambda one: one.batches, default=None)
    return loader, float(loader.batch[fact]) if loader else 0.0


def _found(
    context: ProgramContext, main: MainProcess, padding: float, series: Loader | None = None
) -> Located | None:
    """Return the finding; None if the padding costs too little time.

    Args:
        context: the run.
        main: the process.
        padding: share of the padding, in %.
        series: the loader, if it has series of numbers.
    """
    sections = sections_s(main.process)
    computing_s = sum(sections.get(section, 0.0) for section in _COMPUTING)
    needless_s = computing_s * padding / 100
    if not context.is_loss(needless_s, main):
        return None
    share = 100 * needless_s / main.process.wall_s
    sentence = (
        f"Of all tokens in the batches, {padding:.0f} % are padding (tokens without text). The "
        "model also computes with the padding."
    )
    evidence = [Evidence("share of padding in all tokens", padding, "%")]
    action = _TEXTS
    if series is not None:
        every = float(series.batch.get("series_padding_percent", padding))
        sentence = (
            f"Of all time steps in the batches, {padding:.0f} % come after the end of the longest "
            "series of their batch: they are only zeros. The model also computes with them."
        )
        evidence = [
            Evidence("time steps after the longest series", padding, "%"),
            Evidence("time steps after the end of their own series", every, "%"),
        ]
        action = _series_action(series, every - padding)
    computing = Evidence(
        "time in steps and in evaluation", 100 * computing_s / main.process.wall_s, "%"
    )
    return context.lost(
        sentence,
        share_percent=share,
        evidence=(*evidence, computing),
        action=action,
        regain_percent=(share / 2, 0.9 * share),
        lines=main.lines(Doing.NATIVE, Doing.THREADS, Doing.DEVICE),
    )


def _series_action(loader: Loader, rest: float) -> str:
    """Return the advice for series: `rest` is the padding inside of the batches, in %."""
    collate = str(loader.settings.get("collate") or "")
    where = f"In `{collate}`, pad" if collate and collate != "default_collate" else "Pad"
    action = (
        f"{where} each batch only to its own longest series: `width = max(lengths)`, instead of "
        "the same width for all batches. Or cut each batch before the model gets it: `series[:, : "
        "int(lengths.max())]`."
    )
    if rest >= _REST_PERCENT:
        action += (
            " Put series of similar lengths into the same batch: this further reduces the padding."
        )
    return action
