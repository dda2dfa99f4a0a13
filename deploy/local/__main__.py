"""python -m deploy.local: build, start, inspect and stop the local cluster.

build                 the seven programs, once per machine
up [--groups A,B]     start in the background; returns when everything is ready
run [--groups A,B]    start in the foreground; Ctrl-C stops all
tour                  start, play the scripted tour, and stop again what this started; exits 0 or 1
status                one line per process
kill NAME             SIGKILL; it is restarted
stop NAME             end it and keep it down; `hold` does so by SIGKILL
start NAME            start what was stopped
fleet [KIND[=N] ...]  switch on kinds of node that are off, or more nodes of a kind; alone: which kinds there are
env                   shell lines for a portal process of this home; DATABASE_OWNER_URL is for migrations alone
down                  stop everything

FLEET="KIND[=N] ..." in the environment of up, run and tour does as `fleet` from the start. HISTORY=30d writes a
simulated past of so many days, 1d to 90d.
"""

import argparse
import datetime
import os
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo.simulated_history import length
from deploy.local import checks, failed_start
from deploy.local.build import build
from deploy.local.errors import LocalError
from deploy.local.fleet import spec, state, switches
from deploy.local.fleet.api import Api
from deploy.local.home import REPOSITORY
from deploy.local.processes import GROUPS, history_command
from deploy.local.runner import Local
from deploy.local.serve import describe, is_running, supervise


def main() -> int:
    arguments = _parser().parse_args()
    try:
        arguments.run(arguments)
    except LocalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.local",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, default=REPOSITORY / ".local", help="default: .local")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, function in (
        ("build", _build),
        ("tour", _tour),
        ("status", _status),
        ("env", _env),
        ("down", _down),
    ):
        _command(commands, name, function)
    for name, function in (("up", _up), ("run", _run), ("supervise", _supervise)):
        _command(commands, name, function).add_argument("--groups", type=_groups, default=tuple(GROUPS))
    _command(commands, "fleet", _fleet).add_argument("kinds", nargs="*", metavar="KIND[=N]")
    for name in ("kill", "stop", "hold", "start"):
        command = _command(commands, name, _act)
        command.add_argument("name")
        command.set_defaults(act=name)
    return parser


def _command(commands: Any, name: str, function: Callable[[argparse.Namespace], None]) -> ArgumentParser:
    command: ArgumentParser = commands.add_parser(name)
    command.add_argument("--home", type=Path, default=argparse.SUPPRESS)
    command.set_defaults(run=function)
    return command


def _groups(text: str) -> tuple[str, ...]:
    groups = tuple(text.split(","))
    if unknown := set(groups) - set(GROUPS):
        message = f"unknown {', '.join(sorted(unknown))}; groups are {', '.join(GROUPS)}"
        raise argparse.ArgumentTypeError(message)
    return groups


def _fleet(arguments: argparse.Namespace) -> None:
    if not arguments.kinds:
        for kind in spec.load(spec.FLEET_FILE).kinds:
            _print(f"{kind.name:<14} {kind.nodes} nodes, {kind.gpus} {kind.card.product} each, {kind.path}")
        return
    extra = _parse_extra_nodes(arguments.kinds)
    local = Local(arguments.home)
    if not local.is_up():
        words = " ".join(arguments.kinds)
        raise LocalError(f'no cluster runs in {arguments.home}; start it with FLEET="{words}"')
    _set_extra_nodes(local, extra)


def _set_extra_nodes(local: Local, extra: dict[str, int]) -> None:
    state.change(Api(local.kubeconfig), lambda current: state.with_extra(current, extra))


def _extra_nodes() -> dict[str, int]:
    return _parse_extra_nodes(os.environ.get("FLEET", "").split())


def _parse_extra_nodes(arguments: list[str]) -> dict[str, int]:
    """Return the number of extra nodes of each kind; raise LocalError for an unknown kind."""
    try:
        extra = switches.extra_nodes(arguments)
        spec.load(spec.FLEET_FILE).with_extra(extra)
    except ValueError as error:
        raise LocalError(str(error)) from error
    return extra


def _history() -> str:
    """Return the length of the past to write, "" for none; raise LocalError for what is none."""
    text = os.environ.get("HISTORY", "")
    try:
        return f"{length.days(text)}d" if text else ""
    except ValueError as error:
        raise LocalError(f"HISTORY={error}") from error


def _start_within_s(days: str) -> float:
    """Return how long a start may take: longer with a past to write."""
    return failed_start.WITHIN_S + failed_start.DAY_OF_HISTORY_S * (length.days(days) if days else 0)


def _write_history(local: Local, days: str) -> None:
    """Write a past of a portal that runs already."""
    command = [sys.executable, "-m", *history_command(days)]
    if subprocess.run(command, cwd=REPOSITORY, env={**os.environ, **local.env()}, check=False).returncode:
        raise LocalError("no history was written")


def _build(_: argparse.Namespace) -> None:
    _print(str(build(_print)))


def _up(arguments: argparse.Namespace) -> None:
    extra, days = _extra_nodes(), _history()
    local = Local(arguments.home, _print)
    runs_already = local.is_up()
    local.up(arguments.groups, _start_within_s(days))
    if runs_already and extra:
        _set_extra_nodes(local, extra)
    if runs_already and days and "portal" in arguments.groups:
        _write_history(local, days)
    _print(f"ready: {describe(local.home, arguments.groups)}")


def _tour(arguments: argparse.Namespace) -> None:
    _extra_nodes()
    days = _history()
    local = Local(arguments.home, _print)
    runs_already = local.is_up()
    local.up(timeout_s=_start_within_s(days))
    try:
        played = subprocess.run([sys.executable, "-m", "deploy.local.tour", f"--home={local.root}"], check=False)
    finally:
        if not runs_already:
            local.down()
    if played.returncode:
        raise LocalError("the tour failed")


def _down(arguments: argparse.Namespace) -> None:
    Local(arguments.home, _print).down()


def _run(arguments: argparse.Namespace) -> None:
    _extra_nodes()
    days = _history()
    root = arguments.home.resolve()
    checks.require_machine(root)
    if is_running(root):
        raise LocalError(f"a cluster already runs in {arguments.home}; `down` stops it")
    checks.require_stores(arguments.groups)
    supervise(root, arguments.groups, _print, _start_within_s(days))


def _supervise(arguments: argparse.Namespace) -> None:
    if os.fork():  # in the background, as a child of init, so that the caller need not wait for it
        return
    supervise(arguments.home.resolve(), arguments.groups, _log)


def _status(arguments: argparse.Namespace) -> None:
    for row in Local(arguments.home).status():
        _print(f"{row['name']:<24} {row['phase']:<12} {row['pid'] or '-':>8}  starts {row['starts']}")


def _env(arguments: argparse.Namespace) -> None:
    local = Local(arguments.home)
    for name, value in {**local.env(), "DATABASE_OWNER_URL": local.home.owner_url()}.items():
        _print(f"export {name}={shlex.quote(value)}")


def _act(arguments: argparse.Namespace) -> None:
    getattr(Local(arguments.home), arguments.act)(arguments.name)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _log(text: str) -> None:
    _print(f"{datetime.datetime.now(datetime.UTC).isoformat(timespec='milliseconds')} {text}")


if __name__ == "__main__":
    sys.exit(main())
