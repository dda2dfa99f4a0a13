"""The command events: what happened to an allocation, and what happens now."""

import time
from collections.abc import Iterator
from typing import Any

import click

from portal.cli import printable, waiting
from portal.cli.allocations import timeline
from portal.cli.client import Client
from portal.cli.lookup import allocation_argument, find
from portal.cli.output import say, with_client
from portal.cli.times import moment

MAX_EVENTS = 1000


@click.command()
@allocation_argument
@click.option("-w", "--watch", is_flag=True, help="Go on with new ones, one a line, until it has ended.")
@with_client()
def events(client: Client, allocation: str, *, watch: bool) -> None:
    """Show what happened to ALLOCATION, oldest first."""
    id_ = find(client, allocation)
    if watch:
        for event in _watched(client, id_):
            _print(client, event)
        return
    rows = client.pages(f"allocations/{id_}/events", MAX_EVENTS)
    say(client, {"results": rows}, lambda: timeline(rows))


def _watched(client: Client, id_: str) -> Iterator[dict[str, Any]]:
    """Yield the events, and new ones as they come, up to the end of the allocation."""
    seen, pause = 0, waiting.LOOK_EVERY_S
    while True:
        has_ended = client.get(f"allocations/{id_}")["phase"] == "ended"
        for event in client.pages(f"allocations/{id_}/events", MAX_EVENTS):
            if event["id"] > seen:
                seen, pause = event["id"], waiting.LOOK_EVERY_S
                yield event
        if has_ended:
            return
        time.sleep(pause)
        pause = waiting.longer(pause)


def _print(client: Client, event: dict[str, Any]) -> None:
    """Print one event: a line for people, in JSON and by a template, a document in YAML."""
    if client.output.format == "json":
        click.echo(printable.as_json(event, indent=None))
        return
    if client.output.format == "jsonpath":
        click.echo(client.output.template.render(event).removesuffix("\n"))
        return
    if client.output.format == "yaml":
        click.echo("---")
    line = f"{moment(event['at'])}  {event['to_phase'] or '-':<10} {event['actor']}: {event['message']}"
    say(client, event, lambda: line)
