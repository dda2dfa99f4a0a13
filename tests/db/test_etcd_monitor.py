"""What the portal reports about etcd: on /readyz, at /metrics and on its pages."""

from datetime import timedelta

import pytest
from django.test import Client

from allocations.cluster.errors import ClusterStoreFull
from allocations.domain.etcd_usage import STORE_FULL, Level
from allocations.reconcile import etcd_monitor
from portal.api.http.problems import as_problem
from portal.core import clock, heartbeat
from portal.workqueue import queue as workqueue
from tests.support.clusters import LOCAL
from tests.support.pages import browser_of, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
GIB = 1024**3


@pytest.fixture
def working():
    heartbeat.beat("worker")
    heartbeat.beat("watcher")


def find_full(target):
    def look(_):
        raise ClusterStoreFull(f"500: {STORE_FULL}")

    workqueue.enqueue(target)
    workqueue.process(target, look)


def scraped():
    return Client().get("/metrics", headers={"Authorization": "Bearer scrape-me"}).content.decode()


def succeed(target):
    with clock.frozen(clock.now() + timedelta(minutes=1)):
        assert workqueue.process(target, lambda _: None)


def test_readyz_is_degraded_when_etcd_is_nearly_full(working):
    etcd_monitor.record(LOCAL, int(1.5 * GIB))
    assert Client().get("/readyz").json()["status"] == "ready"
    etcd_monitor.record(LOCAL, int(1.8 * GIB))
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["cluster_store"] == "1.8 GiB of 2.0 GiB (90%)"


def test_readyz_is_degraded_while_writes_find_no_space_and_ready_once_one_succeeds(working):
    find_full("local/platform")
    answer = Client().get("/readyz").json()
    assert answer["status"] == "degraded"
    assert answer["checks"]["cluster_store"].startswith("full, every write in the cluster is refused")
    succeed("local/platform")
    assert Client().get("/readyz").json()["status"] == "ready"


def test_an_old_size_is_not_told(working, settings):
    etcd_monitor.record(LOCAL, int(1.9 * GIB))
    with clock.frozen(clock.now() + timedelta(seconds=6 * settings.STORE_READ_S)):
        assert etcd_monitor.current(LOCAL).size_bytes is None
    assert etcd_monitor.current(LOCAL).level is Level.CRITICAL


def test_metrics_tell_size_quota_refused_writes_and_what_projects_may_store(settings, project):
    settings.METRICS_TOKEN, settings.ETCD_QUOTA_BYTES = "scrape-me", 4 * GIB
    assert "gpu_portal_cluster_store_bytes" not in scraped()
    etcd_monitor.record(LOCAL, 26_042_368)
    find_full("local/platform")
    told = scraped()
    assert 'gpu_portal_cluster_store_bytes{cluster="local"} 2.6042368e+07' in told
    assert 'gpu_portal_cluster_store_quota_bytes{cluster="local"} 4.294967296e+09' in told
    assert 'gpu_portal_cluster_store_refused_writes{cluster="local"} 1.0' in told
    assert "gpu_portal_cluster_store_projects_bytes 2.883584e+08" in told


def test_every_page_says_that_the_cluster_takes_no_change(team):
    browser = browser_of(person(team))
    assert "etcd" not in text(browser.get("/"))
    find_full("local/platform")
    assert "its store (etcd) is full" in text(browser.get("/"))


def test_who_asks_over_rest_is_told_why_it_cannot_be_done_now():
    problem = as_problem(ClusterStoreFull(f"500: {STORE_FULL}"))
    assert (problem.status, problem.reason) == (503, "cluster_store_full")
    assert "Tell an operator" in problem.hint
