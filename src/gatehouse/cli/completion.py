"""`gatehouse completion`: complete commands and options with the Tab key."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print a script that completes commands and options in your shell.

    bash: add `eval "$(gatehouse completion bash)"` to ~/.bashrc. zsh: the same with zsh, in ~/.zshrc. fish: save the
    output as ~/.config/fish/completions/gatehouse.fish.
    """
    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(shell_class(context.find_root().command, {}, "gatehouse", "_GATEHOUSE_COMPLETE").source())
