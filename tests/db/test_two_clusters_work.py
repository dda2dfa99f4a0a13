"""Targets, applied objects, requests and recovery with two clusters: each is handled in its own cluster."""

from dataclasses import replace
from typing import Any

import pytest

from allocations import tasks  # noqa: F401 (has the controllers)
from allocations.cluster import names
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterUnavailable
from allocations.cluster.kinds import KINDS
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.objects import Ref
from allocations.lifecycle import spec_of_row
from allocations.management.commands.watch import enqueue_everything
from allocations.models import Allocation, AppliedObject
from allocations.projects import archive
from allocations.reconcile import etcd_monitor
from allocations.reconcile.engine import applied
from allocations.reconcile.mirror_writer import record_list
from allocations.reconcile.platform import desired_manifests
from allocations.reconcile.recovery import reconcile_adoption
from allocations.requests import details, services
from allocations.requests.preview import preview_request
from portal.clusters import registry
from portal.clusters.models import Cluster
from portal.core.errors import Invalid
from portal.core.models import WorkItem
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.tenants.project_options import ProjectOptions
from portal.workqueue import controllers, targets
from portal.workqueue import queue as workqueue
from quotas.catalog import services as catalog
from quotas.catalog.models import Offering
from quotas.limits import services as limits
from tests.support.clusters import LOCAL
from tests.support.observed import T0, at, quotas_listed
from tests.support.two_clusters import BOTH, FAR, NAMESPACE, Twin, due, mirrored

pytestmark = pytest.mark.django_db


def test_what_was_applied_is_known_for_each(twins: dict[str, Twin]) -> None:
    ref = Ref("ResourceClaim", NAMESPACE, "train")
    for cluster, twin in twins.items():
        target, seen_as = targets.allocation(cluster, twin.row.pk), {"uid": cluster, "resource_version": 9}
        AppliedObject.objects.create(cluster_id=cluster, **ref._asdict(), target=target, **seen_as, applied_at=T0)
    record_list(FAR, KINDS["ResourceClaim"], [], 30, at(0))
    assert due() == {f"far/allocation:{twins[FAR].row.pk}"}
    applied.forget(FAR, [ref])
    assert list(AppliedObject.objects.values_list("cluster", "uid")) == [(LOCAL, LOCAL)]
    shown = {cluster: details.by_id([twin.row])[twin.row.pk].objects for cluster, twin in twins.items()}
    assert shown == {LOCAL: (tuple(ref),), FAR: ()}


def test_after_a_start_a_watcher_has_its_own_cluster_looked_at(twins: dict[str, Twin]) -> None:
    enqueue_everything(FAR)
    only = {f"far/{kind}" for kind in ("platform", "inventory", "adoption", "project:vision-far")}
    assert due() == {*only, f"far/allocation:{twins[FAR].row.pk}"}


def test_what_a_flavor_is_given_concerns_its_cluster_and_a_team_concerns_all(
    team: Team, twins: dict[str, Twin]
) -> None:
    flavor = twins[FAR].offering("l40s/whole").flavor
    catalog.configure_flavor(SYSTEM, flavor, {"title": "L40S"})
    assert due() == {"far/platform", "far/inventory", "far/project:vision-far"}
    WorkItem.objects.all().delete()
    limits.set_limit(SYSTEM, team, flavor.pools.get(), 3)
    assert due() == {"far/platform", "far/project:vision-far"}
    WorkItem.objects.all().delete()
    tenants.create_team(SYSTEM, team.department, "speech", "Speech")
    assert due() == {"far/platform", "local/platform"}


def test_service_accounts_of_a_clusters_own_projects_have_the_priority_level_of_tenants(
    team: Team, twins: dict[str, Twin]
) -> None:
    tenants.create_project(SYSTEM, team, "closed", "Closed", ProjectOptions(cluster=FAR))
    Project.objects.filter(slug="closed").update(archived_at=T0)
    mirrored(FAR, "Namespace", "still-there")
    rule = flow_rules(FAR)["gpu-portal-projects"]
    groups = [subject["group"]["name"] for subject in rule["subjects"]]
    assert groups == [f"system:serviceaccounts:{name}" for name in ("still-there", NAMESPACE)]


def test_a_team_has_a_priority_level_in_each_cluster_with_a_project_of_its_own(
    team: Team, twins: dict[str, Twin]
) -> None:
    tenants.create_project(SYSTEM, team, "closed", "Closed", ProjectOptions(cluster=FAR))
    Project.objects.filter(slug="closed").update(archived_at=T0)
    name = f"gpu-portal-team-{team.slug}"
    levels = [one for one in desired_manifests(FAR) if one["kind"] == "PriorityLevelConfiguration"]
    assert [one["metadata"]["name"] for one in levels] == [name]
    assert [one["namespaces"] for one in flow_rules(FAR)[name]["resourceRules"]] == [[NAMESPACE]]


def flow_rules(cluster: str) -> dict[str, Any]:
    """Return the only rule of each FlowSchema of the cluster, by name."""
    flows = [manifest for manifest in desired_manifests(cluster) if manifest["kind"] == "FlowSchema"]
    return {flow["metadata"]["name"]: flow["spec"]["rules"][0] for flow in flows}


def test_a_cluster_without_credentials_here_waits_and_the_other_goes_on(twins: dict[str, Twin]) -> None:
    with pytest.raises(ClusterUnavailable, match="no credentials for cluster far"):
        connect(FAR)
    workqueue.enqueue(targets.platform(FAR), targets.adoption(LOCAL))
    for cluster in BOTH:
        for target in (targets.platform(FAR), targets.adoption(LOCAL)):
            if targets.parse(target).cluster == cluster:
                assert controllers.process(target)
    (waits,) = WorkItem.objects.all()
    assert (waits.target, waits.attempts) == ("far/platform", 1)
    assert "no credentials" in waits.error


def test_an_offering_of_another_cluster_is_refused_and_never_proposed(member: User, twins: dict[str, Twin]) -> None:
    wish = AllocationRequest(project="vision-train", offering=twins[FAR].offering("l40s/whole").key)
    with pytest.raises(Invalid, match="far"):
        services.request(member, wish)
    many = replace(wish, offering="h100/whole", count=3)
    proposed = {one.offering for one in preview_request(member, many).alternatives}
    assert proposed
    assert proposed <= set(Offering.objects.filter(flavor__cluster=LOCAL).values_list("key", flat=True))


def test_a_lost_row_is_made_again_in_the_project_of_its_leases_cluster(twins: dict[str, Twin]) -> None:
    row = spec_of_row.rows().get(pk=twins[FAR].row.pk)
    record = spec_of_row.resolved_spec(row).lease_record.to_text()
    row.transitions.all().delete()
    Allocation.objects.filter(pk=row.pk).delete()
    for cluster in BOTH:
        mirrored(cluster, "Workload", names.lease("train"), allocation="train", record=record)
    quotas_listed(7, cluster=FAR)
    reconcile_adoption(LOCAL)
    assert not Allocation.objects.filter(pk=row.pk).exists()
    reconcile_adoption(FAR)
    assert Allocation.objects.get(pk=row.pk).project == twins[FAR].project


def test_what_keeps_a_namespace_is_told_of_the_project_of_its_cluster(twins: dict[str, Twin]) -> None:
    for cluster, twin in twins.items():
        Project.objects.filter(pk=twin.project.pk).update(archived_at=T0)
        mirrored(cluster, "Namespace", NAMESPACE, deleting=True, remaining=[f"of {cluster}"])
    told = archive.remaining(Project.objects.all())
    assert told == {"vision-train": ["of local"], "vision-far": ["of far"]}


def test_each_has_an_etcd_of_its_own(twins: dict[str, Twin]) -> None:
    etcd_monitor.record(LOCAL, 10)
    etcd_monitor.record(FAR, 20)
    assert [etcd_monitor.current(cluster).size_bytes for cluster in BOTH] == [10, 20]


def test_the_cluster_of_the_environment_is_registered_once_and_follows_it(db: None, settings: Any) -> None:
    registry.register()
    settings.KUBERNETES_PUBLIC_URL = "https://kubernetes.example.org"
    assert registry.register() == LOCAL
    assert list(Cluster.objects.values_list("slug", "server")) == [(LOCAL, "https://kubernetes.example.org")]
