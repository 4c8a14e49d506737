"""The application of the portal: which address shows which page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from teho.errors import InputError, RunNotFoundError, TehoError
from teho.model.listed_run import ListedRun, Totals
from teho.profile.hand_over import tensorboard_commands
from teho.show.html.page import PageParts, page_parts
from teho.show.portal import pages
from teho.show.portal.choices import Choices
from teho.show.portal.computed import Computed
from teho.show.portal.events import Streams
from teho.show.portal.files import downloads, open_file, traces
from teho.show.portal.judging import Judging
from teho.show.portal.languages import choose_language, say
from teho.show.portal.live import MOST_RUNS, Live, Watched
from teho.show.portal.query import PAGE_ROWS, ListQuery, parse_since, read_query
from teho.show.portal.recordings import Recordings
from teho.show.portal.render import ASSETS, asset, render
from teho.show.portal.rows import row_of
from teho.show.portal.savings import savings_of
from teho.store.layout import is_run_id, safe_name
from teho.store.read import read_run
from teho.store.search import RunFilter
from teho.units import counted

__all__ = ["Portal"]

_NEWEST = 8
_MOST_JUDGED = 100
"""Runs of a sum whose reports are computed after each visit."""
_MOST_COMPARED = 10
_TIMES = 30
"""Runs in the drawing of a program's times."""
_NOW_S = 0.1
"""Time in which the home page begins to watch running runs; its script then asks for the others."""
_BLOCK_BYTES = 1 << 18
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Portal:
    """All pages.

    Args:
        recordings: the runs.
        teho: the command of this Teho, for the processes that compute reports.
    """

    def __init__(self, recordings: Recordings, teho: Sequence[str]) -> None:
        self._recordings = recordings
        self._computed = Computed(teho)
        self._judging = Judging(recordings, self._computed)
        self._live = Live()
        self._streams = Streams(self._live, self._running, self._are_judged, self._judging)
        self._choices = Choices(recordings)

    @cached_property
    def application(self) -> Starlette:
        """The ASGI application, without the checks of `Guard`."""
        self._judging.start()
        self._computed.prepare()
        views: dict[str, Callable[[Request], Response]] = {
            "/": self._home,
            "/runs": self._runs,
            "/run": self._run,
            "/compare": self._compare,
            "/usage": self._usage,
            "/clusters": self._clusters,
            "/cluster": self._cluster,
            "/plan": self._plan,
            "/file": self._file,
        }
        return Starlette(
            routes=[
                *(Route(path, self._answering(view)) for path, view in views.items()),
                Route("/events", self._events),
                *(Route(f"/{name}", self._asset) for name in ASSETS),
            ],
            exception_handlers={404: self._not_found},
        )

    def end_streams(self) -> None:
        """End the streams of events soon, so that the server can end."""
        self._streams.end()

    def close(self) -> None:
        """End all work, and give the leases of watched runs back."""
        self._judging.stop()
        self._computed.close()
        self._live.close()

    def _answering(self, view: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Return a view that shows a page for what the user can solve."""

        def answer(request: Request) -> Response:
            choose_language(request.headers.get("accept-language", ""))
            try:
                return view(request)
            except RunNotFoundError as error:
                return self._problem(error, 404)
            except TehoError as error:
                return self._problem(error, 400 if isinstance(error, InputError) else 500)

        answer.__name__ = view.__name__
        return answer

    def _problem(self, error: TehoError, status: int) -> Response:
        sentence = error.found
        if error.expected:
            sentence += f". Expected: {error.expected}"
        page = pages.error_page(self.base(), f"{sentence}.", error.next_step)
        return HTMLResponse(page, status)

    def _not_found(self, _request: Request, _error: Exception) -> Response:
        return self._problem(RunNotFoundError("the portal has no such page"), 404)

    def base(self) -> dict[str, Any]:
        """Return what all pages have."""
        has_group = self._recordings.shared is not None
        return {
            "has_group": has_group,
            "has_search": True,
            "now_s": time.time(),
            "pages": [
                ("home", "./", say("Home")),
                ("runs", "runs", say("Runs")),
                *([("group", "runs?of=group", say("Group"))] if has_group else []),
                ("usage", "usage", say("Usage")),
                ("clusters", "clusters", say("Clusters")),
                ("plan", "plan", say("Plan")),
            ],
        }

    # Pages

    def _home(self, _request: Request) -> Response:
        self._recordings.refresh()
        since = RunFilter(since_s=pages.month_begin_s())
        with self._recordings.search() as search:
            running = search.find(RunFilter(outcome="running"), limit=MOST_RUNS)
            newest = [run for run in search.find(limit=_NEWEST + len(running))
                      if run.outcome != "running"][:_NEWEST]  # fmt: skip
            month = next(iter(search.totals("all", since)), None)
            found = savings_of(search, since, since=pages.month_begin())
            of_month = search.find(since, limit=_MOST_JUDGED)
        self._judging.ask([*running, *newest, *of_month])
        self._computed.prepare()
        page = pages.home_page(
            self.base(),
            [row_of(run, self._judging.of_running(run)) for run in running],
            self._live.facts_of(running, _NOW_S),
            [row_of(run) for run in newest],
            month,
            found,
            _next_steps(running, newest),
        )
        return HTMLResponse(page)

    def _runs(self, request: Request) -> Response:
        query = read_query(request.query_params)
        wanted = query.filter()
        self._recordings.refresh()
        group = query.scope == "group"
        if query.by == "program":
            return HTMLResponse(self._programs(query, wanted, group=group))
        offset = (query.page - 1) * PAGE_ROWS
        with self._recordings.search(group=group) as search:
            runs, count = search.find_counted(
                wanted,
                sort=query.sort,
                descending=query.order != "asc",
                limit=PAGE_ROWS,
                offset=offset,
            )
        self._judging.ask(runs)
        self._computed.prepare()
        rows = [row_of(run, self._judging.of_running(run), scope=query.scope) for run in runs]
        choices = self._choices.get(group=group)
        return HTMLResponse(pages.list_page(self.base(), query, rows, count, choices))

    def _programs(self, query: ListQuery, wanted: RunFilter, *, group: bool) -> str:
        with self._recordings.search(group=group) as search:
            totals = search.totals(
                "command", wanted, limit=PAGE_ROWS, offset=(query.page - 1) * PAGE_ROWS
            )
            groups = [(one, search.times(one.key, _TIMES)) for one in totals]
        self._judging.ask([runs[-1] for _, runs in groups if runs])
        return pages.programs_page(self.base(), query, groups, self._choices.get(group=group))

    def _run(self, request: Request) -> Response:
        run = self._requested_run(request)
        directory = Path(run.directory)
        parts = self._computed.report(directory)
        by = request.query_params.get("by", "")
        names = [*downloads(directory, read_run(directory)), "report.json"]
        files = [(name, _file_address(run, by, name)) for name in names]
        with self._recordings.search(group=bool(by)) as search:
            earlier = RunFilter(command=run.command, until_s=run.began_s)
            before = next(iter(search.find(earlier, limit=1)), None)
        own = None
        if by:
            with self._recordings.search() as search:
                own = next(iter(search.find(RunFilter(command=run.command), limit=1)), None)
        commands = tensorboard_commands(run.id) if not by and traces(directory) else ()
        base = {**self.base(), "by": by}
        is_watched = run.outcome == "running" and not by
        watched = self._live.watch(directory) if is_watched else None
        now = watched.newest.for_page() if watched else None
        page = pages.run_page(base, run, parts, files, commands, before, own, now)
        return HTMLResponse(page)

    def _compare(self, request: Request) -> Response:
        keys = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(keys) <= _MOST_COMPARED:
            raise InputError(
                f"{counted(len(keys), 'run')} selected",
                f"two to {_MOST_COMPARED} different runs",
                "select them in the list",
            )
        found = []
        for key in keys:
            by, _, run_id = key.rpartition(":")
            found.append((self._known_run(run_id, by), "group" if by else ""))
        found.sort(key=lambda pair: pair[0].began_s)
        parts = self._computed.diff([Path(run.directory) for run, _ in found])
        rows = [row_of(run, scope=scope) for run, scope in found]
        links = render("compared.html", self.base(), rows=rows)
        return HTMLResponse(pages.document_page(self.base(), "runs", parts, links))

    def _usage(self, request: Request) -> Response:
        given = request.query_params
        by = given.get("by", "") or "month"
        if by not in pages.USAGE_BY:
            raise InputError(f"by={by[:40]}", ", ".join(pages.USAGE_BY))
        since = given.get("since", "").strip()
        scope = "group" if given.get("of") == "group" else ""
        wanted = RunFilter(since_s=parse_since(since) if since else None)
        self._recordings.refresh()
        with self._recordings.search(group=bool(scope)) as search:
            totals = search.totals(by, wanted, limit=200)
            if by != "month":
                totals.sort(key=_by_use, reverse=True)
            found = savings_of(search, wanted, since=since, scope=scope)
            self._judging.ask(search.find(wanted, limit=_MOST_JUDGED))
        return HTMLResponse(pages.usage_page(self.base(), by, scope, since, totals, found))

    def _clusters(self, _request: Request) -> Response:
        from teho.clusters.catalogue import load_catalogue
        from teho.show.build.clusters import clusters_document

        clusters = load_catalogue()
        parts = page_parts(clusters_document(clusters.values()))
        links = render("clusters.html", self.base(), names=list(clusters))
        return HTMLResponse(pages.document_page(self.base(), "clusters", parts, links))

    def _cluster(self, request: Request) -> Response:
        from teho.clusters.catalogue import cluster_files, load_cluster
        from teho.show.build.clusters import cluster_document

        name = request.query_params.get("name", "")
        files = cluster_files()
        if name not in files:
            raise RunNotFoundError(
                f"the catalogue has no cluster {name[:40]!r}", "", "`teho clusters` lists them"
            )
        parts: PageParts = page_parts(cluster_document(load_cluster(name), files[name]))
        return HTMLResponse(pages.document_page(self.base(), "clusters", parts))

    def _plan(self, request: Request) -> Response:
        from teho.show.portal.planning import plan_of

        return HTMLResponse(pages.plan_page(self.base(), plan_of(request.query_params)))

    # Files

    def _file(self, request: Request) -> Response:
        run = self._requested_run(request)
        name = request.query_params.get("name", "")
        directory = Path(run.directory)
        headers = {
            "content-disposition": f'attachment; filename="{safe_name(run.id)}-{safe_name(name)}"'
        }
        if name == "report.json":
            return Response(
                self._computed.json(directory), media_type="application/json", headers=headers
            )
        path = downloads(directory, read_run(directory)).get(name)
        if path is None:
            raise RunNotFoundError(f"the run has no file {name[:80]!r}")
        try:
            file = open_file(path)
        except OSError as error:
            raise RunNotFoundError(f"the file {name[:80]!r} cannot be read") from error
        return StreamingResponse(
            _blocks(file), media_type="application/octet-stream", headers=headers
        )

    def _asset(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        content = asset(name)
        if content is None:
            return PlainTextResponse("not found\n", 404)
        kind = _KINDS[name.rpartition(".")[2]]
        headers = {"cache-control": "private, max-age=31536000, immutable"}
        return Response(content, media_type=kind, headers=headers)

    def _requested_run(self, request: Request) -> ListedRun:
        given = request.query_params
        return self._known_run(given.get("id", ""), given.get("by", ""))

    def _known_run(self, run_id: str, by: str) -> ListedRun:
        self._recordings.refresh()
        run = self._recordings.find(run_id, by) if is_run_id(run_id) else None
        if run is None:
            raise RunNotFoundError(f"there is no run {run_id[:80]!r}", "", "the list has all runs")
        return run

    async def _events(self, request: Request) -> Response:
        if self._streams.are_full:
            return PlainTextResponse("too many pages show live values\n", 503)
        given = request.headers.get("last-event-id", request.query_params.get("after", "0"))
        after = int(given) if given.isascii() and given.isdecimal() and len(given) < 20 else 0
        run_id = request.query_params.get("id", "")
        if not run_id:
            shown, unjudged = (
                {one for one in request.query_params.get(name, "").split(",") if is_run_id(one)}
                for name in ("shown", "unjudged")
            )
            stream = self._streams.of_home(shown, unjudged)
        else:
            found = await run_in_threadpool(self._watched, run_id)
            if found is None:
                return PlainTextResponse("this run cannot be watched\n", 404)
            stream = self._streams.of_run(*found, after)
        return StreamingResponse(
            self._streams.counted(stream),
            media_type="text/event-stream",
            # nginx must not collect the events before it sends them.
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def _watched(self, run_id: str) -> tuple[ListedRun, Watched] | None:
        """Watch an own run; None if it is not known, or if too many runs are watched."""
        run = self._recordings.find(run_id) if is_run_id(run_id) else None
        watched = self._live.watch(Path(run.directory)) if run else None
        return (run, watched) if run and watched else None

    def _are_judged(self, ids: set[str]) -> bool:
        """Return whether all these runs have a verdict."""
        runs = (self._recordings.find(run_id) for run_id in ids)
        return all(run is None or run.judged for run in runs)

    def _running(self) -> list[ListedRun]:
        self._recordings.refresh()
        with self._recordings.search() as search:
            running = search.find(RunFilter(outcome="running"), limit=MOST_RUNS)
        self._judging.ask(running)
        return running


def _by_use(total: Totals) -> tuple[float, float, int]:
    """Return a key that sorts sums by what the runs used."""
    return total.gpu_hours, total.cost or 0.0, total.runs


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _file_address(run: ListedRun, by: str, name: str) -> str:
    return f"file?{urlencode({'id': run.id, **({'by': by} if by else {}), 'name': name})}"


def _next_steps(running: list[ListedRun], newest: list[ListedRun]) -> list[str]:
    """Return what can be done next, one sentence each."""
    steps = []
    if running:
        steps.append(say("Watch a run in the terminal: {}.").format(f"`teho top {running[0].id}`"))
    failed = [run for run in newest if run.outcome == "failed"]
    if failed:
        command = f"`teho report {failed[0].id}`"
        steps.append(say("Find out why the newest failed run failed: {}.").format(command))
    if not newest:
        steps.append(say("Record a program: put `teho run --` before its command."))
    return steps
