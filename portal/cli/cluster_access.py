"""The commands kubeconfig and credential: access to a cluster for kubectl."""

import json
import os
from pathlib import Path
from typing import Any

import click

from portal.cli import config, credential_cache, files
from portal.cli.client import Client, segment
from portal.cli.lookup import complete_allocation, complete_project, find
from portal.cli.output import say, with_client
from portal.cli.times import moment


@click.command()
@click.argument("allocation", required=False, shell_complete=complete_allocation)
@click.option(
    "--project",
    shell_complete=complete_project,
    help="Slug of a project, for who has no allocation and queues Jobs; else the default one, without ALLOCATION.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["exec", "token"]),
    default="exec",
    show_default=True,
    help="Of a project's: kubectl runs `gpu-portal credential` for tokens, or there is one in it for an hour at most.",
)
@click.option("--file", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write it there, for you alone.")
@with_client()
def kubeconfig(client: Client, allocation: str | None, *, project: str | None, format_: str, path: Path | None) -> None:
    """Print a kubeconfig of your own: for a project, or for that of ALLOCATION, then valid for an hour at most.

    Your rights are those of your account in every project of yours. The namespace in it is only the one that kubectl
    uses without -n.
    """
    project = project or (None if allocation else client.config.project)
    if bool(allocation) == bool(project):
        raise click.UsageError("Name an allocation, or a project with --project.")
    if path is not None:
        _check_writable(path)
    if allocation:
        given = client.get_exactly(f"allocations/{find(client, allocation)}/connect")
        hint = f"label your pods {given['label']['key']}: {given['label']['value']}"
    else:
        given = client.get_exactly(f"projects/{segment(str(project))}/kubeconfig", format=format_)
        hint = f"it is for all your projects in {given['cluster']}; without -n it is {given['namespace']}"
    if path is None:
        say(client, given, lambda: given["kubeconfig"].rstrip())
        return
    with files.written(path):
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(given["kubeconfig"], encoding="utf-8")
    until = f"is valid until {moment(given['expires_at'])}" if given["expires_at"] else "renews its token by itself"
    said = {"file": str(path), "expires_at": given["expires_at"]}
    said |= {name: given[name] for name in ("label", "project", "namespace", "cluster") if name in given}
    say(client, said, lambda: f"{path} {until}; {hint}")


def _check_writable(path: Path) -> None:
    """Raise click.BadParameter if the file cannot be written: its token would be made for nobody."""
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"{path} cannot be written.", param_hint="--file")


@click.command()
@click.option("--cluster", default="", help="Slug of a cluster; the portal's own if not given.")
@with_client()
def credential(client: Client, *, cluster: str) -> None:
    """Print a Kubernetes token of yours, as kubectl asks its plugins for one (ExecCredential).

    kubectl runs this by itself. The token is kept, for you alone, until 80 % of its life.
    """
    file = credential_cache.file(config.load(), cluster)
    given = credential_cache.load(file)
    if given is None:
        given = client.post("credentials", {"cluster": cluster} if cluster else {})
        credential_cache.save(file, given)
    click.echo(json.dumps(_exec_credential(given)))


def _exec_credential(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": given["token"], "expirationTimestamp": given["expires_at"]},
    }
