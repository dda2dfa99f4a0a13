"""The metrics of leases for Prometheus, and that every alert uses metrics that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from allocations.cluster import names
from allocations.domain.phases import Phase
from allocations.lifecycle.lease_excess import HolderKind
from allocations.models import Allocation, LeaseExcess, MirrorObject, WatchState
from allocations.reconcile import etcd_monitor
from portal.core import clock, heartbeat
from quotas.metering import clock_skew
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.pages import in_phase, requested
from tests.support.people import person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
RULES = MONITORING / "rules.yaml"
OURS = re.compile(r"gpu_portal_\w+")


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.METRICS_TOKEN = "scrape-me"


def samples() -> list[Sample]:
    text = Client().get("/metrics", headers={"Authorization": "Bearer scrape-me"}).content.decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def by_holder(metric: str) -> dict[str, float]:
    """Return the usage and reservation of each holder."""
    return {one.labels["holder"]: one.value for one in samples() if one.name == metric and one.value}


def excess(kind: HolderKind, holder: str, **moments: Any) -> None:
    what = {"name": "train", "namespace": "vision-train", "resource": "nvidia.com/gpu", "used": 2, "reserved": 1}
    whose = {"cluster_id": LOCAL, "holder_kind": kind.value, "holder": holder}
    LeaseExcess.objects.create(**whose, seen_at=clock.now(), **what, **moments)


@pytest.fixture
def excesses() -> None:
    """Create one excess that is only seen, and two that were confirmed, one of which continues."""
    now = clock.now()
    excess(HolderKind.POD, "only seen")
    excess(HolderKind.JOB, "over", confirmed_at=now, over_at=now)
    excess(HolderKind.JOB, "goes on", confirmed_at=now)


@pytest.mark.usefixtures("excesses")
def test_use_beyond_a_lease_is_told_once_it_is_confirmed_and_until_it_is_over() -> None:
    assert by_holder("gpu_portal_over_lease") == {"job": 1}


@pytest.mark.usefixtures("excesses")
def test_how_often_it_was_confirmed_counts_what_is_over_too() -> None:
    assert by_holder("gpu_portal_over_lease_confirmed_total") == {"job": 2}


def test_an_allocation_that_is_held_and_not_charged_is_told(team, project) -> None:
    fleet(team)
    row = allocate(person(team), project)
    assert by_holder("gpu_portal_unbilled") == {}
    slices = {"slices": {row.name: {"nvidia.com/gpu": 1}}, "shown": True}
    quota = {"kind": "ResourceQuota", "namespace": project.namespace, "name": names.hold_slot(row.number)}
    seen = {"uid": "quota", "resource_version": 7, "facts": slices, "seen_at": clock.now()}
    MirrorObject.objects.create(cluster_id=LOCAL, **quota, **seen)
    assert by_holder("gpu_portal_unbilled") == {"allocation": 1}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> dict[str, set[str]]:
    """Return the metrics that each panel of the dashboards, and each of their variables, asks for."""
    boards = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(MONITORING.glob("dashboards/*.json"))]
    asked = {panel["title"]: str(panel["targets"]) for board in boards for panel in board["panels"]}
    asked |= {each["name"]: each["query"] for board in boards for each in board["templating"]["list"]}
    return {name: set(OURS.findall(text)) for name, text in asked.items() if name != "datasource"}


def test_every_alert_and_panel_asks_for_metrics_that_the_portal_exports(team, project) -> None:
    fleet(team)
    in_phase(requested(person(team), project), Phase.QUEUED)
    etcd_monitor.record(LOCAL, 1)
    clock_skew.record(LOCAL, 0, 0.05)
    heartbeat.beat("worker")
    WatchState.objects.create(cluster_id=LOCAL, kind="Workload", synced_at=clock.now())
    used(hour(0), None)
    Allocation.objects.update(held_at=clock.now())
    exported = {sample.name for sample in samples()}
    asked = {alert["alert"]: set(OURS.findall(alert["expr"])) for alert in alerts()} | panels()
    assert all(asked.values())
    assert {name: metrics - exported for name, metrics in asked.items() if metrics - exported} == {}


def test_every_alert_says_in_a_sentence_what_is_wrong() -> None:
    assert [alert["alert"] for alert in alerts() if not alert["annotations"].get("summary", "").endswith(".")] == []
