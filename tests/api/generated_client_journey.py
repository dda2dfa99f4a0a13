"""What a program does that asks for slices and releases them, with the client that openapi-python-client generates.

    PORTAL_TOKEN=gpup_… LEAD_TOKEN=gpup_… python generated_client_journey.py URL PROJECT

It prints a line for each step. An answer that is not of the type that the step expects ends it.
tests/api/test_generated_client.py generates the client, checks the types of this file strictly, and runs it.
"""

import os
import sys
from typing import TypeVar, assert_never
from uuid import uuid4

from gpu_portal_client import AuthenticatedClient
from gpu_portal_client.api.allocations import (
    allocations_create,
    allocations_extend,
    allocations_list,
    allocations_preview,
    allocations_release,
    allocations_retrieve,
)
from gpu_portal_client.api.costs import costs_list
from gpu_portal_client.api.offerings import offerings_list
from gpu_portal_client.api.projects import projects_patch, projects_retrieve, projects_update
from gpu_portal_client.models import (
    AllocationOut,
    AllocationPage,
    AllocationRequest,
    BusyProblem,
    ClusterStoreFullProblem,
    CostPage,
    CountInvalid400Problem,
    CountInvalid409Problem,
    ExtendRequest,
    IfMatchStaleProblem,
    InProgressProblem,
    InternalProblem,
    InvalidProblem,
    KeyReusedProblem,
    LengthRequiredProblem,
    LimitExceededProblem,
    MalformedProblem,
    NameTakenProblem,
    NeverFitsProblem,
    NotAcceptableProblem,
    NotAuthenticatedProblem,
    NotFoundProblem,
    OfferingHiddenProblem,
    OfferingPage,
    PreviewOut,
    ProjectChange,
    ProjectOut,
    QuotaExceededProblem,
    ReleaseRequest,
    RoleMissingProblem,
    ThrottledProblem,
    TimeInvalidProblem,
    TokenInvalidProblem,
    TooComplexProblem,
    TooLargeProblem,
    UnsupportedMediaTypeProblem,
    WrongPhaseProblem,
)

Expected = TypeVar("Expected")


def expect(kind: type[Expected], answer: object) -> Expected:
    """Return the answer. Raises SystemExit if it is of another type."""
    if not isinstance(answer, kind):
        raise SystemExit(f"expected {kind.__name__}, got {answer!r}")
    return answer


def hold(client: AuthenticatedClient, project: str) -> None:
    """Request what is offered, find it again, keep it longer, and release it."""
    offered = expect(OfferingPage, offerings_list.sync(client=client, project=project, free=True))
    offering = next(each for each in offered.results if each.kind == "whole" and each.mine.can_get_now)
    print(f"offered: {offering.id}, {offering.mine.can_get_now} to have now")

    body = AllocationRequest(project=project, offering=offering.id, hours="2", name="train")
    seen = expect(PreviewOut, allocations_preview.sync(client=client, body=body))
    print(f"preview: fits {seen.fits}, {seen.price.total} {seen.price.currency}")

    key = str(uuid4())
    held = expect(AllocationOut, allocations_create.sync(client=client, body=body, idempotency_key=key))
    again = expect(AllocationOut, allocations_create.sync(client=client, body=body, idempotency_key=key))
    id_ = held.id
    print(f"requested: {held.name} is {held.phase}, once: {held.id == again.id}")

    listed = expect(AllocationPage, allocations_list.sync(client=client, project=project, name="train"))
    print(f"listed: {[row.name for row in listed.results]}, next page: {listed.next_}")

    longer = expect(AllocationOut, allocations_extend.sync(id_, client=client, body=ExtendRequest(hours="1.5")))
    shown = expect(AllocationOut, allocations_retrieve.sync(id_, client=client))
    print(f"renewed: {shown.hours} h, as the answer says: {longer.hours == shown.hours}")

    refuse_what_contradicts(client, body, key)
    ended = expect(AllocationOut, allocations_release.sync(id_, client=client, body=ReleaseRequest(reason="done")))
    print(f"released: {ended.phase}")
    late = expect(WrongPhaseProblem, allocations_extend.sync(id_, client=client, body=ExtendRequest(hours="1")))
    print(f"{late.reason}: {late.title}")


def refuse_what_contradicts(client: AuthenticatedClient, body: AllocationRequest, key: str) -> None:
    """Request the same name again, and use the same key for something else."""
    name = expect(NameTakenProblem, allocations_create.sync(client=client, body=body))
    print(f"{name.reason}: {name.title}")
    other = AllocationRequest(project=body.project, offering=body.offering, name="other")
    reused = expect(KeyReusedProblem, allocations_create.sync(client=client, body=other, idempotency_key=key))
    print(f"{reused.reason}: {reused.title}")


def refuse_by_limits_and_values(client: AuthenticatedClient, project: str) -> None:
    """Request too much and what cannot be read; each refusal has members of its own."""
    much = AllocationRequest(project=project, offering="l40s/whole", count=6)
    quota = expect(QuotaExceededProblem, allocations_create.sync(client=client, body=much))
    works = [(each.count, each.offering) for each in quota.alternatives]
    limit = quota.dimensions[0]
    print(f"{quota.reason}: {limit.requested} of {limit.limit} for {limit.dimension}; instead {works}")

    none = AllocationRequest(project=project, offering="l40s/whole", count=0)
    count = expect(CountInvalid400Problem, allocations_create.sync(client=client, body=none))
    print(f"{count.reason}: {count.errors.to_dict()}")
    word = AllocationRequest(project=project, offering="l40s/whole", hours="soon")
    time = expect(TimeInvalidProblem, allocations_create.sync(client=client, body=word))
    print(f"{time.reason}: {time.errors.to_dict()}")
    blank = AllocationRequest(project="", offering="l40s/whole")
    invalid = expect(InvalidProblem, allocations_create.sync(client=client, body=blank))
    print(f"{invalid.reason}: {invalid.errors.to_dict()}")
    print(f"next: {next_step(client, much)}, {next_step(client, word)}")


def next_step(client: AuthenticatedClient, body: AllocationRequest) -> str:
    """Request, and return what a program does next. mypy finds the refusal that is left out."""
    match allocations_create.sync(client=client, body=body):
        case AllocationOut() as row:
            return f"use {row.name}"
        case QuotaExceededProblem() | LimitExceededProblem() | NeverFitsProblem() | CountInvalid409Problem() as refused:
            works = refused.alternatives[0] if refused.alternatives else None
            return f"ask for {works.count} of {works.offering}" if works else "ask for less"
        case TooComplexProblem():
            return "ask for a simpler claim"
        case OfferingHiddenProblem() | NotFoundProblem():
            return "choose another offering"
        case NameTakenProblem() | WrongPhaseProblem() | KeyReusedProblem():
            return "look what is there"
        case InvalidProblem() | CountInvalid400Problem() | TimeInvalidProblem() as refused:
            return f"mend {', '.join(refused.errors.additional_properties)}"
        case MalformedProblem() | LengthRequiredProblem() | TooLargeProblem() | UnsupportedMediaTypeProblem():
            return "mend the program"
        case NotAcceptableProblem() | InternalProblem() | None:
            return "report it"
        case NotAuthenticatedProblem() | TokenInvalidProblem() | RoleMissingProblem():
            return "get another token"
        case BusyProblem() | ClusterStoreFullProblem() | ThrottledProblem() | InProgressProblem():
            return "try again later"
        case unknown:
            assert_never(unknown)


def look_at_costs(client: AuthenticatedClient) -> None:
    """Ask with the defaults of the schema, which the client sends."""
    found = expect(CostPage, costs_list.sync(client=client, window="7d", aggregate="team"))
    print(f"costs: {[row.properties.to_dict() for row in found.results]}")


def send_back(lead: AuthenticatedClient, project: str) -> None:
    """Send what GET gave, by PUT and as a merge patch."""
    read = projects_retrieve.sync_detailed(project, client=lead)
    seen, etag = expect(ProjectOut, read.parsed), read.headers["ETag"]
    body = ProjectChange.from_dict(seen.to_dict())
    kept = expect(ProjectOut, projects_update.sync(project, client=lead, body=body, if_match=etag))
    patched = expect(ProjectOut, projects_patch.sync(project, client=lead, body=body, if_match=etag))
    print(f"sent back: {kept == patched == seen}")


def refuse_by_right_and_version(
    client: AuthenticatedClient, nobody: AuthenticatedClient, lead: AuthenticatedClient, project: str
) -> None:
    """Ask for what is not there, as nobody, without the role, and with an ETag that is no longer current."""
    missing = expect(NotFoundProblem, allocations_retrieve.sync(uuid4(), client=client))
    print(f"{missing.reason}: {missing.status}")
    print(f"token_invalid: {expect(TokenInvalidProblem, allocations_list.sync(client=nobody)).status}")

    read = projects_retrieve.sync_detailed(project, client=lead)
    etag, name = read.headers["ETag"], expect(ProjectOut, read.parsed).name
    change = ProjectChange(name=f"{name} of May")
    forbidden = expect(RoleMissingProblem, projects_update.sync(project, client=client, body=change, if_match=etag))
    print(f"{forbidden.reason}: {forbidden.status}")
    changed = expect(ProjectOut, projects_update.sync(project, client=lead, body=change, if_match=etag))
    stale = expect(IfMatchStaleProblem, projects_update.sync(project, client=lead, body=change, if_match=etag))
    print(f"{stale.reason}: {changed.name!r} is current")


def main(url: str, project: str) -> None:
    client = AuthenticatedClient(base_url=url, token=os.environ["PORTAL_TOKEN"])
    nobody = AuthenticatedClient(base_url=url, token="gpup_unknown")
    lead = AuthenticatedClient(base_url=url, token=os.environ["LEAD_TOKEN"])
    hold(client, project)
    refuse_by_limits_and_values(client, project)
    look_at_costs(client)
    send_back(lead, project)
    refuse_by_right_and_version(client, nobody, lead, project)


if __name__ == "__main__":
    main(*sys.argv[1:])
