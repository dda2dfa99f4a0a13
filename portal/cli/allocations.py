"""The commands request, list, show, wait, extend, release and kubeconfig."""

import json
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click

from allocations.domain.allocation_spec import LABELLED
from portal.cli.client import Client
from portal.cli.output import moment, say, table, with_client

LOOK_EVERY_S = 1.0
ENDED, LATE = 3, 4
"""Exit codes of waiting: ended before the awaited phase; timed out."""


def labelled_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option to the command for each text field that has a label."""
    for each in reversed(LABELLED):
        words = f"At most {each.info.max_length} characters."
        command = click.option(f"--{each.name.replace('_', '-')}", help=words)(command)
    return command


@click.command()
@click.argument("offering", required=False)
@click.option("--offering", "offering_option", help="The same as OFFERING.")
@click.option("--project", required=True, help="Slug of the project.")
@click.option("--count", type=int, default=1, show_default=True, help="Slices.")
@click.option("--hours", help="How long, e.g. 8 or 0.5; 8 if neither this nor --ends-at is given.")
@click.option("--ends-at", help="RFC 3339 time with offset, instead of --hours.")
@click.option("--starts-at", help="RFC 3339 time with offset; now if not given.")
@click.option("--name", help="DNS label, unique in the project.")
@click.option("--priority", type=click.Choice(["batch", "normal", "critical"]))
@labelled_options
@click.option("--no-requeue", is_flag=True, help="End on an eviction, instead of queueing again.")
@click.option("--spread", is_flag=True, help="Slices may be on several nodes.")
@click.option("--constraint", "constraints", multiple=True, help="same_gpu, same_pcie_root, ...; several times.")
@click.option("--sharing", help='How pods share the devices, as JSON: {"strategy": "TimeSlicing"}.')
@click.option("--claim", type=click.File(), help="An own claim as a JSON file, - for standard input.")
@click.option("--dry-run", is_flag=True, help="Only say what it would come to.")
@click.option("--wait", "waits", is_flag=True, help="Return when it is active; exit 3 if it ends first, 4 if too late.")
@click.option("--timeout", type=float, default=3600.0, show_default=True, help="Seconds to wait at most.")
@with_client
def request(
    client: Client,
    *,
    no_requeue: bool,
    spread: bool,
    constraints: tuple[str, ...],
    sharing: str | None,
    claim: TextIO | None,
    dry_run: bool,
    waits: bool,
    timeout: float,
    **given: Any,
) -> None:
    """Ask for slices of OFFERING, e.g. h100/whole."""
    body = {name: value for name, value in given.items() if value is not None}
    named = body.pop("offering_option", None)
    body.setdefault("offering", named)
    if not body["offering"]:
        raise click.UsageError("Name an offering; `gpu-portal offerings` lists them.")
    if no_requeue:
        body["requeue"] = False
    if wanted := dict.fromkeys([*(["spread"] if spread else []), *constraints], True):
        body["constraints"] = wanted
    if sharing:
        body["sharing"] = _json(sharing, "--sharing")
    if claim:
        body["claim"] = _json(claim.read(), "--claim")
    if dry_run:
        seen = client.post("allocations/preview", body)
        say(client, seen, lambda: _preview(seen))
        return
    row = client.post("allocations", body)
    if not waits:
        say(client, row, lambda: _one(row))
        return
    if not client.as_json:
        click.echo(f"{row['name']} ({row['id']}) is {row['phase']}", err=True)
    _finish(client, row["id"], "active", timeout)


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"That is no JSON: {error}.", param_hint=option) from error


@click.command("list")
@click.option("--project", help="Slugs, with commas.")
@click.option("--team", help="Slugs, with commas.")
@click.option("--phase", help="Phases, with commas.")
@click.option("--offering", help="Offerings, with commas.")
@click.option("--mine", is_flag=True, help="Only what I asked for.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@with_client
def list_(client: Client, *, mine: bool, limit: int, **filters: str | None) -> None:
    """List allocations, newest first, ended ones too."""
    rows = client.pages("allocations", limit, mine="true" if mine else None, **filters)
    head = ("NAME", "PROJECT", "OFFERING", "COUNT", "PHASE", "ENDS", "COST", "ID")
    columns = ("name", "project", "offering", "count")
    say(
        client,
        {"results": rows},
        lambda: table(
            head,
            [
                (
                    *(row[column] for column in columns),
                    row["outcome"] or row["phase"],
                    moment(row["ended_at"] or row["ends_at"]),
                    f"{row['cost']['to_date']} {row['cost']['currency']}",
                    row["id"],
                )
                for row in rows
            ],
            "No allocations.",
        ),
    )


@click.command()
@click.argument("allocation")
@with_client
def show(client: Client, allocation: str) -> None:
    """Show one ALLOCATION (id or name) and what happened to it."""
    id_ = find(client, allocation)
    row = client.get(f"allocations/{id_}")
    events = client.pages(f"allocations/{id_}/events", 200)
    say(client, {**row, "events": events}, lambda: f"{_one(row)}\n\n{_timeline(events)}")


@click.command()
@click.argument("allocation")
@click.option("--for", "phase", type=click.Choice(["active", "ended"]), default="active", show_default=True)
@click.option("--timeout", type=float, default=3600.0, show_default=True, help="Seconds.")
@with_client
def wait(client: Client, allocation: str, *, phase: str, timeout: float) -> None:
    """Return when ALLOCATION is active (or ended); exit 3 if it ends first, 4 if too late."""
    _finish(client, find(client, allocation), phase, timeout)


@click.command()
@click.argument("allocation")
@click.option("--hours", required=True, help="How much later it ends.")
@with_client
def extend(client: Client, allocation: str, *, hours: str) -> None:
    """Let ALLOCATION end later."""
    row = client.post(f"allocations/{find(client, allocation)}/extend", {"hours": hours})
    say(client, row, lambda: f"{row['name']} ends at {moment(row['ends_at'])}")


@click.command()
@click.argument("allocation")
@click.option("--reason", default="")
@click.option("--wait", "waits", is_flag=True, help="Return when nothing of it is left.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds to wait at most.")
@with_client
def release(client: Client, allocation: str, *, reason: str, waits: bool, timeout: float) -> None:
    """Give the slices of ALLOCATION back."""
    row = client.post(f"allocations/{find(client, allocation)}/release", {"reason": reason})
    if waits:
        _finish(client, row["id"], "ended", timeout)
    else:
        say(client, row, lambda: f"{row['name']} is {row['phase']}")


@click.command()
@click.argument("allocation")
@click.option("--file", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write it there, for you alone.")
@with_client
def kubeconfig(client: Client, allocation: str, *, path: Path | None) -> None:
    """Print a kubeconfig of your own for the project of ALLOCATION, valid for an hour at most."""
    given = client.get(f"allocations/{find(client, allocation)}/connect")
    if path is None:
        say(client, given, lambda: given["kubeconfig"].rstrip())
        return
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(given["kubeconfig"], encoding="utf-8")
    label = f"{given['label']['key']}: {given['label']['value']}"
    say(
        client,
        {"file": str(path), "expires_at": given["expires_at"], "label": given["label"]},
        lambda: f"{path} is valid until {moment(given['expires_at'])}; label your pods {label}",
    )


def find(client: Client, allocation: str) -> str:
    """Return the id of an allocation given by id or by name."""
    try:
        return str(uuid.UUID(allocation))
    except ValueError:
        pass
    rows = client.get("allocations", name=allocation)["results"]
    if len(rows) == 1:
        return str(rows[0]["id"])
    where = ", ".join(f"{row['id']} in {row['project']}" for row in rows)
    raise click.ClickException(
        f"Several are named {allocation}: {where}. Give the id." if rows else f"There is no allocation {allocation}."
    )


def _finish(client: Client, id_: str, phase: str, timeout: float) -> None:
    """Wait, print the row, and exit: 0 if it reached `phase`."""
    deadline = time.monotonic() + timeout
    row = client.get(f"allocations/{id_}")
    while row["phase"] not in (phase, "ended") and time.monotonic() < deadline:
        time.sleep(min(LOOK_EVERY_S, max(0.0, deadline - time.monotonic())))
        row = client.get(f"allocations/{id_}")
    say(client, row, lambda: _one(row))
    if row["phase"] != phase:
        sys.exit(ENDED if row["phase"] == "ended" else LATE)


def _one(row: dict[str, Any]) -> str:
    cost, place = row["cost"], row["queue"]
    phase = f"{row['phase']} ({row['outcome']})" if row["outcome"] else row["phase"]
    lines = [
        ("name", row["name"]),
        ("id", row["id"]),
        ("phase", f"{phase}, {place['position']} of {place['of']}" if place else phase),
        ("why", row["message"] or row["reason"] or "-"),
        ("slices", f"{row['count']} × {row['offering']}"),
        ("project", f"{row['project']} (namespace {row['namespace']})"),
        ("asked", f"{moment(row['created_at'])} by {row['requested_by']}"),
        ("held", moment(row["held_at"])),
        ("ends", moment(row["ended_at"] or row["ends_at"])),
        ("cost", f"{cost['to_date']} {cost['currency']} so far, {cost['per_hour'] or 'no price'} an hour"),
        *(("device", f"{found['node']}/{found['device']} {found['uuid']}") for found in row["devices"]),
    ]
    return "\n".join(f"{name:<9}{value}" for name, value in lines)


def _timeline(events: list[dict[str, Any]]) -> str:
    rows = [(moment(event["at"]), event["to_phase"] or "-", event["actor"], event["message"]) for event in events]
    return table(("AT", "PHASE", "BY", "WHAT"), rows)


def _preview(seen: dict[str, Any]) -> str:
    price = seen["price"]
    lines = [
        {"now": "Fits now.", "queue": "Fits, and would queue first.", "never": "Does not fit."}[seen["fits"]],
        *(f"{reason['detail']} {reason['hint']}" for reason in seen["reasons"]),
        *(f"Think twice: {warning['detail']} {warning['hint']}" for warning in seen["warnings"]),
        f"{price['per_hour'] or 'no price'} {price['currency']} an hour, {price['total'] or '-'} in all, "
        f"until {moment(seen['ends_at'])}",
        *(f"Works ({a['fits']}): {a['count']} × {a['offering']}, {a['price'] or '-'}" for a in seen["alternatives"]),
    ]
    return "\n".join(lines)
