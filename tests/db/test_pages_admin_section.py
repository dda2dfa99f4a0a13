"""The section Admin: what operators decide there, and that nobody else does."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from django.conf import settings

from frontend import menu
from frontend.views.settings import NAMES
from portal.tenants.models import PlatformRole
from quotas.catalog.models import Flavor, Offering, Preset
from quotas.limits.models import QueuePolicy
from tests.support.fleet import fleet
from tests.support.pages import browser_of, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
PRESET = {"name": "Notebook", "count": "1", "hours": "8", "position": "0"}
PATHS = (
    *("/presets/new", "/limits/policies/teams/vision", "/limits/policies/departments/org"),
    *("/people/platform-role", "/flavors/h100/edit"),
)


@pytest.fixture(autouse=True)
def _fleet(team):
    fleet(team)


@pytest.fixture
def operator():
    return browser_of(person(platform_role=PlatformRole.OPERATOR))


def test_no_page_leads_to_djangos_admin():
    templates = Path(settings.BASE_DIR, "frontend", "templates")
    found = {str(one) for one in templates.rglob("*.html") if re.search(r"\badmin:", one.read_text(encoding="utf-8"))}
    assert found == set()


def test_auditors_see_every_page_of_the_section_and_operators_change(team):
    auditor = person(platform_role=PlatformRole.AUDITOR)
    names = [name for name, item in menu.items(auditor).items() if item.section == menu.ADMIN]
    assert [browser_of(auditor).get(f"/{name}").status_code for name in names] == [200] * len(names)
    assert browser_of(auditor).get("/presets/new").status_code == 403


@pytest.mark.parametrize("path", ["/presets", "/settings", *PATHS])
def test_people_of_teams_are_refused(team, path):
    assert browser_of(person(team, "lead")).get(path).status_code in {403, 404}


def test_a_proposal_is_accepted_with_one_button(operator):
    Flavor.objects.filter(name="h100").update(accepted=False)
    assert 'action="/flavors/h100/accept"' in text(operator.get("/flavors"))
    page = text(operator.post("/flavors/h100/accept", follow=True))
    assert "h100 is offered now" in page
    assert Flavor.objects.get(name="h100").accepted


def test_a_flavor_gets_a_title_and_quantities_as_kubernetes_writes_them(operator):
    values = {"title": "H100 80 GB", "group": "Training", "gpu_memory_mib": "192Gi"}
    answer = operator.post("/flavors/h100/edit", values)
    assert answer.status_code == 302, answer.context["form"].errors
    row = Flavor.objects.get(name="h100")
    assert (row.title, row.group, row.gpu_memory_mib) == ("H100 80 GB", "Training", 192 * 1024)


@pytest.fixture
def known() -> Flavor:
    """Return a flavor whose nodes have reported their capacity."""
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    return Flavor.objects.get(name="l40s")


def test_cpu_and_memory_of_a_gpu_are_written_as_kubernetes_does(operator, known):
    operator.post("/flavors/l40s/edit", {"cpu_millicores_per_gpu": "12500m", "memory_mib_per_gpu": "96Gi"})
    known.refresh_from_db()
    assert (known.cpu_millicores_per_gpu, known.memory_mib_per_gpu) == (12_500, 98_304)
    page = text(operator.get("/flavors/l40s/edit"))
    assert 'value="12500m"' in page
    assert 'value="96Gi"' in page
    operator.post("/flavors/l40s/edit", {"cpu_millicores_per_gpu": "", "memory_mib_per_gpu": "96Gi"})
    known.refresh_from_db()
    assert (known.cpu_millicores_per_gpu, known.memory_mib_per_gpu) == (None, 98_304)


@pytest.mark.parametrize(
    ("amount", "words"), [("16", "has 15190m of CPU for each"), ("0", "Give 10m"), ("many", "is no amount such as")]
)
def test_cpu_that_no_node_has_is_answered_beside_its_field(operator, known, amount, words):
    answer = operator.post("/flavors/l40s/edit", {"cpu_millicores_per_gpu": amount})
    assert answer.status_code == 400
    assert words in text(answer)
    known.refresh_from_db()
    assert known.cpu_millicores_per_gpu is None


def test_an_offering_is_hidden_and_shown_again(operator):
    for query, hidden in (("?hide=1", True), ("", False)):
        operator.post(f"/flavors/l40s/offerings{query}", {"offering": "l40s/whole"})
        assert Offering.objects.get(key="l40s/whole").hidden == hidden
    assert operator.post("/flavors/h100/offerings", {"offering": "l40s/whole"}).status_code == 404


def test_a_name_that_is_taken_is_said_at_its_field(operator):
    Flavor.objects.filter(name="h100").update(accepted=False)
    answer = operator.post("/flavors/h100/edit", {"name": "l40s"})
    assert answer.status_code == 400
    assert Flavor.objects.filter(name="h100").exists()


def test_a_preset_is_created_and_changed(operator):
    offering = Offering.objects.get(key="l40s/whole")
    assert operator.post("/presets/new", {**PRESET, "offering": offering.pk})["Location"] == "/presets"
    row = Preset.objects.get(name="Notebook")
    operator.post(f"/presets/{row.pk}/edit", {**PRESET, "offering": offering.pk, "hours": "4"})
    row.refresh_from_db()
    assert row.hours == 4
    assert "Notebook" in text(operator.get("/presets"))


def test_a_team_gets_a_weight_and_preemption_and_a_department_a_weight_alone(operator, team):
    values = {"weight": "20", "reclaim": "LowerPriority", "within": "LowerPriority"}
    assert operator.post("/limits/policies/teams/vision", values)["Location"] == "/limits#competing"
    row = QueuePolicy.objects.get(team=team)
    assert (row.weight, row.reclaim, row.within) == (Decimal(20), "LowerPriority", "LowerPriority")
    assert 'value="20"' in text(operator.get("/limits/policies/teams/vision"))
    page = operator.get(f"/limits/policies/departments/{team.department.slug}")
    assert list(page.context["form"].fields) == ["weight"]


def test_a_platform_role_is_given_and_the_last_operator_stays(operator, team):
    ada = person(team)
    operator.post("/people/platform-role", {"username": ada.username, "platform_role": "auditor"})
    ada.refresh_from_db()
    assert ada.platform_role == "auditor"
    last = operator.get("/people").context["user"]
    answer = operator.post("/people/platform-role", {"username": last.username, "platform_role": ""})
    assert answer.status_code == 400
    assert "only active operator" in text(answer)


def test_settings_are_those_of_the_docs_and_no_secret():
    words = Path(settings.BASE_DIR, "docs", "operate", "settings.md").read_text(encoding="utf-8")
    names = [name for of_group in NAMES.values() for name in of_group]
    assert [name for name in names if f"| `{name}` |" not in words] == []
    assert [name for name in names if re.search("SECRET|TOKEN$|KEY|PASSWORD|DATABASE|REDIS", name)] == []
