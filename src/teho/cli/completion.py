"""`teho completion`: tab completion for a shell."""

from __future__ import annotations

import click

from teho.cli.declare import plain_command

__all__ = ["command"]


@plain_command("""\
  teho completion bash >> ~/.bashrc
  teho completion zsh >> ~/.zshrc
  teho completion fish > ~/.config/fish/completions/teho.fish""")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that lets SHELL complete commands, options and runs.

    Reads: no files.

    Writes: no files; the script goes to standard output.

    Network: not used.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    maker = get_completion_class(shell)
    if maker is None:  # click has these three
        raise click.UsageError(f"no completion for {shell}")
    click.echo(maker(root, {}, "teho", "_TEHO_COMPLETE").source(), nl=False)
