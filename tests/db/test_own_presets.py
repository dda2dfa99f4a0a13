"""A person's own presets: kept under names of their own, seen and removed by nobody else."""

from decimal import Decimal

import pytest

from portal.core.errors import Invalid, NotVisible, Refused
from portal.core.models import AuditEntry
from portal.tenants.actors import SYSTEM
from quotas.catalog import own_presets, references, selectors
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Offering, Preset
from tests.support.pages import browser_of, text
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
QUERY = "offering=l40s%2Fwhole&count=2&length=24"


@pytest.fixture(autouse=True)
def _fleet(fleet):
    """Offer l40s."""


def save(user, name="Training"):
    return own_presets.save(user, name, "l40s/whole", 2, Decimal(24), QUERY)


def test_a_name_is_taken_once_per_person_and_operators_have_names_of_their_own(team):
    ada, ben = person(team), person(team)
    catalog.save_preset(SYSTEM, Preset(), {"name": "Training", "offering": Offering.objects.get(key="l40s/whole")})
    for user in (ada, ben):
        assert save(user).query == QUERY
    with pytest.raises(Refused, match="You have a preset Training already"):
        save(ada)
    assert [(row.name, row.owner) for row in selectors.presets_for(ada)] == [("Training", None), ("Training", ada)]
    assert [row.owner for row in selectors.presets()] == [None]


@pytest.mark.parametrize("name", ["", "  ", "x" * 41])
def test_a_name_is_neither_empty_nor_too_long(team, name):
    with pytest.raises(Invalid):
        save(person(team), name)


def test_a_person_has_at_most_twenty(team):
    ada = person(team)
    for number in range(own_presets.MAX_PRESETS):
        save(ada, f"p{number}")
    with pytest.raises(Invalid) as problem:
        save(ada)
    assert "You have 20 presets, which is the limit." in problem.value.errors["name"][0]


def test_only_the_owner_removes_a_preset_and_both_is_in_the_audit_log(team):
    ada = person(team)
    row = save(ada)
    with pytest.raises(NotVisible):
        own_presets.remove(person(team), row.pk)
    own_presets.remove(ada, row.pk)
    assert not Preset.objects.exists()
    found = AuditEntry.objects.filter(target="Training").order_by("id").values_list("actor", "action")
    assert list(found) == [(ada.username, "preset.set"), (ada.username, "preset.remove")]


def test_own_presets_are_in_no_list_of_operators_and_keep_no_flavor_accepted(team):
    row = save(person(team))
    assert client(row.owner).get("/api/v1/presets").json()["results"] == []
    operator = person(platform_role="operator")
    assert client(operator).get(f"/api/v1/presets/{row.pk}").status_code == 404
    pages = browser_of(operator)
    assert row.name not in text(pages.get("/presets"))
    assert pages.get(f"/presets/{row.pk}/edit").status_code == 404
    assert "preset" not in " ".join(references.to_flavor(Flavor.objects.get(name="l40s")))
