"""The gpu-portal command: request GPUs, list them with their cost, and release them."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from portal.cli import (
    access,
    allocations,
    browser,
    catalogue,
    cluster_access,
    completion,
    costs,
    errors,
    events,
    forecast,
    jobs,
    releases,
)


class Cli(click.Group):
    """A group whose errors follow `--output json`, and which an interrupt ends with 130."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        arguments = sys.argv[1:] if args is None else args
        try:
            code = super().main(args, *rest, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            errors.show(error, as_json=errors.is_json_requested(arguments))
            sys.exit(error.exit_code)
        except click.Abort:
            errors.tell("Interrupted.", reason="interrupted", as_json=errors.is_json_requested(arguments))
            sys.exit(errors.INTERRUPTED)
        sys.exit(code or 0)


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpu-portal", message="%(prog)s %(version)s", prog_name=completion.PROGRAM)
def cli() -> None:
    """Request GPU slices, see what they hold and what they cost.

    Begin with `gpu-portal login`; `gpu-portal config set project SLUG` sets a default project.

    Commands that answer take `-o json`, `yaml`, `name`, `wide` or `jsonpath=TEMPLATE`. Errors go to standard error: as
    a JSON problem with `-o json`, else as text.

    \b
    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 Ctrl-C;
    of waiting: 3 it ended first, 4 too late, 143 SIGTERM.
    """


for command in (
    access.login,
    access.whoami,
    access.config_,
    catalogue.offerings,
    allocations.request,
    allocations.list_,
    allocations.show,
    allocations.wait,
    events.events,
    allocations.extend,
    releases.release,
    allocations.retry,
    browser.open_,
    catalogue.queue,
    jobs.jobs,
    costs.costs,
    forecast.forecast,
    cluster_access.kubeconfig,
    cluster_access.credential,
    access.token,
    completion.completion,
):
    cli.add_command(command)


if __name__ == "__main__":
    cli()
