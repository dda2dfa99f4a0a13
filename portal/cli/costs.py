"""The command costs: what was used and what it cost, as a table with bars."""

import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import click

from portal.cli import amounts
from portal.cli.client import Client
from portal.cli.option_types import Names
from portal.cli.output import say, table, with_client
from portal.cli.output_format import CSV
from portal.cli.times import moment

BAR, BAR_WIDTH = "█", 20
IDLE = ("separate", "hide", "share", "owner")
STEPS = ("all", "hour", "day", "week", "month")
KEYS = (
    *("department", "team", "project", "member", "namespace", "flavor", "offering", "kind", "allocation", "cluster"),
    *("node", "all"),
)
METRICS = ("cumulative", "hourly", "daily", "monthly")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
RATES = {"hourly": " an hour", "daily": " a day", "monthly": " a month"}


@click.command()
@click.option("--window", default="7d", show_default=True, help="today, 7d, week, lastweek, month, t0,t1, ...")
@click.option("--timezone", help="Of days, weeks and months, such as Europe/Berlin; else UTC.")
@click.option("--week-start", type=click.Choice(WEEKDAYS), help="On which day weeks begin; else monday.")
@click.option(
    "--aggregate",
    type=Names(*KEYS, prefix="label:"),
    default="project",
    show_default=True,
    help="Keys and label:KEY, with commas; or all.",
)
@click.option("--accumulate", type=click.Choice(STEPS), help="all: one row for the window. Else a row for each.")
@click.option("--daily", is_flag=True, help="The same as --accumulate day.")
@click.option("--filter", "only", help='As OpenCost: team:"vision"+(kind:"whole"|label[stage]:"prod").')
@click.option("--idle", type=click.Choice(IDLE), help="In whose rows idle cost is; hide: in none.")
@click.option("--idle-by", type=click.Choice(["cluster", "flavor", "node"]), help="With --idle share: between whom.")
@click.option("--idle-split", type=click.Choice(["weighted", "even"]), help="With --idle share.")
@click.option("--cost", type=click.Choice(METRICS), help="Money of the window, or at its pace by hour, day or month.")
@click.option("--compare", type=click.Choice(["previous"]), help="Beside the window before.")
@with_client(None, CSV)
def costs(
    client: Client,
    *,
    aggregate: str,
    accumulate: str | None,
    daily: bool,
    only: str | None,
    cost: str | None,
    **query: str | None,
) -> None:
    """Show what was used and what it cost."""
    if daily and accumulate not in (None, "day"):
        raise click.UsageError(f"Give --daily or --accumulate {accumulate}, not both.")
    if query["idle"] != "share" and (query["idle_by"] or query["idle_split"]):
        raise click.UsageError("--idle-by and --idle-split go with --idle share.")
    step = accumulate or ("day" if daily else None)
    query |= {"aggregate": aggregate, "accumulate": step, "filter": only, "cost": cost}
    if client.output.format == CSV:
        click.echo(client.text("costs/export", **query), nl=False)
        return
    found = client.whole("costs", **query)
    say(
        client,
        found,
        lambda: _text(found, aggregate.upper(), RATES.get(cost or "", ""), has_steps=step not in (None, "all")),
    )


def _text(found: dict[str, Any], key: str, rate: str, *, has_steps: bool) -> str:
    """Return the table with its sums."""
    rows, is_compared = found["results"], found["previous_window"] is not None
    has_idle = any(row["idle_cost"] != "0" for row in rows)
    most = max((Decimal(row["total"] or 0) for row in rows), default=Decimal(0))
    head = [*(["FROM"] if has_steps else []), key, "GPU-HOURS", f"COST{rate.upper()}"]
    head += ["IDLE"] if has_idle else []
    head += ["BEFORE", "CHANGE"] if is_compared else []
    lines: list[Sequence[object]] = [
        [
            *([moment(row["window"]["start"])] if has_steps else []),
            row["name"],
            row["gpu_hours"],
            amounts.cost(row["total"], row["currency"], row["unpriced_gpu_hours"], is_priced=row["cost"] is not None),
            *([_idle(row)] if has_idle else []),
            *(_before(row) if is_compared else []),
            _bar(row["total"], most),
        ]
        for row in rows
    ]
    return "\n".join([table([*head, ""], lines, "Nothing was used."), *(_sums(found, rate) if rows else [])])


def _idle(row: dict[str, Any]) -> str:
    return amounts.money(row["idle_cost"], row["currency"], is_priced=not Decimal(row["unpriced_idle_gpu_hours"] or 0))


def _before(row: dict[str, Any]) -> list[str]:
    change = row["change"]
    sign = "+" if change is not None and Decimal(change) > 0 else ""
    was = amounts.money(row["previous"]["total"], row["currency"], is_priced=_was_priced(row))
    return [was, "-" if change is None else f"{sign}{change}"]


def _was_priced(row: dict[str, Any]) -> bool:
    return not Decimal(row["previous"]["unpriced_gpu_hours"])


def _sums(found: dict[str, Any], rate: str) -> list[str]:
    """Return the sums below the table, and what costs leave out."""
    before = found["previous_window"]
    rows = found["results"]
    cost = amounts.money(found["total"], found["currency"], is_priced=any(row["cost"] is not None for row in rows))
    total = f"Total: {cost}{rate}, {found['gpu_hours']} GPU-hours"
    lines = [f"{total}, from {moment(found['window']['start'])} to {moment(found['window']['end'])}."]
    if before:
        was = amounts.money(found["previous_total"], found["currency"], is_priced=any(map(_was_priced, rows)))
        lines.append(f"Before: {was}{rate}, from {moment(before['start'])} to {moment(before['end'])}.")
    unpriced = found["unpriced_gpu_hours"]
    return [*lines, *([f"Costs are {amounts.left_out(unpriced)}."] if Decimal(unpriced) else [])]


def _bar(amount: str | None, most: Decimal) -> str:
    return _mark() * round(BAR_WIDTH * Decimal(amount or 0) / most) if most else ""


def _mark() -> str:
    """Return what bars are made of: where output cannot have a block, as on some terminals of Windows, another sign."""
    try:
        BAR.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "#"
    return BAR
