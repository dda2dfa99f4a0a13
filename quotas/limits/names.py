"""Names of the Kueue objects that limits become. Pure.

Kueue requires a DNS subdomain and the portal at most 63 characters; slugs are DNS labels of at most 40, so the prefixes
fit, and names of one kind differ whenever the slugs do.
"""

TEAM_LABEL = "gpu-portal.io/team"
"""Label of a team's namespaces, from which its queue admits workloads."""


def cohort(department: str) -> str:
    return f"dept-{department}"


def cluster_queue(team: str) -> str:
    return f"team-{team}"


def resource_flavor(flavor: str) -> str:
    """Return the flavor's own name, which people read in Kueue's messages."""
    return flavor


def department_of(name: str) -> str:
    """Return the department whose Cohort has this name; "" if none has."""
    return name.removeprefix(cohort("")) if name.startswith(cohort("")) else ""


def team_of(name: str) -> str:
    """Return the team whose ClusterQueue has this name; "" if none has."""
    return name.removeprefix(cluster_queue("")) if name.startswith(cluster_queue("")) else ""
