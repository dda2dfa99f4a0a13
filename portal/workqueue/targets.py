"""The targets that workers reconcile, and their text form in the work queue and in messages.

The text is `<cluster>/<kind>` or `<cluster>/<kind>:<key>`, and begins with the kind where the target is of no cluster.
It must not change: rows and messages of the previous release are still there during an upgrade.
"""

from typing import NamedTuple, NewType
from uuid import UUID

from portal.clusters import registry

Target = NewType("Target", str)


class Parsed(NamedTuple):
    """The parts of a target: `cluster`, a slug, or "" for none; `key`, an id or a slug, or "" where a cluster has one
    target of the kind.
    """

    cluster: str
    kind: str
    key: str


def platform(cluster: str) -> Target:
    return Target(f"{cluster}/platform")


def inventory(cluster: str) -> Target:
    return Target(f"{cluster}/inventory")


def usage(cluster: str) -> Target:
    return Target(f"{cluster}/usage")


def adoption(cluster: str) -> Target:
    return Target(f"{cluster}/adoption")


def leases(cluster: str) -> Target:
    return Target(f"{cluster}/leases")


def allocation(cluster: str, id_: UUID | str) -> Target:
    return Target(f"{cluster}/allocation:{id_}")


def job(cluster: str, uid: UUID | str) -> Target:
    return Target(f"{cluster}/job:{uid}")


def project(cluster: str, slug: str) -> Target:
    return Target(f"{cluster}/project:{slug}")


def platforms() -> list[Target]:
    """Return the platform target of each cluster, for changes to departments, teams and people; one query."""
    return [platform(cluster) for cluster in registry.slugs()]


def of_cluster(cluster: str) -> str:
    """Return the prefix that the text of all targets of a cluster has."""
    return f"{cluster}/"


def parse(target: str) -> Parsed:
    """Return the parts of a target's text."""
    cluster, _, what = target.rpartition("/")
    kind, _, key = what.partition(":")
    return Parsed(cluster, kind, key)
