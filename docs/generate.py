"""Write what is made from the code: reference pages, notebooks, and files that are shipped."""

from __future__ import annotations

import ast
import inspect
import json
import pprint
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from teho.cli import COMMANDS
from teho.cli.group import teho
from teho.clusters.catalogue import load_catalogue
from teho.config.settings import Settings
from teho.explain.peaks import RATES, all_peaks
from teho.explain.policy import load_policy
from teho.explain.registry import RULES, mutes_of
from teho.explain.rule import kind_of
from teho.launchers.registry import launchers
from teho.model import cluster as cluster_nouns
from teho.model.batch_sizes import BatchSizes
from teho.model.bench import Bench
from teho.model.cluster import Cluster
from teho.model.compared import Compared
from teho.model.digest import Digest, JobList
from teho.model.doctor import Examination
from teho.model.document import Report
from teho.model.metric import METRICS
from teho.model.packed import Packed
from teho.model.scaled import Scaled
from teho.model.software import Checked, EnvironmentPlan
from teho.model.staged import Staged
from teho.model.trace import Profiled
from teho.model.tuned import Tuned
from teho.schedulers.registry import cluster_schedulers
from teho.schedulers.script.launch_site import launch_site
from teho.show.build.bench import bench_document
from teho.show.html.words import read_glossary
from teho.show.json import plan as plan_json
from teho.show.json.bench import read_bench_json
from teho.show.json.noun import schema_of
from teho.show.text.document import render_text

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

from notebooks import LESSONS, notebook  # noqa: E402 - the path above leads to it
from report_page import report_page, statements_of  # noqa: E402

sys.path.append(str(HERE.parent / "benchmarks" / "gpu"))

import page as gpu_page  # noqa: E402
import sources_page  # noqa: E402

PACKAGE = HERE.parent / "src" / "teho"
NOTE = "<!-- Made by docs/generate.py; a test holds it in step. -->\n\n"


def metrics() -> str:
    """Return the page of metrics, with a row for each metric."""
    lines = [
        "# Metrics\n",
        "Each metric has one column in a [recording](../format.md). The column has the name of",
        "the metric. A *gauge* is a quantity that goes up and down: each row of the column has a",
        "mean of the gauge. A *counter* is a quantity that only grows: each row has the total",
        "since the recording began.\n",
        "| name | unit | kind | of | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{metric.name}` | {metric.unit} | {metric.kind} | {metric.scope} | {metric.meaning} |"
        for metric in METRICS
    ]
    return "\n".join(lines) + "\n"


def peaks() -> str:
    """Return the page of peaks: a row for each device."""
    tensor = [f"tensor {what}" for what in ("FP64", "TF32", "16 bit")]
    heads = ["device", "FP64", "FP32", "FP16", *tensor, "memory", "PCIe", "source"]
    lines = [
        "# Peaks\n",
        "This page lists the highest speeds of each device (GPU), from the documents of the",
        "maker of the device. Teho reads these speeds from the file `peaks.toml` of the package",
        "`teho.explain`. The columns *FP64* to *tensor 16 bit* are in TFLOP/s, for dense data,",
        "at the highest clock. The column *memory* is the bandwidth of the device's memory in",
        "GB/s. The prefixes G and T are powers of 1000. The column *PCIe* is the generation of",
        "the PCIe link (with 16 lanes) between the device and the CPU. A dash means that the",
        "device does not have this part. *unknown* means that the maker's documents do not give",
        "the value.\n",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for device in all_peaks():
        fields = (*RATES, "memory_gb_per_s", "pcie_generation")
        cells = [
            "*unknown*" if field in device.unknown else "–" if value is None else f"{value:g}"
            for field in fields
            for value in (getattr(device, field),)
        ]
        lines.append(f"| {', '.join(device.names)} | {' | '.join(cells)} | {device.source} |")
    return "\n".join(lines) + "\n"


def meanings_of(noun: type) -> dict[str, str]:
    """Return what each field of a class means, from the docstring below it."""
    return {
        field.target.id: words
        for field, words in statements_of(noun)
        if isinstance(field, ast.AnnAssign) and words
    }


def settings() -> str:
    """Return the page of settings. Their meanings are the docstrings below the fields."""
    meanings = meanings_of(Settings)
    default = Settings()
    lines = [
        "# Settings\n",
        "You can write settings into the file `~/.config/teho/config.toml`, or into environment",
        "variables. If a setting is in both places, Teho uses the environment variable.\n",
        "| key | default | meaning |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{name}` | `{json.dumps(getattr(default, name))}` | {meanings[name]} |"
        for name in Settings.__struct_fields__
    ]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Return the page of commands, with the output of `--help` for each command."""
    parts = ["# Commands\n"]
    with click.Context(teho, info_name="teho", **teho.context_settings) as root:
        for name, (group, _) in COMMANDS.items():
            command = teho.get_command(root, name)
            parts += _helps(command, name, root, f"*{group}*\n\n")
    return "\n".join(parts)


def _helps(command: click.Command, name: str, parent: click.Context, group: str = "") -> list[str]:
    """Return the output of `--help` for a command, and for each command inside it."""
    with click.Context(command, info_name=name, parent=parent, max_content_width=90) as own:
        parts = [f"## {own.command_path}\n\n{group}```text\n{own.get_help()}\n```\n"]
        for inner in getattr(command, "commands", {}).values():
            parts += _helps(inner, inner.name, own)
    return parts


def cluster_schema() -> dict[str, Any]:
    """Return the JSON schema of a cluster's file, with what each field means."""
    schema = msgspec.json.schema(Cluster)
    schema["$defs"]["Cluster"]["properties"]["scheduler"]["enum"] = sorted(cluster_schedulers())
    for name, definition in schema["$defs"].items():
        for field, meaning in meanings_of(getattr(cluster_nouns, name)).items():
            definition["properties"][field]["description"] = meaning
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A cluster of Teho's catalogue",
        **schema,
    }


def cluster_file() -> str:
    """Return the page of a cluster's file: a section for each table, a row for each key."""
    definitions = cluster_schema()["$defs"]
    lines = [
        "# A cluster's file\n",
        "Each cluster has one TOML file. The page [Clusters](../clusters.md) says in which",
        "folder the file is. If a file has a key that is not on this page, `teho clusters check`",
        "reports an error. The JSON schema of the file is `cluster.schema.json` in the package",
        "`teho.clusters`. An editor that knows this schema can complete the names of keys.\n",
    ]
    for name in ["Cluster", *sorted(definitions.keys() - {"Cluster"})]:
        definition = definitions[name]
        lines += [f"## {name}\n", f"{inspect.cleandoc(definition['description'])}\n"]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        required = definition.get("required", ())
        for field, kind in definition["properties"].items():
            default = "**required**" if field in required else _default(kind["default"])
            meaning = kind.get("description", "").replace("|", "\\|")
            lines.append(f"| `{field}` | {_kind(kind)} | {default} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _default(value: Any) -> str:
    return "" if value in (None, "", (), [], {}) else f"`{json.dumps(value)}`"


def _kind(kind: dict[str, Any]) -> str:
    """Return a type of the schema in the words of TOML: `list of Term`, `number`."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind:  # the other type is null, which does not exist in TOML
        return _kind(kind["anyOf"][0])
    if "enum" in kind:
        return " or ".join(f'`"{value}"`' for value in kind["enum"])
    if kind["type"] == "array":
        return f"list of {_kind(kind['items'])}"
    if kind["type"] == "object":
        return f"table of {_kind(kind['additionalProperties'])}"
    words = {"string": kind.get("format", "text"), "integer": "whole number"}
    return words.get(kind["type"], kind["type"])


PAGES = {
    "cluster-file": cluster_file,
    "commands": commands,
    "metrics": metrics,
    "peaks": peaks,
    "settings": settings,
}


NO_FACTS: dict[str, object] = {
    "recognised_by": {},
    "hosts": [],
    "cores_of_gpu": [],
    "reserved_cores": [],
    "cores_with_gpu": 0,
    "memory_with_gpu_mib": 0,
    "gpus_visible": "all",
    "scratch": "",
    "scratch_in_memory": False,
    "generations": [],
}
"""The facts of a cluster for `teho launch` if its documents give no facts."""


def launch_sites() -> str:
    """Return the module with the parts of the catalogue and the launchers for `teho launch`."""
    clusters = load_catalogue({"XDG_CONFIG_HOME": "/"}).values()
    sites = [
        {key: value for key, value in launch_site(cluster).items() if value != NO_FACTS.get(key)}
        for cluster in clusters
    ]
    names = ("programs", "processes_option", "processes_variable", "counts_all_nodes")
    starters: list[dict[str, object]] = [
        {"name": launcher.name, **{name: getattr(launcher, name) for name in names}}
        for launcher in launchers().values()
        if launcher.programs
    ]
    return (
        '"""Parts of the catalogue and of the launchers for `teho launch`; '
        'made by docs/generate.py."""\n\n'
        "from __future__ import annotations\n\n"
        "TYPE_CHECKING = False\nif TYPE_CHECKING:\n"
        "    from teho.schedulers.site_types import NodeLauncher, Site\n\n"
        '__all__ = ["NODE_LAUNCHERS", "SITES"]\n\n'
        f"NODE_LAUNCHERS: list[NodeLauncher] = {_pretty(starters)}\n\n"
        f"_NO_FACTS: Site = {_pretty(NO_FACTS)}  # type: ignore[typeddict-item]\n"
        f"_FACTS = {_pretty(sites)}\n"
        "SITES: list[Site] = [{**_NO_FACTS, **facts} for facts in _FACTS]"
        "  # type: ignore[typeddict-item]\n"
    )


def _pretty(rows: object) -> str:
    return pprint.pformat(rows, width=98, sort_dicts=False)


def _all_rules() -> list[str]:
    says = {rule: " ".join((inspect.getdoc(rule) or "").split()) for rule in RULES}
    rows = [f"| `{kind_of(rule)}` | {text} | {rule.SEVERITY} |" for rule, text in says.items()]
    return ["| Rule | It says | Severity |", "|---|---|---|", *rows]


def _mutes() -> list[str]:
    lines = ["| Finding | mutes | because |", "|---|---|---|"]
    for rule in RULES:
        if kinds := mutes_of(rule):
            muted = ", ".join(f"`{kind}`" for kind in kinds)
            lines.append(f"| `{kind_of(rule)}` | {muted} | {rule.MUTES_BECAUSE} |")
    return lines


def _thresholds() -> list[str]:
    rows = [
        f"| `{kind}.{name}` | {limit.value:g} {limit.unit} | {limit.source} |"
        for kind, limits in load_policy().thresholds.items()
        for name, limit in limits.items()
    ]
    return ["| Threshold | Value | Source |", "|---|---|---|", *rows]


def _launchers() -> list[str]:
    rows = [
        f"| `{name}` | {launcher.on_one_node} | {launcher.on_nodes} |"
        for name, launcher in launchers().items()
    ]
    return ["| launcher | one node | several nodes (Slurm) |", "|---|---|---|", *rows]


RULES_PAGE = HERE / "rules.md"
SCRIPTS_PAGE = HERE / "scripts.md"
_RULES_TABLES = {"all rules": _all_rules, "mutes": _mutes, "thresholds": _thresholds}


def rules_page() -> str:
    """Return the page of rules with new tables. The rest of the page stays."""
    return _with_tables(RULES_PAGE, _RULES_TABLES)


def scripts_page() -> str:
    """Return the page of scripts with a new table of launchers. The rest of the page stays."""
    return _with_tables(SCRIPTS_PAGE, {"launchers": _launchers})


def glossary_page() -> str:
    """Return the page of the glossary; HTML reports have the same definitions."""
    head = [
        "# Glossary",
        "",
        "This page explains the terms in Teho's pages and reports, in alphabetical order. If a",
        "term has a unit, the unit is in brackets. In an HTML report, the headings and the facts",
        "are links to the same definitions. You can link to each term of this page, for example",
        "with [`glossary.md#sm-activity`](#sm-activity).",
        "",
    ]
    for entry in read_glossary():
        places = "".join(f'<a id="{name}"></a>' for name in entry.ids)
        unit = f" ({entry.unit})" if entry.unit else ""
        line = f"- {places}**{entry.name}**{unit}: {' '.join(entry.text.split())}"
        head += textwrap.wrap(
            line, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    return "\n".join([*head, ""])


LESSON_PAGE = HERE / "learn" / "when-a-gpu.md"


def lesson_page() -> str:
    """Return the lesson about sizes, with the columns of a GPU if a GPU was measured."""
    return _with_tables(LESSON_PAGE, {"a GPU's columns": _on_a_gpu})


def _on_a_gpu() -> list[str]:
    """Return what `teho bench solve` measured on a GPU, or that no GPU was measured."""
    stored = gpu_page.BENCHES / "solve.json"
    bench = read_bench_json(stored) if stored.exists() else None
    if bench is None or not any(
        timing.placement.startswith("gpu") for one in bench.results for timing in one.timings
    ):
        return [
            "**No GPU has been measured yet**, so this table has only columns for CPU cores.",
            "[On a real GPU](../gpu.md) says how to measure a GPU. When a GPU has been measured,",
            "this page shows the GPU's columns here.",
        ]
    shown = render_text(bench_document(bench), width=80, color=False)
    command = f"teho bench --from {stored.relative_to(HERE.parent)}"
    return [
        f"The same example on a GPU ({', '.join(bench.gpus)}; see [On a real GPU](../gpu.md)):",
        f"\n```console\n$ {command}\n{shown.rstrip()}\n```",
    ]


def _with_tables(page: Path, tables: dict[str, Callable[[], list[str]]]) -> str:
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin = f"<!-- docs/generate.py writes: {name} -->\n"
        head, _, rest = text.partition(begin)
        _, end, tail = rest.partition("<!-- end -->\n")
        text = head + begin + "\n" + "\n".join(table()) + "\n\n" + end + tail
    return text


def _schema(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


NOTEBOOKS = {
    HERE / "learn" / "notebooks" / f"{lesson}.ipynb": partial(notebook, lesson)
    for lesson in LESSONS
}
SHIPPED = {
    HERE / "glossary.md": lambda: NOTE + glossary_page(),
    HERE / "sources.md": lambda: NOTE + sources_page.page(),
    PACKAGE / "clusters" / "cluster.schema.json": lambda: _schema(cluster_schema()),
    PACKAGE / "show" / "batch_sizes.schema.json": lambda: _schema(schema_of(BatchSizes)),
    PACKAGE / "show" / "bench.schema.json": lambda: _schema(schema_of(Bench)),
    PACKAGE / "show" / "compare.schema.json": lambda: _schema(schema_of(Compared)),
    PACKAGE / "show" / "profile.schema.json": lambda: _schema(schema_of(Profiled)),
    PACKAGE / "show" / "digest.schema.json": lambda: _schema(schema_of(Digest)),
    PACKAGE / "show" / "jobs.schema.json": lambda: _schema(schema_of(JobList)),
    PACKAGE / "show" / "doctor.schema.json": lambda: _schema(schema_of(Examination)),
    PACKAGE / "show" / "env-check.schema.json": lambda: _schema(schema_of(Checked)),
    PACKAGE / "show" / "env-plan.schema.json": lambda: _schema(schema_of(EnvironmentPlan)),
    PACKAGE / "show" / "pack.schema.json": lambda: _schema(schema_of(Packed)),
    PACKAGE / "show" / "plan.schema.json": lambda: _schema(plan_json.schema()),
    PACKAGE / "show" / "report.schema.json": lambda: _schema(schema_of(Report)),
    PACKAGE / "show" / "scale.schema.json": lambda: _schema(schema_of(Scaled)),
    PACKAGE / "show" / "stage.schema.json": lambda: _schema(schema_of(Staged)),
    PACKAGE / "show" / "tune.schema.json": lambda: _schema(schema_of(Tuned)),
    PACKAGE / "schedulers" / "sites.py": launch_sites,
    HERE / "report-json.md": lambda: NOTE + report_page(),
    gpu_page.PAGE: gpu_page.write_page,
    RULES_PAGE: rules_page,
    SCRIPTS_PAGE: scripts_page,
    LESSON_PAGE: lesson_page,
}


def main() -> None:
    """Write every page and notebook, and every file that is shipped."""
    for name, page in PAGES.items():
        (HERE / "reference" / f"{name}.md").write_text(NOTE + page(), encoding="utf-8")
    for path, text in {**SHIPPED, **NOTEBOOKS}.items():
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
