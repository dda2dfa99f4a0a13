"""The commands request, list, show, wait, extend, release and retry."""

import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from operator import itemgetter
from typing import Any

import click

from allocations.domain.admission import PRIORITIES
from allocations.domain.allocation_spec import CONSTRAINTS, LABELLED, MAX_SLICES, Labels
from portal.cli import amounts, times, waiting
from portal.cli.client import Client
from portal.cli.hints import in_commands
from portal.cli.lookup import (
    ALLOCATION,
    allocation_argument,
    complete_offering,
    complete_project,
    find,
    projects_exist,
    without_kind,
)
from portal.cli.option_types import (
    ALLOCATION_NAME,
    JSON,
    PHASE_NAMES,
    JsonFile,
    TextUpTo,
    idempotency_key_option,
)
from portal.cli.output import Columns, say, say_rows, table, with_client
from portal.cli.output_format import NAME
from portal.cli.times import moment

UNSEEN = (
    "It may have been requested: `gpu-portal list --mine` shows it, "
    "and the same command with --idempotency-key {key} requests it only once."
)
NEVER_FITS = 1
"""Exit code of a dry run of what does not fit, as of the request itself."""
COLUMNS: Columns = {
    "NAME": itemgetter("name"),
    "PROJECT": itemgetter("project"),
    "OFFERING": itemgetter("offering"),
    "COUNT": itemgetter("slices"),
    "PHASE": lambda row: row["outcome"] or row["phase"],
    "ENDS": times.end,
    "COST": amounts.cost_to_date,
    "ID": itemgetter("id"),
}
WIDE: Columns = {
    "NAMESPACE": itemgetter("namespace"),
    "PRIORITY": itemgetter("priority"),
    "BY": itemgetter("requested_by"),
    "REQUESTED": lambda row: moment(row["created_at"]),
    "HELD": lambda row: moment(row["held_at"]),
    "NODES": lambda row: ",".join(sorted({found["node"] for found in row["devices"]})) or "-",
    "LABELS": lambda row: str(Labels.from_json(row["labels"])) or "-",
    "PURPOSE": lambda row: row["purpose"] or "-",
}


def labelled_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option to the command for each text field that has a label."""
    for each in reversed(LABELLED):
        most = each.info.max_length
        words, type_ = f"At most {most} characters.", TextUpTo(most)
        command = click.option(f"--{each.name.replace('_', '-')}", type=type_, help=words)(command)
    return command


@click.command()
@click.argument("offering", required=False, shell_complete=complete_offering)
@click.option("--offering", "offering_option", help="The same as OFFERING.", shell_complete=complete_offering)
@click.option("--project", help="Slug of the project; else the default one.", shell_complete=complete_project)
@click.option("--count", type=click.IntRange(1, MAX_SLICES), default=1, show_default=True, help="Slices.")
@click.option(
    "--hours",
    type=times.HOURS,
    help="Duration from the start, e.g. 8 or 0.5. 8 if --ends-at is not given either.",
)
@click.option("--ends-at", type=times.MOMENT, help="RFC 3339 time with offset, instead of --hours: a date that stays.")
@click.option(
    "--give-up-after", type=times.LENGTH, help="End if not held by then, e.g. 12h or 2d after the request or start; 7d."
)
@click.option("--starts-at", type=times.MOMENT, help="RFC 3339 time with offset; now if not given.")
@click.option("--name", type=ALLOCATION_NAME, help="DNS label, unique in the project.")
@click.option("--priority", type=click.Choice(tuple(PRIORITIES)))
@labelled_options
@click.option("--label", "labels", multiple=True, help="KEY=VALUE, by which costs are grouped; several times.")
@click.option("--no-requeue", is_flag=True, help="End on an eviction, instead of queueing again.")
@click.option("--spread", is_flag=True, help="Slices may be on several nodes.")
@click.option("--constraint", "constraints", multiple=True, type=click.Choice(CONSTRAINTS), help="Several times.")
@click.option("--sharing", type=JSON, help='How pods share the devices, as JSON: {"strategy": "TimeSlicing"}.')
@click.option("--claim", type=JsonFile(), help="A custom claim as a JSON file, - for standard input.")
@click.option("--dry-run", is_flag=True, help="Only show whether it fits, and its price; exit 1 if it does not fit.")
@click.option("--wait", "waits", is_flag=True, help="Return when it is active; exit 3 if it ends first, 4 if too late.")
@click.option("--timeout", type=times.TIMEOUT, default=3600.0, show_default=True, help="Seconds to wait at most.")
@waiting.release_on_interrupt_option
@idempotency_key_option
@with_client(ALLOCATION)
def request(
    client: Client,
    *,
    no_requeue: bool,
    spread: bool,
    constraints: tuple[str, ...],
    labels: tuple[str, ...],
    sharing: Any,
    claim: Any,
    dry_run: bool,
    waits: bool,
    timeout: float,
    give_up_after: timedelta | None,
    release_on_interrupt: bool,
    idempotency_key: str | None,
    **given: Any,
) -> None:
    """Request slices of OFFERING, e.g. h100/whole.

    Ctrl-C while waiting exits with 130 at once, and says what stays requested and how to release it.
    """
    body = {name: value for name, value in given.items() if value is not None}
    named = {without_kind(body.pop(name), "offering") for name in ("offering", "offering_option") if body.get(name)}
    if len(named) != 1:
        raise click.UsageError(
            "Name one offering, not two." if named else "Name an offering; `gpu-portal offerings` lists them."
        )
    [body["offering"]] = named
    if "hours" in body and "ends_at" in body:
        raise click.UsageError("Give --hours or --ends-at, not both.")
    if dry_run and client.output.format == NAME:
        raise click.UsageError("A dry run has no name to print.")
    if give_up_after is not None:
        body["give_up_after"] = times.in_hours(give_up_after)
    body["project"] = body.get("project") or client.config.project
    if not body["project"]:
        raise click.UsageError("Name a --project, or set a default: `gpu-portal config set project SLUG`.")
    if no_requeue:
        body["requeue"] = False
    if wanted := dict.fromkeys([*(["spread"] if spread else []), *constraints], True):
        body["constraints"] = wanted
    if labels:
        body["labels"] = _labels(labels)
    body |= {name: value for name, value in (("sharing", sharing), ("claim", claim)) if value is not None}
    if dry_run:
        seen = client.post("allocations/preview", body)
        say(client, seen, lambda: _preview(seen))
        sys.exit(NEVER_FITS if seen["fits"] == "never" else 0)
    key = idempotency_key or str(uuid.uuid4())
    awaited = waiting.Awaited(
        find=lambda quick: quick.post("allocations", body, key),
        unseen=UNSEEN.format(key=key),
        releases=release_on_interrupt,
    )
    with waiting.interruptible(client, awaited):
        row = awaited.row = client.post_once("allocations", body, key)
        if idempotency_key:  # a repeated answer tells the phase of then
            row = awaited.row = client.get(f"allocations/{row['id']}")
        if not waits:
            say(client, row, lambda: details(row))
            return
        waiting.finish(client, awaited, "active", timeout, details)


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    try:
        return Labels.from_text(",".join(given)).to_json()
    except ValueError as error:
        raise click.BadParameter(f"{error}.".capitalize(), param_hint="--label") from error


@click.command("list")
@click.option("--project", help="Slugs, with commas.", shell_complete=complete_project)
@click.option("--team", help="Slugs, with commas.")
@click.option("--phase", type=PHASE_NAMES, help="Phases, with commas.")
@click.option("--offering", help="Offerings, with commas.")
@click.option("--label", help="KEY=VALUE, with commas: those with all of them.")
@click.option("--mine", is_flag=True, help="Only those that you requested.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@with_client(ALLOCATION)
def list_(client: Client, *, mine: bool, limit: int, **filters: str | None) -> None:
    """List allocations, newest first, ended ones too."""
    projects_exist(client, filters["project"])
    rows = client.pages("allocations", limit, mine="true" if mine else None, **filters)
    say_rows(client, rows, COLUMNS, wide=WIDE, empty="No allocations.")


@click.command()
@allocation_argument
@with_client(ALLOCATION)
def show(client: Client, allocation: str) -> None:
    """Show one ALLOCATION (id or name) and what happened to it."""
    id_ = find(client, allocation)
    row = client.get(f"allocations/{id_}")
    events = client.pages(f"allocations/{id_}/events", 200)
    say(client, {**row, "events": events}, lambda: f"{details(row)}\n\n{timeline(events)}")


@click.command()
@allocation_argument
@click.option("--for", "phase", type=click.Choice(["active", "ended"]), default="active", show_default=True)
@click.option("--timeout", type=times.TIMEOUT, default=3600.0, show_default=True, help="Seconds.")
@waiting.release_on_interrupt_option
@with_client(ALLOCATION)
def wait(client: Client, allocation: str, *, phase: str, timeout: float, release_on_interrupt: bool) -> None:
    """Return when ALLOCATION is active (or ended); exit 3 if it ends first, 4 if too late, 130 on Ctrl-C."""
    awaited = waiting.Awaited(
        find=lambda quick: quick.get(f"allocations/{find(quick, allocation)}"),
        unseen=f"`gpu-portal release {allocation}` releases it.",
        releases=release_on_interrupt,
    )
    with waiting.interruptible(client, awaited):
        waiting.finish(client, awaited, phase, timeout, details)


@click.command()
@allocation_argument
@click.option(
    "--hours", type=times.HOURS, required=True, help="How many hours more it is held, or how much later its date is."
)
@idempotency_key_option
@with_client(ALLOCATION)
def extend(client: Client, allocation: str, *, hours: str, idempotency_key: str | None) -> None:
    """Let ALLOCATION be held for longer, or end later."""
    key = idempotency_key or str(uuid.uuid4())
    row = client.post_once(f"allocations/{find(client, allocation)}/extend", {"hours": hours}, key)
    say(client, row, lambda: f"{row['name']}: {times.requested(row)}; ends {times.end(row)}")


@click.command()
@allocation_argument
@with_client(ALLOCATION)
def retry(client: Client, allocation: str) -> None:
    """Queue ALLOCATION again that needs attention, since its start failed three times."""
    row = client.post(f"allocations/{find(client, allocation)}/retry", {})
    say(client, row, lambda: f"{row['name']} is {row['phase']}")


def details(row: dict[str, Any]) -> str:
    price, place, has_ended = row["cost"]["per_hour"], row["queue"], row["phase"] == "ended"
    per_hour = "" if has_ended else f", {price} an hour" if price else f", {amounts.NOT_PRICED} now"
    left = f", {times.hours(row['hours_left'])} h left" if row["hours_left"] and not has_ended else ""
    phase = f"{row['phase']} ({row['outcome']})" if row["outcome"] else row["phase"]
    lines = [
        ("name", row["name"]),
        ("id", row["id"]),
        ("phase", f"{phase}, {place['position']} of {place['of']}" if place else phase),
        ("why", row["message"] or row["reason"] or "-"),
        ("slices", f"{row['slices']} × {row['offering']}"),
        ("project", f"{row['project']} (namespace {row['namespace']})"),
        *([("labels", str(Labels.from_json(row["labels"])))] if row["labels"] else []),
        ("requested", f"{moment(row['created_at'])} by {row['requested_by']}"),
        *([("starts", moment(row["starts_at"]))] if row["phase"] == "scheduled" else []),
        ("held", moment(row["held_at"])),
        ("time", f"{times.requested(row)}{left}"),
        ("ends", times.end(row)),
        *([("gives up", f"{moment(row['give_up_at'])} if not held")] if times.waits(row) else []),
        ("cost", f"{amounts.cost_to_date(row, '' if has_ended else ' so far')}{per_hour}"),
        *(("device", f"{found['node']}/{found['device']} {found['uuid']}") for found in row["devices"]),
    ]
    return "\n".join(f"{name:<11}{value}" for name, value in lines)


def timeline(events: list[dict[str, Any]]) -> str:
    rows = [(moment(event["at"]), event["to_phase"] or "-", event["actor"], event["message"]) for event in events]
    return table(("AT", "PHASE", "BY", "WHAT"), rows)


def _preview(seen: dict[str, Any]) -> str:
    lines = [
        {"now": "Fits now.", "queue": "Fits, and would queue first.", "never": "Does not fit."}[seen["fits"]],
        *([f"Expected start: {moment(seen['expected_start'])}"] if seen["expected_start"] else []),
        *(in_commands(f"{reason['detail']} {reason['hint']}") for reason in seen["reasons"]),
        *(in_commands(f"Warning: {warning['detail']} {warning['hint']}") for warning in seen["warnings"]),
        f"{_price(seen['price'])}, {times.requested(seen)}; "
        f"it ends {moment(seen['give_up_at'])} if it is not held by then",
        *(
            f"Works ({a['fits']}): {a['count']} × {a['offering']}, {a['price'] or amounts.NOT_PRICED}"
            for a in seen["alternatives"]
        ),
    ]
    return "\n".join(lines)


def _price(price: dict[str, Any]) -> str:
    if price["per_hour"] is None:
        return amounts.NOT_PRICED.capitalize()
    return f"{price['per_hour']} {price['currency']} an hour, {price['total']} in all"
