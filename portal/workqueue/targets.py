"""What workers look at. A target is text in the table and in messages; its form is known here only.

It is `<cluster>/<kind>` or `<cluster>/<kind>:<key>`. The text must stay: rows and messages of the release before are
still there during an upgrade, those without a cluster too: they are of the environment's.
"""

from typing import NamedTuple, NewType
from uuid import UUID

from portal.clusters import registry

Target = NewType("Target", str)


class Parsed(NamedTuple):
    """`cluster` is a slug; `key` is an id or a slug, "" for a target that is the only one of its kind in a cluster."""

    cluster: str
    kind: str
    key: str


def platform(cluster: str) -> Target:
    return Target(f"{cluster}/platform")


def inventory(cluster: str) -> Target:
    return Target(f"{cluster}/inventory")


def adoption(cluster: str) -> Target:
    return Target(f"{cluster}/adoption")


def leases(cluster: str) -> Target:
    return Target(f"{cluster}/leases")


def allocation(cluster: str, id_: UUID | str) -> Target:
    return Target(f"{cluster}/allocation:{id_}")


def project(cluster: str, slug: str) -> Target:
    return Target(f"{cluster}/project:{slug}")


def platforms() -> list[Target]:
    """What all clusters have of departments, teams and people; one query."""
    return [platform(cluster) for cluster in registry.slugs()]


def of_cluster(cluster: str) -> str:
    """How the text of all targets of a cluster begins."""
    return f"{cluster}/"


def parse(target: str) -> Parsed:
    """Return the parts of a target's text."""
    cluster, _, what = target.rpartition("/")
    kind, _, key = what.partition(":")
    return Parsed(cluster or registry.own(), kind, key)
