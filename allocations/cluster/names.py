"""Every name the portal gives to an object on the cluster. Pure.

An allocation's own name is a DNS label of at most 48 characters, unique in its project, so that each name made
from it by a suffix is a valid DNS label (63) and no two allocations of a namespace share one. The claim of one slice
adds a dot, which no allocation's name has, and is a DNS subdomain. Kueue names the Workloads of Jobs
``job-<name>-<hash>``; ours end in ``-lease``, which such a hash (five hexadecimal characters) never is.
"""

import re
from hashlib import sha256

from quotas.limits.names import TEAM_LABEL

ALLOCATION_MAX = 48
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

FIELD_MANAGER = "gpu-portal"
PORTAL_NAMESPACE = "gpu-portal"
PEOPLE_NAMESPACE = "gpu-portal-people"
LEFT_BEHIND = "gpu-portal-left-behind"
"""Field manager of what stays on a namespace that is given back."""
LOCAL_QUEUE = "gpu"
GUARD = "gpu-portal"
HOLDER_CLASS = "gpu-portal-holder"
QUEUED_JOB_CLASS = "gpu-portal-queued-job"
HOLD = "gpu-portal-hold-"
HOLD_SLOT = f"{HOLD}slot."
MEMBER_ROLE = "gpu-portal:tenant"
VIEWER_ROLE = "gpu-portal:viewer"

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
CONFIG_SIZE = f"{LABEL}config-size-kib"
"""Label of a namespace: from where its Services may be reached. The policy of Services reads it."""
QUEUE_NAME = "kueue.x-k8s.io/queue-name"


def lease(allocation: str) -> str:
    return f"{allocation}-lease"


def claim(allocation: str) -> str:
    """The claim bears the allocation's name: it is what a tenant reads in ``kubectl get resourceclaims``."""
    return allocation


def claim_of_slice(allocation: str, index: int) -> str:
    """The claim of one slice, where each slice has its own."""
    return f"{allocation}.{index}"


def claims(allocation: str, slices: int, spread: bool) -> tuple[str, ...]:
    """Return the names of an allocation's ResourceClaims, in the order of its slices: one for all slices, or one each
    if they spread.
    """
    return tuple(claim_of_slice(allocation, n) for n in range(slices)) if spread else (claim(allocation),)


def slice_request(index: int) -> str:
    """A slice's request in its claim; ``index`` counts the slices of the allocation, whichever claim they are in."""
    return f"slice-{index}"


def holder(claim: str) -> str:
    """The pod that keeps the claim allocated."""
    return f"{claim}-holder"


def example(allocation: str) -> str:
    """The pod that a tenant is given to begin with."""
    return f"{allocation}-pod"


def hold_slot(number: int | None) -> str:
    """PriorityClass that the guard sets on pods of the allocation with this number in its namespace, and the hold quota
    that is scoped to it. No flavor's name has a dot, so none of ``former_hold`` is alike; without a number it is no DNS
    name, so nothing on the cluster can have it."""
    return f"{HOLD_SLOT}{'-' if number is None else number}"


def former_hold(flavor: str) -> str:
    """PriorityClass and quota that all allocations of a namespace on one flavor shared before each had its own."""
    return f"{HOLD}{flavor}"


def person(username: str) -> str:
    """ServiceAccount of a person. Usernames that are no DNS label keep a readable part and gain a digest."""
    if DNS_LABEL.fullmatch(username) and len(username) <= 50:
        return f"person-{username}"
    readable = re.sub(r"[^a-z0-9]+", "-", username.lower()).strip("-")[:40] or "x"
    return f"person-{readable}-{sha256(username.encode()).hexdigest()[:8]}"


def suggest(purpose: str, token: str) -> str:
    """A name for an allocation that was given none: readable words of its offering plus ``token``."""
    words = re.sub(r"[^a-z0-9]+", "-", purpose.lower()).strip("-")[: ALLOCATION_MAX - len(token) - 1].strip("-")
    return f"{words or 'gpu'}-{token}"


def is_allocation_name(name: str) -> bool:
    return len(name) <= ALLOCATION_MAX and DNS_LABEL.fullmatch(name) is not None
