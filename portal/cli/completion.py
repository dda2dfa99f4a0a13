"""The command completion: the shell script by which names and options are completed."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "gpu-portal"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: echo 'eval "$(gpu-portal completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(gpu-portal completion zsh)"' >> ~/.zshrc
    fish: gpu-portal completion fish > ~/.config/fish/completions/gpu-portal.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"{shell} is not supported.", param_hint="SHELL")
    click.echo(kind(context.find_root().command, {}, PROGRAM, "_GPU_PORTAL_COMPLETE").source())
