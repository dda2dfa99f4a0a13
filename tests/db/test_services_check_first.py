"""Every service that writes for operators refuses others before it looks at what they ask for."""

from datetime import date

import pytest

from allocations.projects import organization
from portal.core.errors import Forbidden
from portal.core.models import AuditEntry
from portal.tenants import members, services, structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, User
from portal.tenants.project_options import ProjectOptions
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Offering, Preset
from quotas.costs import bills, capacity_services
from quotas.costs import services as prices
from quotas.costs.capacity_services import CostSubject
from quotas.costs.node_terms import Term
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.people import person

pytestmark = pytest.mark.django_db
FLAVOR, NOBODY, MONTH = Flavor(name="none"), User(username="nobody"), date(2026, 1, 1)
ADOPT = ProjectOptions(adopt=True)
# Each is called with an actor, a team and its project. What they ask for is wrong, or not there.
WRITES = {
    "configure a flavor": lambda by, *_: catalog.configure_flavor(by, FLAVOR, {"name": "Not a name"}),
    "hide an offering": lambda by, *_: catalog.hide_offering(by, Offering(flavor=FLAVOR), hidden=True),
    "save a preset": lambda by, *_: catalog.save_preset(by, Preset(), {"count": 0}),
    "set a price": lambda by, *_: prices.set_price(by, "none", "-1"),
    "set a list price": lambda by, *_: prices.set_slice_price(by, "none/whole", "-1"),
    "set a node cost": lambda by, *_: capacity_services.set_node_cost(by, CostSubject(FLAVOR, Term.SPOT), "-1", "none"),
    "set a node term": lambda by, *_: capacity_services.set_node_term(by, "local", "none", "none"),
    "enter a bill": lambda by, *_: bills.enter_bill(by, "none", MONTH, "-1"),
    "set a fixed cost": lambda by, *_: bills.set_shared_cost(by, "", MONTH, "-1", "none"),
    "set a limit": lambda by, team, _: limits.set_limit(by, team, None, -1),
    "remove a limit": lambda by, team, _: limits.remove_limit(by, Limit(team=team)),
    "set a policy": lambda by, team, _: limits.set_policy(by, team, {"weight": -1}),
    "create a department": lambda by, *_: services.create_department(by, "Not a slug", ""),
    "create a team": lambda by, team, _: services.create_team(by, team.department, "Not a slug", ""),
    "create a project": lambda by, team, _: services.create_project(by, team, "Not a slug", ""),
    "adopt a namespace": lambda by, team, _: organization.create_project(by, team, "old", "", ADOPT),
    "create a person": lambda by, *_: services.create_user(by, "", ""),
    "set a password": lambda by, *_: services.set_password(by, NOBODY, ""),
    "save a person": lambda by, *_: services.save_person(by, NOBODY, []),
    "issue another's token": lambda by, *_: services.issue_token(by, NOBODY, "", []),
    "revoke another's token": lambda by, *_: services.revoke_token(by, NOBODY, 0),
    "rename a team": lambda by, team, _: structure.rename(by, team, ""),
    "move a department": lambda by, team, _: structure.set_parent(by, team.department, team.department),
    "move a team": lambda by, team, _: structure.move_team(by, team, Department(slug="other")),
    "delete a team": lambda by, team, _: structure.delete_team(by, team),
    "move a project": lambda by, team, project: structure.move_project(by, project, team),
    "change a project": lambda by, team, project: structure.change_project(by, project, {"egress": "none at all"}),
    "set a guard": lambda by, team, project: structure.set_guard(by, project, "none"),
    "archive a project": lambda by, team, project: structure.archive_project(by, project),
    "unarchive a project": lambda by, team, project: structure.unarchive_project(by, project),
    "add a member": lambda by, team, _: members.add(by, team, "nobody", "none"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_lead_is_refused_what_operators_do(team, project, write):
    lead, known = person(team, "lead"), AuditEntry.objects.count()
    with pytest.raises(Forbidden):
        write(lead, team, project)
    assert AuditEntry.objects.count() == known


def test_a_name_is_nobody_who_may_write(team, project):
    with pytest.raises(Forbidden):
        services.create_department("system", "cells", "Cells")  # type: ignore[arg-type]


def test_the_portal_itself_may_do_what_operators_may(team):
    assert services.create_department(SYSTEM, "cells", "Cells").slug == "cells"
    assert AuditEntry.objects.latest("pk").actor == "system"
