"""Allocations that Kueue admits and that cannot start: they release their quota, show why, and notify their owner."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from allocations.cluster.client import connect
from allocations.cluster.kinds import KINDS
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import services
from portal.core import clock
from portal.core.models import WorkItem
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import intervals, request_slices, wait_for
from tests.support.cluster.failed_starts import DEADLINE_S, first_failure, start_deadline
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.hardware import claim
from tests.support.cluster.waiting import eventually
from tests.support.cluster.watch_events import events_since
from tests.support.clusters import LOCAL

pytestmark = [pytest.mark.cluster, pytest.mark.own_project]
REFUSAL = "Claims of this namespace want a cost centre."


@pytest.fixture
def refused_claims(project: Project, kubectl: Kubectl) -> Iterator[str]:
    """Add an administrator's policy that refuses every claim of the project; yield its name."""
    name = f"test-{project.namespace}"
    deny(kubectl, project, name, REFUSAL, {"validations": [{"expression": "false", "message": REFUSAL}]})
    yield name
    lift(kubectl, name)


@pytest.fixture
def unread_policy(project: Project, kubectl: Kubectl) -> Iterator[str]:
    """Add a policy with a portal's name whose parameters the API server does not find, as just after its start."""
    name = f"gpu-portal-test-{project.namespace}"
    unknown = {"apiVersion": "gpu-portal.io/v1", "kind": "Unknown"}
    rule = {"paramKind": unknown, "validations": [{"expression": "true"}]}
    bound = {"paramRef": {"name": "unknown", "parameterNotFoundAction": "Deny"}}
    deny(kubectl, project, name, "failed to configure", rule, bound)
    yield name
    lift(kubectl, name)


def deny(
    kubectl: Kubectl,
    project: Project,
    name: str,
    message: str,
    rule: dict[str, Any],
    bound: dict[str, Any] | None = None,
) -> None:
    """Have claims of the project refused with the message."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["resource.k8s.io"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["resourceclaims"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": project.namespace}},
            },
            **rule,
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], **(bound or {})},
    }
    for each in (policy, binding):
        kubectl("apply", "-f", "-", stdin=json.dumps(each))
    tried = json.dumps(claim("tried", "gpu.nvidia.com"))
    create = ("create", "--dry-run=server", "-n", project.namespace, "-f", "-")
    eventually(lambda: message in refusal(kubectl, *create, stdin=tried))


def refusal(kubectl: Kubectl, *arguments: str, stdin: str) -> str:
    try:
        kubectl(*arguments, stdin=stdin)
    except AssertionError as error:
        return str(error)
    return ""


def lift(kubectl: Kubectl, name: str) -> None:
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        kubectl("delete", kind, name, "--ignore-not-found")


def test_a_claim_that_the_api_server_refuses_is_a_failed_start_in_its_words(
    project: Project, member: User, kubectl: Kubectl, refused_claims: str
) -> None:
    with start_deadline("h100"):
        row = services.request(member, AllocationRequest(project=project.slug, offering="h100/whole"))
        wait_for(row, Phase.SUSPENDED, within_s=60)
    assert (row.reason, row.start_failures) == ("start_refused", 3)
    assert REFUSAL in row.message
    list_command = ("get", "workloads,resourceclaims,pods", "-n", project.namespace, "-o", "name")
    eventually(lambda: kubectl(*list_command) == "")
    lift(kubectl, refused_claims)
    services.retry(member, row)
    wait_for(row, Phase.ACTIVE)


def test_a_policy_of_ours_that_the_api_server_cannot_read_yet_is_nobodys_failed_start(
    project: Project, member: User, kubectl: Kubectl, unread_policy: str
) -> None:
    with start_deadline("h100"):
        row = services.request(member, AllocationRequest(project=project.slug, offering="h100/whole"))
        wait_for(row, Phase.STARTING)
        deadline = clock.now() + timedelta(seconds=DEADLINE_S)
        failed = WorkItem.objects.filter(
            target=f"local/allocation:{row.pk}", error__contains=unread_policy, leased_until=None
        )
        eventually(lambda: failed.filter(updated_at__gt=deadline).exists(), within_s=60)
        row.refresh_from_db()
        assert (row.phase, row.start_failures) == (Phase.STARTING, 0)
    lift(kubectl, unread_policy)
    wait_for(row, Phase.ACTIVE, within_s=60)


def test_a_claim_that_is_given_more_than_its_lease_counts_gives_it_back_and_tries_again(
    project: Project, member: User, kubectl: Kubectl
) -> None:
    """The resources are those of a fleet whose nodes had four GPUs at the request; now they have eight.

    The lease may stay: if the slices are free only once the back-off is over, it is the lease of the next try.
    """
    claim = {"requests": [{"device": "gpu", "count": "all"}]}
    row = request_slices(member, project, "h100/claim", claim=claim, starts_at=clock.now() + timedelta(seconds=3))
    assert row.claim is not None
    counted, revision = row.claim, connect(LOCAL).revision(KINDS["ResourceClaim"])
    half = {name: amount // 2 for name, amount in counted["built"]["units"].items()}
    Allocation.objects.filter(pk=row.pk).update(claim={**counted, "built": {**counted["built"], "units": half}})
    failed = first_failure(row)
    Allocation.objects.filter(pk=row.pk).update(claim=counted)
    assert failed.reason == "more_than_counted"
    assert "56 of gpu-portal.io/compute-slices where 28 are counted" in failed.message
    wait_for(row, Phase.ACTIVE)
    for kind in ("ResourceClaim", "Pod"):
        events = events_since(kubectl, KINDS[kind].path(project.namespace), str(revision))
        assert "DELETED" in [event["type"] for event in events], kind
    present = [interval for interval in intervals(row) if interval.end is None]
    assert len(present) == counted["built"]["units"]["gpu-portal.io/compute-slices"] // 7
    assert all(interval.start > failed.at for interval in present)
