"""The gpu-portal command: request GPUs, list them with their cost, and release them."""

import click

from portal.cli import access, allocations, catalogue


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Ask for GPU slices, see what they hold and what they cost.

    Begin with `gpu-portal login`. Every command takes `--output json`.
    """


for command in (
    access.login,
    catalogue.offerings,
    allocations.request,
    allocations.list_,
    allocations.show,
    allocations.wait,
    allocations.extend,
    allocations.release,
    catalogue.queue,
    catalogue.costs,
    allocations.kubeconfig,
    access.token,
):
    cli.add_command(command)


if __name__ == "__main__":
    cli()
