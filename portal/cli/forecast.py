"""The command forecast: what a period will have cost."""

from decimal import Decimal
from typing import Any

import click

from portal.cli import amounts
from portal.cli.client import Client
from portal.cli.output import say, table, with_client
from portal.cli.times import moment


@click.command()
@click.option("--window", type=click.Choice(["month", "week"]), help="The present one; else month.")
@click.option("--from", "start", help="Instead of a window: when the period began, a date or a time.")
@click.option("--until", help="With --from: when it ends.")
@click.option("--timezone", help="Of days and weekdays, such as Europe/Berlin; else UTC.")
@click.option("--filter", "only", help='As of costs: team:"vision"+(kind:"whole"|label[stage]:"prod").')
@click.option("--department", help="Only what it uses; and so with the next three.")
@click.option("--team")
@click.option("--project")
@click.option("--member")
@with_client()
def forecast(client: Client, *, start: str | None, only: str | None, **query: str | None) -> None:
    """Forecast what a period will have cost."""
    if start and query["window"]:
        raise click.UsageError("Give --window or --from, not both.")
    if query["until"] and not start:
        raise click.UsageError("--until goes with --from.")
    found = client.get("costs/forecast", **query, **{"from": start, "filter": only})
    say(client, found, lambda: _text(found))


def _range(found: dict[str, Any]) -> str:
    """Return the range; a total at one end of it has only errors to the other side behind it."""
    low, total, high = (Decimal(found[name]) for name in ("low", "total", "high"))
    if low == high:
        return f"80 % range: within 0.01 {found['currency']}."
    if low == total < high:
        return f"Probably more: up to {amounts.money(found['high'], found['currency'])}."
    if low < total == high:
        return f"Probably less: down to {amounts.money(found['low'], found['currency'])}."
    return f"80 % range: {found['low']} to {amounts.money(found['high'], found['currency'])}."


def _text(found: dict[str, Any]) -> str:
    """Return the amounts, how they add up, and the range."""
    posted = amounts.cost(found["posted"], found["currency"], found["unpriced_gpu_hours"])
    rows = [("posted", posted), ("committed", amounts.money(found["committed"], found["currency"]))]
    if found["shared_cost"] is None or Decimal(found["shared_cost"]):
        rows.append(("fixed costs", amounts.money(found["shared_cost"], found["currency"])))
    if found["total"] is not None:
        rows += [(name, amounts.money(found[name], found["currency"])) for name in ("expected", "total")]
    lines = [f"From {moment(found['window']['start'])} to {moment(found['window']['end'])}:"]
    lines.append(table(["", "COST"], rows))
    if found["total"] is None:
        lines.append(f"The rest is {found['reason']}.")
    else:
        lines.append(_range(found))
    return "\n".join(lines)
