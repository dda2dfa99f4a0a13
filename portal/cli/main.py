"""The gpu-portal command: request GPUs, list them with their cost, and release them."""

import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

try:  # these imports take most of the time of a short command, so that Ctrl-C often comes meanwhile
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
except KeyboardInterrupt:
    raise SystemExit(130) from None


class Cli(click.Group):
    """A group whose errors follow `--output json`, and which an interrupt ends with 130."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        arguments = sys.argv[1:] if args is None else args
        _accept_every_character()
        try:
            code = _run(lambda: super(Cli, self).main(args, *rest, **{**extra, "standalone_mode": False}))
        except click.ClickException as error:
            errors.show(error, as_json=errors.is_json_requested(arguments))
            sys.exit(error.exit_code)
        except click.Abort:
            errors.tell("Interrupted.", reason="interrupted", as_json=errors.is_json_requested(arguments))
            sys.exit(errors.INTERRUPTED)
        sys.exit(code)


def _accept_every_character() -> None:
    """Print another sign for a character that the encoding of standard output or error does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(command: Callable[[], Any]) -> int:
    """Run a command up to the last byte of its output; return its exit code. Raises CommandError where a file or the
    output cannot be written.
    """
    try:
        try:
            return int(command() or 0)
        finally:
            if sys.stdout is not None:  # as of `gpu-portal list >&-`
                sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if error.errno == errno.EPIPE:  # as of `gpu-portal list | head -1`
            return 1
        where = error.filename or "The output cannot be written"
        raise errors.CommandError(f"{where}: {error.strerror or error}.", reason="not_written") from error


def _drop_output() -> None:
    """Have what is left of the output go nowhere: Python would try to write it again when it ends."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpu-portal", message="%(prog)s %(version)s", prog_name=completion.PROGRAM)
def cli() -> None:
    """Request GPU slices, see what they hold and what they cost.

    Begin with `gpu-portal login`; `gpu-portal config set project SLUG` sets a default project.

    Commands that answer take `-o json`, `yaml`, `name`, `wide` or `jsonpath=TEMPLATE`. Errors go to standard error: as
    a JSON problem with `-o json`, else as text.

    \b
    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 5 no answer, 130 Ctrl-C;
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
