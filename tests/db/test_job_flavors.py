"""What the policies know of each flavor when a queued Job is created, and who is told which flavor it became."""

import pytest

from allocations.cluster.kinds import Observation
from allocations.domain.objects import Ref
from allocations.queues import jobs
from allocations.queues.jobs import State
from allocations.reconcile import job_flavors, mirror_writer
from portal.core import clock
from portal.core.models import WorkItem
from portal.tenants.models import Project, Team
from quotas.catalog.models import Flavor, Offering
from quotas.limits.selectors import limits_with_quota
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.queued import GPU, job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flavors(team: Team, other_team: Team) -> None:
    fleet(team)


def of(team: Team, name: str) -> dict[str, object]:
    offerings = Offering.objects.filter(flavor__accepted=True).select_related("flavor")
    pools = limits_with_quota().filter(team=team).values_list("pool_id", flat=True)
    return job_flavors.of_offerings(offerings, set(pools))[name]


def test_a_flavor_says_how_many_a_node_gives_and_whether_the_team_has_quota(team: Team, other_team: Team) -> None:
    Offering.objects.filter(key="l40s/whole").update(per_node=4)
    selector = Flavor.objects.get(name="l40s").node_selector
    assert of(team, "l40s") == {"nodeLabels": selector, "resources": {GPU: {"perNode": 4}}}
    assert of(other_team, "l40s")["resources"] == {GPU: {"perNode": 4, "hasQuota": False}}


@pytest.mark.parametrize(
    ("sharing", "decided", "given"), [("mps", None, 1), ("time-slicing", True, 1), ("mps", False, None)]
)
def test_where_the_device_plugin_refuses_more_than_one_a_container_is_given_one(
    team: Team, sharing: str, decided: bool | None, given: int | None
) -> None:
    Flavor.objects.filter(name="l40s").update(fail_requests_greater_than_one=decided)
    Offering.objects.filter(key="l40s/whole").update(kind="shared", sharing=sharing, isolation="none", per_node=0)
    assert of(team, "l40s")["resources"] == {GPU: {"perContainer": given} if given else {}}


def test_a_flavor_without_a_resource_for_jobs_names_what_to_hold_instead(team: Team) -> None:
    Offering.objects.filter(key="h100/whole").update(requests={"gpu-portal.io/h100": 1})
    Offering.objects.filter(flavor__name="h100").exclude(key="h100/whole").update(requests={"gpu-portal.io/h100": 1})
    found = of(team, "h100")
    assert "resources" not in found
    assert found["hold"] == "h100/whole"


def test_a_job_with_quota_for_some_of_its_pods_says_for_how_many(team: Team, project: Project) -> None:
    job(
        "part",
        project.namespace,
        cluster_queue="team-vision",
        usage={"l40s": {GPU: 16}},
        pods={"requested": 20, "admitted": 16},
        conditions={"QuotaReserved": {"status": "True", "reason": "QuotaReserved", "message": "", "at": ""}},
    )
    (found,) = jobs.read(jobs.rows(Project.objects.all()))
    assert found.state is State.ADMITTED
    assert "16 of its 20 pods" in found.message
    assert found.pods == {"requested": 20, "admitted": 16}


def test_whoever_gets_quota_is_told_once_which_flavor_it_became(project: Project) -> None:
    uid = job("train", project.namespace)
    row = jobs.rows(Project.objects.all()).get()

    def seen(revision: int, **facts: object) -> set[str]:
        WorkItem.objects.all().delete()
        observation = Observation(
            ref=Ref("Workload", project.namespace, row.name),
            uid=row.uid,
            resource_version=revision,
            at=clock.now(),
            live=True,
            facts={**row.facts, **facts},
        )
        mirror_writer.record_observations(LOCAL, [observation])
        return {target for target in WorkItem.objects.values_list("target", flat=True) if "/job:" in target}

    given = {"cluster_queue": "team-vision", "pods": {"requested": 2, "admitted": 2}}
    assert seen(2, usage={"l40s": {GPU: 2}}, **given) == {f"{LOCAL}/job:{uid}"}
    assert seen(3, usage={"l40s": {GPU: 1}}, **given) == set()
    assert seen(4, usage={"h100": {GPU: 2}}, **given) == {f"{LOCAL}/job:{uid}"}
