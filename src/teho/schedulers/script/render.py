"""Find the templates of scripts (a site's, a user's or Teho's) and fill one in."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2

import teho.schedulers
from teho.errors import InputError
from teho.launchers.registry import launchers

__all__ = ["render", "template_folders"]

_SHARED = Path(__file__).parent / "templates"


def template_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the folders of templates. If several have a template, the first one counts.

    A site's templates are in the directories of `TEHO_TEMPLATES` (separated by colons), and a
    user's in `templates/` next to the settings. Teho's are in the folders of the schedulers, and
    shared ones in `templates/` next to this file.
    """
    config = environment.get("XDG_CONFIG_HOME") or "~/.config"
    places = (place for root in teho.schedulers.__path__ for place in Path(root).glob("*/*.sh.j2"))
    return (
        *(Path(folder) for folder in environment.get("TEHO_TEMPLATES", "").split(":") if folder),
        Path(config).expanduser() / "teho" / "templates",
        *sorted({place.parent for place in places}),
        _SHARED,
    )


def render(
    name: str, values: Mapping[str, object], environment: Mapping[str, str] = os.environ
) -> str:
    """Fill in a template.

    Args:
        name: name of the template, such as `slurm.sh.j2`.
        values: the names that it can use. Any other name in it is a mistake.
        environment: variables with the folders of templates.

    Raises:
        InputError: the template has a mistake; the message has its file and line.
    """
    folders = template_folders(environment)
    try:
        overriding = tuple(path for folder in folders for path in folder.glob("*.j2"))
        return _templates(folders, overriding).get_template(name).render(values)
    except jinja2.TemplateSyntaxError as error:
        raise _mistake(f"{error.filename}:{error.lineno}", error.message or "") from error
    except jinja2.TemplateNotFound as error:
        raise _mistake(_line_of(error, folders) or name, f"no template {error.name!r}") from error
    except UnicodeDecodeError as error:
        raise _mistake(name, f"{error.object[:40]!r} is not UTF-8") from error
    except Exception as error:
        where = _line_of(error, folders)
        if where is None:
            raise
        raise _mistake(where, f"{error}") from error


@cache
def _templates(folders: tuple[Path, ...], _overriding: tuple[Path, ...]) -> jinja2.Environment:
    """Return the environment that finds and compiles templates.

    It compiles a template again if its file changes. A new template needs a new environment,
    because it may override another one.
    """
    return jinja2.Environment(  # noqa: S701 - a script, not HTML: values are quoted for bash
        loader=jinja2.ChoiceLoader(
            [
                *(jinja2.FileSystemLoader(folder) for folder in folders),
                jinja2.FunctionLoader(_part_of_launcher),
            ]
        ),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _part_of_launcher(name: str) -> str | None:
    """Return the launcher's part `NAME.PART.j2`; None: launcher or part does not exist."""
    launcher, _, part = name.removesuffix(".j2").partition(".")
    known = launchers().get(launcher)
    return known.template(part) if known else None


def _mistake(where: str, found: str) -> InputError:
    return InputError(
        f"{where}: {found.rstrip('.')}",
        next_step="correct this template, or remove it so that Teho uses its own template",
    )


def _line_of(error: Exception, folders: tuple[Path, ...]) -> str | None:
    """Return the file and line of the template with an error; None: not in a template."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(folder) for folder in folders):
            return f"{frame.filename}:{frame.lineno}"
    return None
