"""The commands login, whoami, config and token."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import click

from portal.cli import config
from portal.cli.client import Client
from portal.cli.config import Config
from portal.cli.errors import CommandError
from portal.cli.lookup import complete_project, complete_token, without_kind
from portal.cli.output import Columns, refuse_unusable_text, request_timeout_option, say, say_rows, with_client
from portal.cli.output_format import Output, output_option
from portal.cli.times import moment

USER = ("user", "username")
TOKEN = ("token", "id")
TOKENS: Columns = {
    "ID": itemgetter("id"),
    "NAME": itemgetter("name"),
    "SCOPES": lambda row: ",".join(row["scopes"]),
    "EXPIRES": lambda row: moment(row["expires_at"]),
    "LAST USED": lambda row: moment(row["last_used_at"]),
    "STATE": itemgetter("state"),
}
WIDE_TOKENS: Columns = {"CREATED": lambda row: moment(row["created_at"]), "PREFIX": itemgetter("prefix")}


@click.command()
@click.option(
    "--url", prompt="URL of the portal", envvar="GPU_PORTAL_URL", help="The address that you open in a browser."
)
@click.option(
    "--token",
    prompt="Token",
    hide_input=True,
    envvar="GPU_PORTAL_TOKEN",
    help="Better left out: others may see a command line.",
)
@click.option("--project", help="The default project of the other commands; if not given, it stays the same.")
@request_timeout_option
@output_option(USER)
def login(url: str, token: str, project: str | None, output: Output, request_timeout: float | None) -> None:
    """Check a token and store it for the other commands, readable only by you."""
    refuse_unusable_text(click.get_current_context())
    kept = config.usable()
    wanted = Config(config.base(url), token.strip())
    if wanted.url == kept.url:
        wanted = replace(wanted, project=kept.project)
    client = Client(wanted, output=output, patience_s=request_timeout)
    me = client.get("me")
    if project:
        wanted = replace(wanted, project=_visible(project, me))
    file = config.save(wanted)
    answer = {"username": me["username"], "url": wanted.url, "file": str(file), "scopes": me["scopes"]}
    text = f"Signed in at {wanted.url} as {me['username']} ({', '.join(me['scopes'])}); stored in {file}"
    say(client, answer, lambda: text)


@click.command()
@with_client(USER)
def whoami(client: Client) -> None:
    """Show who you are to the portal: roles, projects, and the scopes of the token."""
    me = client.get("me")
    lines = [
        ("name", me["username"]),
        ("portal", client.config.url),
        ("role", me["platform_role"] or "-"),
        ("teams", ", ".join(f"{team['slug']} ({team['role']})" for team in me["teams"]) or "-"),
        ("projects", ", ".join(project["slug"] for project in me["projects"]) or "-"),
        ("default", client.config.project or "no project"),
        ("scopes", ", ".join(me["scopes"])),
        ("token", f"valid until {moment(me['token_expires_at'])}"),
    ]
    say(client, me, lambda: "\n".join(f"{name:<9}{value}" for name, value in lines))


@click.group("config")
def config_() -> None:
    """Show the configuration, and set the default project."""


@config_.command()
@with_client()
def view(client: Client) -> None:
    """Show portal and default project, without the token."""
    answer = {"file": str(config.path()), "url": client.config.url, "project": client.config.project}
    say(client, answer, lambda: "\n".join(f"{name:<9}{value or '-'}" for name, value in answer.items()))


@config_.command("set")
@click.argument("key", type=click.Choice(["project"]))
@click.argument("value", shell_complete=complete_project)
@with_client()
def set_(client: Client, key: str, value: str) -> None:
    """Set KEY, which is project, to VALUE: requests are then made in that project unless they name another."""
    _keep(_visible(value, client.get("me")))
    say(client, {key: value}, lambda: f"The default project is {value}.")


@config_.command()
@click.argument("key", type=click.Choice(["project"]))
@with_client()
def unset(client: Client, key: str) -> None:
    """Unset KEY, which is project."""
    _keep("")
    say(client, {key: ""}, lambda: "There is no default project.")


def _keep(project: str) -> None:
    config.save(replace(config.stored(), project=project))


def _visible(project: str, me: dict[str, Any]) -> str:
    slugs = [each["slug"] for each in me["projects"]]
    if project not in slugs:
        yours = f"Yours are {', '.join(slugs)}." if slugs else "You are in none yet; ask a lead of your team."
        raise CommandError(f"There is no project {project}, or you cannot see it.", reason="not_found", hint=yours)
    return project


@click.group()
def token() -> None:
    """List, create and revoke your tokens."""


@token.command("list")
@with_client(TOKEN)
def list_(client: Client) -> None:
    """List your tokens."""
    rows = client.pages("tokens", 1000)
    say_rows(client, rows, TOKENS, wide=WIDE_TOKENS, empty="No tokens.")


@token.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(["read", "request", "approve", "admin"]))
@click.option(
    "--days",
    type=click.IntRange(1, 365),
    help="No longer than the token that you use. Default: 90 days, or until that token expires.",
)
@with_client()
def create(client: Client, name: str, *, scopes: tuple[str, ...], days: int | None) -> None:
    """Create a token NAME, with the scopes read and request unless --scope is given. It is shown only once."""
    body: dict[str, Any] = {"name": name, "scopes": list(scopes) or ["read", "request"]}
    if days is not None:
        expires_at = datetime.now(UTC) + timedelta(days=days)  # of this machine: the portal is another one
        body["expires_at"] = expires_at.isoformat()
    made = client.post("tokens", body)
    if client.output.is_text:
        click.echo(f"{made['name']} is valid until {moment(made['expires_at'])}.", err=True)
    say(client, made, lambda: str(made["token"]))


@token.command()
@click.argument("id", shell_complete=complete_token)
@with_client()
def revoke(client: Client, id: str) -> None:
    """Revoke the token ID, as `token list` shows it."""
    number = without_kind(id, TOKEN[0])
    if not number.isdecimal():
        raise click.BadParameter(f"{id} is not a number; `gpu-portal token list` shows the ids.", param_hint="ID")
    client.delete(f"tokens/{number}")
    say(client, {"revoked": int(number)}, lambda: f"Token {number} is revoked.")
