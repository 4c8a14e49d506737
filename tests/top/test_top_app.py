"""The screen as a user drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

pytest.importorskip("textual", reason="textual is not installed")

from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from teho.show.top import job
from teho.show.top.app import TopApp
from teho.show.top.frame import Frame
from teho.show.top.widgets import Lines, RowList
from top.frames import StillSource, frame, with_processes

SHOWN = frame({"n1": [97.0, 96.0, 95.0, 94.0], "n2": [90.0, 3.0, 90.0, 90.0]})


def screen(app: TopApp) -> str:
    """Return the text on the screen."""
    head, title, keys = (app.query_one(f"#{name}", Lines) for name in ("head", "title", "keys"))
    rows = app.query_one("#list", RowList)._rows
    parts = [*head._texts, *title._texts, *(row.line for row in rows), *keys._texts]
    return "\n".join(part.plain for part in parts)


def after(keys: Sequence[str], shown: Frame = SHOWN, size: tuple[int, int] = (100, 30)) -> str:
    """Return the screen after some keys."""

    async def drive() -> str:
        app = TopApp(StillSource(shown))
        async with app.run_test(size=size) as pilot:
            await pilot.press(*keys)
            await pilot.pause()
            before, text = "", screen(app)
            while text != before:  # on a loaded machine, a screen needs several turns
                await pilot.pause(0.05)
                before, text = text, screen(app)
            return text

    return asyncio.run(drive())


def test_the_worst_node_is_first_and_opens() -> None:
    first = after([])
    assert first.index("n2") < first.index("n1")
    assert "node n2" in after(["enter"])
    assert "GPU 0 of n2" in after(["enter", "enter"])
    assert "GPU 2 of n1" in after(["down", "enter", "down", "down", "enter"])
    assert "node n1" not in after(["down", "enter", "escape"])


def test_a_process_opens() -> None:
    assert "process 4711 on n2" in after(["enter", *["down"] * 4, "enter"])


def test_a_process_of_a_gpu_opens() -> None:
    keys = ["enter", "down", "down", "enter"]  # the process is on GPU 2 of n1
    assert "GPU 2 of n1" in after(["down", *keys])
    assert "process 11 on n1" in after(["down", *keys, "enter"], with_processes(SHOWN))
    back = after(["down", *keys, "enter", "escape"], with_processes(SHOWN))
    assert "GPU 2 of n1" in back


def test_what_is_below_the_last_row_that_can_be_chosen_can_be_read() -> None:
    keys = ["down", "enter", "down", "down", "enter"]

    async def drive() -> tuple[int, int]:
        app = TopApp(StillSource(with_processes(SHOWN)))
        async with app.run_test(size=(100, 16)) as pilot:
            await pilot.press(*keys)
            shown = app.query_one("#list", RowList)
            await pilot.press(*["down"] * 60)
            await pilot.pause()
            return shown.scroll_offset.y + shown.size.height, len(shown._rows)

    bottom, rows = asyncio.run(drive())
    assert rows > 12
    assert bottom == rows


def test_sorted_by_name() -> None:
    sorted_screen = after(["s"])
    assert sorted_screen.index("n1") < sorted_screen.index("n2")


def test_a_filter_shows_only_some_nodes_until_it_is_removed() -> None:
    typed = after(["slash", "n", "1"])
    assert "n2" not in typed
    entered = after(["slash", "q", "enter"])
    assert "ONLY q" in entered
    assert "n1" not in entered
    assert "n2" in after(["slash", "n", "1", "enter", "escape"])
    assert "n2" in after(["slash", "n", "1", "escape"])


def test_a_row_is_opened_while_a_filter_is_typed() -> None:
    async def drive() -> str:
        app = TopApp(StillSource(SHOWN))
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.press("enter", "slash", "w")
            await pilot.click("#list", offset=(5, 1))
            await pilot.press("escape")
            await pilot.pause()
            return screen(app)

    assert "node n2" in asyncio.run(drive())


def test_escape_while_a_filter_is_typed_stays_in_the_node() -> None:
    assert "node n2" in after(["enter", "slash", "escape"])
    assert "No node has “xyz” in its name." in after(["slash", *"xyz"])
    assert "No process has “xyz” in its command." in after(["enter", "slash", *"xyz"])


def test_the_cursor_moves_through_a_list_that_is_longer_than_the_screen() -> None:
    many = frame({f"n{number:03}": [50.0] for number in range(100)})
    assert "node n003" in after(["down", "down", "down", "enter"], many)
    assert "node n099" in after(["end", "enter"], many)
    assert "node n000" in after(["end", "home", "enter"], many)


def test_ten_thousand_gpus_are_shown_sorted_filtered_and_resized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy = {f"n{number:04}": [90.0] * 8 for number in range(1250)}
    busy["n0815"] = [90.0] * 7 + [3.0]
    drawn: list[str] = []
    made = job._node_line
    monkeypatch.setattr(
        job,
        "_node_line",
        lambda node, *a, **b: (drawn.append(node.node.name), made(node, *a, **b))[1],
    )

    async def drive() -> list[str]:
        app = TopApp(StillSource(frame(busy)))
        found = []
        async with app.run_test(size=(120, 40)) as pilot:
            for keys in (["j"], ["end"], ["slash", *"n12", "enter"], ["enter"], ["enter"]):
                await pilot.press(*keys)
                await pilot.pause()
                found.append(screen(app))
                before = len(drawn)
                app._tick()
                await pilot.pause()
                assert len(drawn) == before, "lines that have not changed were made again"
            await pilot.press("escape", "escape", "escape")
            for width, height in ((20, 5), (300, 100)):
                await pilot.resize_terminal(width, height)
                await pilot.pause(0.1)
                app._tick()
                await pilot.pause(0.1)
                found.append(screen(app))
        return found

    first, _, filtered, node, gpu, small, large = asyncio.run(drive())
    assert first.splitlines()[3].split()[1:9] == ["9"] * 7 + ["0"]  # the worst node
    assert "n0815" in first
    assert filtered.count("\nn12") == 50
    assert "n0815" not in filtered
    assert "node n1200" in node
    assert "GPU 0 of n1200" in gpu
    assert "n0815" in small
    assert large.count("\nn") == 1250


def test_what_is_hidden_or_old_is_named_first() -> None:
    line = after(["slash", "n", "1", "enter", "f"], size=(60, 20)).splitlines()[-1]
    assert line.startswith("  FROZEN   ONLY n1   Enter open")


def test_a_filter_of_processes() -> None:
    assert "python train.py" not in after(["enter", "slash", *"worker", "enter"])
    assert "python worker" in after(["enter", "slash", *"worker", "enter"])


def test_the_help_explains_keys_and_values() -> None:
    assert "Open the selected node, GPU or process." in after(["question_mark"])
    assert "node n2" in after(["enter", "question_mark", "escape"])
    assert "This run" in after(["question_mark"], size=(100, 60))


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (300, 100)])
@pytest.mark.parametrize("keys", [[], ["enter"], ["enter", "enter"], ["question_mark"]])
def test_every_size(size: tuple[int, int], keys: list[str]) -> None:
    text = after(keys, size=size)
    # At 20 columns, the last line has no room for all keys.
    assert ("quit" if size[0] >= 40 else "Esc back" if keys else "Enter open") in text
    first = text.splitlines()[0]
    assert first.startswith("✓ The GPUs were")
    assert len(first) <= size[0]


def test_the_help_begins_with_what_is_selected() -> None:
    def first_of(*keys: str) -> str:
        return after([*keys, "question_mark"]).partition("Selected\n")[2].splitlines()[0]

    assert first_of().startswith("GPU busy (utilisation)")
    assert first_of("s", "s").startswith("GPU memory used")  # by name, by GPU memory
    assert first_of("enter").startswith("GPU busy (utilisation)")
    assert first_of("enter", "enter").startswith("GPU busy (utilisation)")
    assert first_of("enter", "enter", "down").startswith("GPU memory used")
    assert "Selected" not in after(["s", "question_mark"])  # a name needs no help
    cores = after(["question_mark"], frame({"n1": []}))
    assert "Selected\nCores busy" in cores
    # Enter on a value does the same, and Escape goes back to the GPU.
    assert "Selected" in after(["enter", "enter", "enter"])
    assert "GPU 0 of n2" in after(["enter", "enter", "enter", "escape"])


def test_a_resize_while_it_runs() -> None:
    async def drive() -> list[tuple[int, int, str]]:
        app = TopApp(StillSource(SHOWN))
        found = []
        async with app.run_test(size=(100, 30)) as pilot:
            for width, height in ((100, 30), (30, 8), (20, 5), (200, 60)):
                await pilot.resize_terminal(width, height)
                await pilot.pause(0.1)
                app._tick()
                await pilot.pause(0.1)
                head = app.query_one("#head", Lines)
                lines = [*head._texts, *(row.line for row in app.query_one(RowList)._rows)]
                widest = max(line.cell_len for line in lines)
                found.append((widest, head.size.height, screen(app)))
                assert widest <= width
        return found

    wide, small, tiny, large = asyncio.run(drive())
    assert [one[1] for one in (wide, small, tiny, large)] == [5, 1, 1, 5]
    assert "until the time limit" in wide[2]
    assert "until the time limit" not in small[2]
    assert "n2" in tiny[2]
    assert large[2].splitlines()[-1] == wide[2].splitlines()[-1]


def test_the_mouse_wheel_scrolls() -> None:
    many = frame({f"n{number:03}": [50.0] for number in range(100)})

    async def drive() -> tuple[int, int]:
        app = TopApp(StillSource(many))
        async with app.run_test(size=(100, 30)) as pilot:
            shown = app.query_one("#list", RowList)
            where = {"x": 5, "y": 5, "delta_x": 0, "button": 0, "shift": False, "meta": False,
                     "ctrl": False}  # fmt: skip
            for _ in range(5):
                shown.post_message(MouseScrollDown(shown, delta_y=1, **where))
            await pilot.pause(0.5)
            down = shown.scroll_offset.y
            for _ in range(2):
                shown.post_message(MouseScrollUp(shown, delta_y=-1, **where))
            await pilot.pause(0.5)
            return down, shown.scroll_offset.y

    down, up = asyncio.run(drive())
    assert down > up > 0


def test_frozen_values_stay() -> None:
    async def drive() -> tuple[str, str, str]:
        source = StillSource(SHOWN)
        app = TopApp(source)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.press("f")
            source.shown = frame({"n9": [10.0]})
            app._tick()
            await pilot.pause()
            frozen = screen(app)
            await pilot.press("f")
            app._tick()
            await pilot.pause()
            return frozen, screen(app), str(source.polls)

    frozen, later, _ = asyncio.run(drive())
    assert "n2" in frozen
    assert "FROZEN" in frozen
    assert "n9" in later
    assert "FROZEN" not in later


def test_a_tick_while_the_screen_is_taken_down_draws_nothing() -> None:
    async def drive() -> tuple[str, str, int]:
        source = StillSource(SHOWN)
        app = TopApp(source)
        async with app.run_test(size=(100, 30)):
            await app.query_one("#list").remove()
            head, polls = app.query_one("#head", Lines), source.polls
            before = [text.plain for text in head._texts]
            source.shown = frame({"n9": [10.0]})
            app._tick()
            return str(before), str([text.plain for text in head._texts]), source.polls - polls

    before, later, polls = asyncio.run(drive())
    assert before == later != "[]"
    assert polls == 1


def test_a_click_opens_a_node() -> None:
    async def drive() -> str:
        app = TopApp(StillSource(SHOWN))
        async with app.run_test(size=(100, 30)) as pilot:
            pilot_click: Pilot[None] = pilot
            await pilot_click.click("#list", offset=(5, 1))
            await pilot.pause()
            return screen(app)

    assert "node n1" in asyncio.run(drive())
