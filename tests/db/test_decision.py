"""What a request is decided by, and what is read only for people."""

import pytest

from allocations.domain.allocation_spec import AllocationRequest
from allocations.requests import decision, services
from allocations.requests.preview import explain, preview_request
from portal.core.errors import Refused
from quotas.catalog.models import Offering
from tests.support.fleet import fleet
from tests.support.people import person
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fleet(team):
    fleet(team)


def test_a_request_is_decided_without_prices_and_without_anything_that_would_fit_instead(team, project, monkeypatch):
    monkeypatch.setattr(services, "explain", None)
    with executed() as queries:
        services.request(person(team), AllocationRequest(project.slug, "l40s/whole"))
    assert not [sql for sql, _ in queries if "costs_price" in sql]


def test_a_refusal_has_the_alternatives_of_the_preview(team, project):
    member, spec = person(team), AllocationRequest(project.slug, "l40s/whole", count=50)
    seen = preview_request(member, spec)
    with pytest.raises(Refused) as refused:
        services.request(member, spec)
    assert list(refused.value.violations) == seen.violations != []
    assert [dict(one) for one in refused.value.alternatives] == [one.document() for one in seen.alternatives]


def test_an_explained_decision_is_the_decision(team, project):
    found = decision.decide(decision.validate(person(team), AllocationRequest(project.slug, "l40s/whole")))
    explained = explain(found)
    assert {name: getattr(explained, name) for name in vars(found)} == vars(found)


def test_nothing_is_offered_instead_that_has_less_than_half_the_memory(team, project):
    memory = {
        each.key: each.memory_part * each.flavor.whole_gpu_mib for each in Offering.objects.select_related("flavor")
    }
    offered = set()
    for key in Offering.objects.exclude(kind="claim").values_list("key", flat=True):
        seen = preview_request(person(team), AllocationRequest(project.slug, key, count=50))
        found = {one.offering for one in seen.alternatives}
        assert all(2 * memory[one] >= memory[key] for one in found), key
        offered |= {(key, one) for one in found - {key}}
    assert offered
