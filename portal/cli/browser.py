"""The command open: a page of the portal in the browser."""

import click

from portal.cli.client import Client
from portal.cli.lookup import complete_allocation, find
from portal.cli.output import say, with_client


@click.command("open")
@click.argument("allocation", required=False, shell_complete=complete_allocation)
@click.option("-n", "--no-browser", is_flag=True, help="Only print the address.")
@with_client()
def open_(client: Client, allocation: str | None, *, no_browser: bool) -> None:
    """Open the page of ALLOCATION in the browser, or the portal's first page."""
    path = f"allocations/{find(client, allocation)}" if allocation else ""
    url = f"{client.config.url}/{path}"
    if not no_browser:
        click.launch(url)
    say(client, {"url": url}, lambda: url)
