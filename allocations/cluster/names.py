"""Names, labels and annotations of all objects that the portal creates on the cluster. Pure.

An allocation's name is a DNS label of at most 48 characters, unique in its project. So every name built from it with a
suffix is a valid DNS label (63 characters), and no two allocations of a namespace share a name. The claim of one slice
adds a dot, which no allocation's name has, so it is a DNS subdomain. Kueue names the Workloads of Jobs
``job-<name>-<hash>``; leases end in ``-lease``, which is never such a hash (five hexadecimal characters).
"""

import re
from hashlib import sha256

from allocations.domain.allocation_spec import NAME, NAME_MAX
from quotas.limits.names import TEAM_LABEL

ALLOCATION_MAX = NAME_MAX
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DIGEST = 20
"""Hexadecimal digits of a digest in a name: 80 bits, so that nobody finds another username with the same."""
DIGESTED = re.compile(rf".*-[0-9a-f]{{{DIGEST}}}")

FIELD_MANAGER = "gpu-portal"
PORTAL_NAMESPACE = "gpu-portal"
PEOPLE_NAMESPACE = "gpu-portal-people"
LEFT_BEHIND = "gpu-portal-left-behind"
"""Field manager of the labels that remain on a namespace after the portal stops managing it."""
LOCAL_QUEUE = "gpu"
GUARD = "gpu-portal"
HOLDER_CLASS = "gpu-portal-holder"
QUEUED_JOB_CLASS = "gpu-portal-queued-job"
HOLD = "gpu-portal-hold-"
HOLD_SLOT = f"{HOLD}slot."
MEMBER_ROLE = "gpu-portal:tenant"
VIEWER_ROLE = "gpu-portal:viewer"
TENANTS_LEVEL = "gpu-portal-tenants"
"""Priority level of tenants' requests (API Priority and Fairness)."""
PROJECTS_FLOW = "gpu-portal-projects"
"""FlowSchema of the requests by service accounts of projects' namespaces."""
TEAM_LEVEL = "gpu-portal-team-"
"""Prefix of a team's priority level, and of the FlowSchema that puts requests in its namespaces into it."""

LABEL = "gpu-portal.io/"
MANAGED = f"{LABEL}managed"
ALLOCATION = f"{LABEL}allocation"
PROJECT = f"{LABEL}project"
TEAM = TEAM_LABEL
DEPARTMENT = f"{LABEL}department"
HOLDER = f"{LABEL}holder"
REQUEST = f"{LABEL}request"
SLICES = f"{LABEL}slices-of"
POD_SLICES = f"{LABEL}slices"
ADOPT = f"{LABEL}adopt"
GUARD_MODE = f"{LABEL}guard"
EXPOSURE = f"{LABEL}exposure"
"""Label of a namespace: from where its Services may be reached. The admission policy of Services reads it."""
CONFIG_SIZE = f"{LABEL}config-size-kib"
"""Label of a namespace: the largest size of a ConfigMap or Secret."""
QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def lease(allocation: str) -> str:
    """Return the name of the allocation's Workload, which reserves its quota."""
    return f"{allocation}-lease"


def claim(allocation: str) -> str:
    """Return the name of the allocation's ResourceClaim: its own name, which tenants see in ``kubectl``."""
    return allocation


def claim_of_slice(allocation: str, index: int) -> str:
    """Return the name of the ResourceClaim of one slice, if each slice has its own claim."""
    return f"{allocation}.{index}"


def claims(allocation: str, slices: int, spread: bool) -> tuple[str, ...]:
    """Return the names of an allocation's ResourceClaims: one for all slices, or one for each if they spread."""
    return tuple(claim_of_slice(allocation, n) for n in range(slices)) if spread else (claim(allocation),)


def slice_request(index: int) -> str:
    """Return the name of a slice's device request; ``index`` counts all slices of the allocation, over its claims."""
    return f"slice-{index}"


def holder(claim: str) -> str:
    """Return the name of the pod that keeps the claim allocated."""
    return f"{claim}-holder"


def example(allocation: str) -> str:
    """Return the name of the sample pod that tenants see."""
    return f"{allocation}-pod"


def hold_slot(number: int | None) -> str:
    """Return the name of the PriorityClass and of the hold quota of the allocation with this number in its namespace.

    The admission policies set the class on the allocation's pods, and the quota is scoped to it. Without a number it is
    not a valid DNS name, so no object can have it.
    """
    return f"{HOLD_SLOT}{'-' if number is None else number}"


def service_accounts(namespace: str) -> str:
    """Return the group that the API server puts all service accounts of a namespace into."""
    return f"system:serviceaccounts:{namespace}"


def person(username: str) -> str:
    """Return the name of a person's ServiceAccount, which no two usernames share.

    A username that is not a DNS label is shortened with a digest; and so is one that ends like a digest, or it could be
    the name of another person.
    """
    if DNS_LABEL.fullmatch(username) and len(username) <= 50 and not DIGESTED.fullmatch(username):
        return f"person-{username}"
    readable = re.sub(r"[^a-z0-9]+", "-", username.lower()).strip("-")[:30] or "x"
    return f"person-{readable}-{sha256(username.encode()).hexdigest()[:DIGEST]}"


def suggest(purpose: str, token: str) -> str:
    """Return a name for an allocation without one: readable words of its purpose, and ``token``."""
    words = re.sub(r"[^a-z0-9]+", "-", purpose.lower()).strip("-")[: ALLOCATION_MAX - len(token) - 1].strip("-")
    return f"{words or 'gpu'}-{token}"


def is_allocation_name(name: str) -> bool:
    """Return whether an allocation may have this name."""
    return re.fullmatch(NAME, name) is not None
