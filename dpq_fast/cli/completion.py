"""`dpq-fast completion`: what a shell needs to complete the command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from dpq_fast.cli.options import Command

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    For example:
      dpq-fast completion bash >> ~/.bashrc
      dpq-fast completion zsh >> ~/.zshrc
      dpq-fast completion fish > ~/.config/fish/completions/dpq-fast.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(ctx.find_root().command, {}, "dpq-fast", "_DPQ_FAST_COMPLETE")
    click.echo(made.source_template % made.source_vars())
