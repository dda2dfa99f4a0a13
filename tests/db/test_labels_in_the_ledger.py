"""Labels of requests and Jobs in the ledger, its roll-ups and costs."""

from fractions import Fraction

import pytest

from allocations.reconcile.mirror_writer import record_observations
from demo import prices
from quotas.costs import filter_grammar, ledger, rollups
from quotas.costs.rating import Window
from quotas.metering import overtime
from quotas.metering.models import AccountHour, UsageInterval
from tests.support import cost_answers
from tests.support.capacity import GPUS, hold_gpu, record
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.job_observations import pod, seen, workload
from tests.support.observed import hold
from tests.support.quotas import cluster, hour, used

pytestmark = pytest.mark.django_db
DAY = Window(hour(0), hour(24))


@pytest.fixture
def usage(db):
    cluster()
    prices.price()
    used(hour(0), hour(2), labels={"app": "train", "example.com/stage": "dev"})
    used(hour(1), hour(1.5), labels={"app": "train"})
    used(hour(1), hour(2), labels={"app": "serve"}, team="language")
    used(hour(0), hour(4))


def hours(keys, where=""):
    found = cost_answers.costs(DAY, keys, where=filter_grammar.parse(where), now=hour(10))
    return {row.name: float(row.gpu_hours) for row in found.rows}


@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_costs_are_grouped_and_filtered_by_labels(usage, is_rolled_up):
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(10))
        assert AccountHour.objects.filter(labels__app="train").exists()
    assert hours(["label:app"]) == {"train": 2.5, "serve": 1, "__unallocated__": 4}
    assert hours(["team", "label:example.com/stage"]) == {
        "vision/dev": 2,
        "vision/__unallocated__": 4.5,
        "language/__unallocated__": 1,
    }
    assert hours(["team"], 'label[app]:"train","serve"') == {"vision": 2.5, "language": 1}
    assert hours(["team"], 'label[app]!:"train"') == {"vision": 4, "language": 1}
    assert hours(["team"], 'label[example.com/stage]<~:"d"') == {"vision": 2}
    assert hours(["label:app"], 'label[app]:"__unallocated__"') == {"__unallocated__": 4}


def test_whole_hours_by_label_are_read_from_the_roll_ups_and_are_those_of_the_ledger(team, project):
    """Three slices of one GPU, together more than it: the last to come is charged what is left."""
    fleet(team)
    record(GPUS, 0)
    for number, (app, share) in enumerate([("train", "4/7"), ("serve", "3/7"), ("train", "1/2")]):
        values = {"gpu_share": Fraction(share), "labels": {"app": app}, "offering": "h100/mig-x", "kind": "mig"}
        hold_gpu(f"gpu-0-mig-{number}", number / 4, 3, **values)
    hold_gpu("gpu-1", 0.5, 2.5)
    edges = [hour(0), hour(1), hour(3)]
    from_ledger = usages(edges)
    assert {names for _, names in from_ledger} == {("train",), ("serve",), ("__unallocated__",)}
    rollups.roll_up(LOCAL, hour(0), hour(3))
    UsageInterval.objects.all().delete()
    assert usages(edges) == from_ledger


def usages(edges):
    return {(one.window, one.names): one.usage for one in ledger.sums(edges, ["label:app"], {}, hour(3))}


def test_what_is_held_past_its_end_keeps_its_labels(db):
    cluster()
    row = used(hour(0), None, labels={"app": "train"})
    assert overtime.record(row.holder_id, hour(1), {"kind": "test"}, charged=True) == 1
    assert {each.labels["app"] for each in UsageInterval.objects.all()} == {"train"}


def test_a_hold_has_the_labels_of_its_request(team, member, project):
    fleet(team)
    row = allocate(member, project, "h100/whole", labels={"app": "train"})
    record_observations(LOCAL, hold(row))
    assert UsageInterval.objects.get(holder_id=row.pk).labels == {"app": "train"}


def job(labels, **values):
    body = workload(**values)
    template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    body["spec"]["podSets"] = [{"name": "main", "count": 1, "template": template}]
    return body


def test_a_job_has_the_labels_of_its_pods(team, project):
    fleet(team)
    own = {"app": "train", "example.com/stage": "dev"}
    added = {
        "batch.kubernetes.io/job-name": "train",
        "job-name": "train",
        "controller-uid": "u",
        "gpu-portal.io/x": "y",
    }
    record_observations(LOCAL, [seen(job({**own, **added}), 0)])
    record_observations(LOCAL, [seen(pod(), 2)])
    assert [(row.unused, row.labels) for row in UsageInterval.objects.order_by("start")] == [(True, own), (False, own)]


def test_a_job_has_as_many_labels_as_a_request_may_have(team, project):
    fleet(team)
    record_observations(LOCAL, [seen(job({f"key-{n:02}": "x" for n in range(20)}), 0)])
    assert list(UsageInterval.objects.get().labels) == [f"key-{n:02}" for n in range(16)]
