"""The commands login and token."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from portal.cli import config
from portal.cli.client import Client
from portal.cli.config import Config
from portal.cli.output import moment, say, table, with_client


@click.command()
@click.option("--url", prompt="URL of the portal", envvar="GPU_PORTAL_URL", help="As one opens it in a browser.")
@click.option(
    "--token", prompt="Token", hide_input=True, envvar="GPU_PORTAL_TOKEN", help="Better not on a command line."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print.")
def login(url: str, token: str, output: str) -> None:
    """Check a token and keep it for the other commands, readable by you alone."""
    wanted = Config(url.rstrip("/"), token.strip())
    me = Client(wanted, as_json=output == "json").get("me")
    file = config.save(wanted)
    answer = {"username": me["username"], "url": wanted.url, "file": str(file), "scopes": me["scopes"]}
    text = f"Signed in at {wanted.url} as {me['username']} ({', '.join(me['scopes'])}); kept in {file}"
    click.echo(json.dumps(answer, indent=2) if output == "json" else text)


@click.group()
def token() -> None:
    """List, make and revoke your tokens."""


@token.command("list")
@with_client
def list_(client: Client) -> None:
    """List your tokens."""
    rows = client.pages("tokens", 1000)
    say(
        client,
        {"results": rows},
        lambda: table(("ID", "NAME", "SCOPES", "EXPIRES", "LAST USED", "STATE"), [_cells(row) for row in rows]),
    )


@token.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(["read", "request", "approve", "admin"]))
@click.option(
    "--days",
    type=click.IntRange(1, 365),
    help="At most as long as the token you use; 90 or that if not given.",
)
@with_client
def create(client: Client, name: str, *, scopes: tuple[str, ...], days: int | None) -> None:
    """Make a token NAME; scopes read and request unless --scope says otherwise. It is shown once."""
    body: dict[str, Any] = {"name": name, "scopes": list(scopes) or ["read", "request"]}
    if days is not None:
        expires_at = datetime.now(UTC) + timedelta(days=days)  # of this machine: the portal is another one
        body["expires_at"] = expires_at.isoformat()
    made = client.post("tokens", body)
    say(client, made, lambda: str(made["token"]))


@token.command()
@click.argument("id", type=int)
@with_client
def revoke(client: Client, id: int) -> None:
    """Revoke the token ID, as `token list` shows it."""
    client.delete(f"tokens/{id}")
    say(client, {"revoked": id}, lambda: f"Token {id} is revoked.")


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    state = "revoked" if row["revoked_at"] else "valid"
    return (
        row["id"],
        row["name"],
        ",".join(row["scopes"]),
        moment(row["expires_at"]),
        moment(row["last_used_at"]),
        state,
    )
