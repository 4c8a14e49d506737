"""The program saves a growing result as a whole each time, although only a few rows are new.

The stacks show that the writing took the time. The program's source shows that the loop adds rows
to what it writes, and never removes any. If the loop runs twice as long, the writing takes four
times as long.
"""

from __future__ import annotations

from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.wholes import WholeTime, whole_times
from teho.model.in_source import Whole, WholeUse
from teho.model.program import MainProcess

RANK = 217
SEVERITY = "critical, warning"
THRESHOLDS = {
    "explains_percent": chosen(
        50.0, "%", "above this limit, the writing is the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "serial_program", "cores_unused", "saving_often")
MUTES_BECAUSE = "if most of the time goes to writing old rows again, this finding says so"
SAME_LOSS_AS = ("known_activity", "saving_often")
_REGAIN = (0.5, 0.98)
"""Part of the time that is saved. The number of times is not known: with three of them, half of the
rows are written again."""
_APPENDED = {
    "json.dump": 'out.writelines(json.dumps(row) + "\\n" for row in {new})',
    "json.dumps": 'out.writelines(json.dumps(row) + "\\n" for row in {new})',
    "pickle.dump": "pickle.dump({new}, out)",
    "numpy.savetxt": "np.savetxt(out, {new})",
    "writelines": "out.writelines({new})",
    "writerows": "writer.writerows({new})",
}
"""How new rows are added to a file that is open as `out`."""
_READ = {
    "json.dump": " To read the rows: `[json.loads(line) for line in open(path)]`.",
    "json.dumps": " To read the rows: `[json.loads(line) for line in open(path)]`.",
    "pickle.dump": " To read the rows, call `pickle.load` until the file ends (`EOFError`).",
}
_CSV = 'pd.DataFrame({new}).to_csv(path, mode="a", header=saved == 0)'
_PARTS = {
    "numpy.save": 'np.save(f"part_{saved:09d}.npy", {new})',
    "numpy.savez": 'np.savez(f"part_{saved:09d}.npz", {new})',
    "numpy.savez_compressed": 'np.savez_compressed(f"part_{saved:09d}.npz", {new})',
    "torch.save": 'torch.save({new}, f"part_{saved:09d}.pt")',
    "to_parquet": 'pd.DataFrame({new}).to_parquet(f"part_{saved:09d}.parquet")',
    "to_feather": 'pd.DataFrame({new}).to_feather(f"part_{saved:09d}.feather")',
    "to_pickle": 'pd.DataFrame({new}).to_pickle(f"part_{saved:09d}.pkl")',
    "write_parquet": '{new}.write_parquet(f"part_{saved:09d}.parquet")',
}
"""How new rows are written to a file of their own."""


def judge(context: ProgramContext) -> Findings:
    """Find results that are written again, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in whole_times(main):
            is_again = time.whole.use is WholeUse.SAVED and time.is_lost()
            if is_again and context.is_loss(time.wall_s, main):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: WholeTime) -> Located:
    whole, call = time.whole, time.whole.call
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    grows = whole.grows[0]
    return context.lost(
        f"Writing `{whole.name}` at {call.short_place} took {share:.0f} % of the run time: all "
        f"{whole.key} are written each time, not only the new {whole.key} ({grows.short_place}).",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on writing", share, "%"),
            Evidence("time spent on writing", time.wall_s, "s"),
            Evidence("loop", f"{whole.loop.short_place}  {whole.loop.short_text}"),
            Evidence("added at", f"{grows.short_place}  {grows.short_text}"),
        ),
        action=_action(whole),
        judged_by=["explains_percent"],
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=Certainty.LIKELY,
    )


def _action(whole: Whole) -> str:
    last = (
        f"Or write `{whole.name}` only once, after the loop (after line {whole.last} of "
        f"{whole.loop.file.rpartition('/')[2]})."
    )
    if whole.key == "items":
        return (
            f"Write only the new items: at line {whole.call.line}, open the file with the mode "
            '`"a"`, and write one line for each new item, for example `out.write(json.dumps([key, '
            f'value]) + "\\n")`. {last}'
        )
    saved = "self.saved" if whole.name.startswith("self.") else "saved"
    is_table = "concat(" in whole.grows[0].text
    new = f"{whole.name}{'.iloc' * is_table}[{saved}:]"
    first = whole.made[0] if saved != "saved" and whole.made else whole.loop
    where = "after" if saved != "saved" else "before"
    count = (
        f"Set `{saved} = 0` {where} line {first.line}, and `{saved} = len({whole.name})` after "
        "writing."
    )
    if whole.call.function != whole.loop.function and saved == "saved":
        count += f" Pass `{saved}` to `{whole.call.function.rpartition('.')[2]}` as an argument."
    line = f"replace line {whole.call.line} by"
    if whole.how in _PARTS or whole.how == "to_csv":
        code = _PARTS.get(whole.how, _CSV).replace("{new}", new).replace("{saved", "{" + saved)
        code = code.replace("saved ==", f"{saved} ==") if saved != "saved" else code
        code = code.replace(f"pd.DataFrame({new})", new) if is_table else code
        own = "" if whole.how == "to_csv" else ", each time into a new file"
        return f"Write only the new rows{own}: {line} `{code}`. {count} {last}"
    code = _APPENDED.get(whole.how, "").replace("{new}", new)
    code = f"`{code}`" if code else f"code that writes only `{new}`"
    return (
        f'Open the file with the mode `"a"` (`"ab"` for bytes), and write only the new rows: '
        f"{line} {code}. {count}{_READ.get(whole.how, '')} {last}"
    )
