"""What the portal changes in objects, by the two ways: the API server's own MutatingAdmissionPolicies, and the webhook.

Each object is created in a dry run where the policies act. It is given to the webhook as the API server would give it,
and the result of both ways must be the same. Then the webhook stands in the API server's way itself: beside the
policies, killed, slow, and with a certificate that has expired.
"""

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from deploy.local.runner import Local
from tests.support import sizes
from tests.support.cluster import mutating_webhook
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.guarded import DEFAULTS, Guarded, guarded, pod
from tests.support.cluster.manifests import Entry, build
from tests.support.cluster.mutating_webhook import Webhook
from tests.support.cluster.pod_shapes import CPU, GIB, L40S, shape
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
GPU, SHARE = "nvidia.com/gpu", {"cpu": str(CPU), "memory": f"{GIB}Gi"}
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
QUEUED = {"kueue.x-k8s.io/queue-name": "gpu"}
ONE_GPU = {kind: {GPU: "1"} for kind in ("requests", "limits")}
SUSPENDED = {"suspend": True}
SHAPES = sizes.size(30, 500)


def held(name: str = "held", **notes: str) -> Object:
    annotations = {f"gpu-portal.io/{key}": note for key, note in notes.items()}
    return {"labels": {"gpu-portal.io/allocation": name}, "annotations": annotations}


CASES: dict[str, Entry] = {
    "a pod without GPUs": {},
    "a pod of an allocation by count": {"pod": held()},
    "a pod that narrows its count": {"pod": {**held(containers="second", slices="2"), "second": {}}},
    "a pod that asks for its count": {"pod": {**held(), "container": {"resources": ONE_GPU}}},
    "a pod of time-slices": {"pod": held("shares")},
    "a pod of an allocation by claim": {"pod": held("claimed")},
    "a pod of some slices of a claim": {
        "pod": {**held("claimed", containers="main, second", slices="1, 0"), "second": {}}
    },
    "a pod of one of several claims": {"pod": held("spread", slices="1")},
    "a numbered pod": {
        "pod": {
            "labels": {"gpu-portal.io/allocation": "spread", "apps.kubernetes.io/pod-index": "1"},
            "annotations": {"gpu-portal.io/slices": "by-index"},
        }
    },
    "a pod with its own node selector and tolerations": {
        "pod": {
            **held(),
            "spec": {
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "tolerations": [{"key": "example.com/gpu-pool", "operator": "Exists"}],
            },
        }
    },
    "a pod that ends at once": {"pod": {**held(), "spec": {"terminationGracePeriodSeconds": 0}}},
    "a queued Job": {"job": {"labels": QUEUED, "spec": SUSPENDED, "template": {"container": {"resources": ONE_GPU}}}},
    "a queued Job with a container beside": {
        "job": {
            "labels": QUEUED,
            "spec": {**SUSPENDED, "podReplacementPolicy": "TerminatingOrFailed"},
            "template": {"spec": {"nodeSelector": L40S}, "container": {"resources": ONE_GPU}, "second": {}},
        }
    },
    "a Job without a queue": {"job": {"spec": SUSPENDED}},
    "a Deployment": {"workload": "Deployment"},
    "a Deployment that keeps one revision": {"workload": "Deployment", "spec": {"revisionHistoryLimit": 1}},
    "a StatefulSet": {"workload": "StatefulSet", "pod": held()},
    "a Job's pod on GPUs": {"by": JOB_CONTROLLER, "pod": {"container": {"resources": ONE_GPU}, "second": {}}},
    "a Job's pod on GPUs that ends at once": {
        "by": JOB_CONTROLLER,
        "pod": {"spec": {"terminationGracePeriodSeconds": 0}, "container": {"resources": ONE_GPU}},
    },
    "a Job's pod without GPUs": {"by": JOB_CONTROLLER, "pod": {"container": {"env": [{"name": "A", "value": "b"}]}}},
}
UNCHANGED = ("a pod without GPUs", "a Job without a queue", "a Deployment that keeps one revision")


@pytest.fixture(scope="module")
def place(local: Local) -> Iterator[Guarded]:
    """Yield a namespace with allocations of every kind, and beside it a plain one that is not managed."""
    with guarded(local.home) as place:
        by_count = {"mode": "device-plugin", "resource": GPU, "count": 3, "share": SHARE, "nodeSelector": L40S}
        by_claim = {"mode": "dra", "resource": "gpu.nvidia.com", "count": 2, "share": SHARE}
        own = {"priorityClassName": place.hold_class, "tolerations": [{"key": GPU, "operator": "Exists"}]}
        place.write(
            {
                "gpuTaintKeys": ["example.com/gpu-pool"],
                "allocations": {
                    "held": by_count | own,
                    "shares": by_count | own | {"resource": f"{GPU}.shared", "shared": True},
                    "claimed": by_claim | own | {"claim": "claimed"},
                    "spread": by_claim | own | {"claims": ["spread.0", "spread.1"]},
                },
                "flavors": {"l40s": {"nodeLabels": L40S, "resources": {GPU: SHARE}}},
                "jobFlavors": {"l40s": {"nodeLabels": L40S, "resources": {GPU: {"perNode": 4}}}},
            }
        )
        beside, limits = plain(place), {"limits": [{"type": "Container", "defaultRequest": DEFAULTS}]}
        place.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": beside}})
        defaults = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"}, "spec": limits}
        place.admin.apply(defaults, beside)
        eventually(lambda: place.admin.find("serviceaccount", "default", beside))
        yield place
        place.admin.delete("namespace", beside)


@pytest.fixture(scope="module")
def webhook(local: Local, admin: ApiClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    for manifest in mutating_webhook.roles():
        admin.apply(manifest)
    with mutating_webhook.running(local.home, tmp_path_factory.mktemp("webhook")) as running:
        yield running


def manifest(name: str) -> Object:
    case = CASES[name]
    built = build(case, "mutated")
    built["spec"] |= case.get("spec", {})
    return built


def plain(place: Guarded) -> str:
    """Return the namespace beside it that is not managed."""
    return f"{place.namespace}-plain"


def by_policies(place: Guarded, local: Local, name: str) -> Object:
    """Return what the API server would store, where its own policies act."""
    by = CASES[name].get("by")
    client = ApiClient(local.home, acting_as=by) if by else place.tenant
    return client.create(manifest(name), place.namespace, dry_run=True).granted


def by_webhook(place: Guarded, webhook: Webhook, kubectl: Kubectl, body: Object, by: str) -> Object:
    """Return what the API server would store with the webhook's patch, and no policy.

    The API server completes it in the plain namespace before, as it does before it asks the webhook, and after.
    """
    complete = _sendable(place.admin.create(body, plain(place), dry_run=True).granted)
    if patch := webhook.patch(complete, place.namespace, by):
        arguments = ("patch", "--local", "--filename=-", "--type=json", f"--patch={patch}", "--output=json")
        complete = json.loads(kubectl(*arguments, stdin=json.dumps(complete)))
    return place.admin.create(_sendable(complete), plain(place), dry_run=True).granted


def _sendable(body: Object) -> Object:
    """Return an object of a dry run without what the API server alone writes, so that it can be created."""
    metadata = {key: body["metadata"][key] for key in ("name", "labels", "annotations") if key in body["metadata"]}
    spec = _without_selector(body["spec"]) if body["kind"] == "Job" else body["spec"]
    metadata["labels"] = _without_generated(metadata.get("labels", {}))
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "spec": spec}


def _without_selector(spec: Object) -> Object:
    """Return a Job's spec without the selector and the labels that the API server generates for it."""
    template, rest = spec["template"], {key: value for key, value in spec.items() if key != "selector"}
    metadata = template.get("metadata") or {}
    labels = _without_generated(metadata.get("labels") or {})
    return {**rest, "template": {**template, "metadata": {**metadata, "labels": labels}}}


def _without_generated(labels: Object) -> Object:
    return {key: value for key, value in labels.items() if not key.endswith(("controller-uid", "job-name"))}


def _comparable(body: Object) -> Object:
    """Return the spec with a fixed name of the volume of the service account's token, which else is drawn."""
    text = json.dumps(_sendable(body)["spec"])
    spec: Object = json.loads(re.sub(r"kube-api-access-\w{5}", "kube-api-access", text))
    return spec


def user(place: Guarded, name: str) -> str:
    return CASES[name].get("by") or f"system:serviceaccount:gpu-portal-people:person-{place.namespace}"


@pytest.mark.parametrize("name", CASES)
def test_both_ways_change_the_same(name: str, place: Guarded, webhook: Webhook, local: Local, kubectl: Kubectl) -> None:
    of_policies = _comparable(by_policies(place, local, name))
    of_webhook = _comparable(by_webhook(place, webhook, kubectl, manifest(name), user(place, name)))
    assert of_webhook == of_policies
    untouched = _comparable(place.admin.create(manifest(name), plain(place), dry_run=True).granted)
    assert (untouched != of_policies) == (name not in UNCHANGED)


def test_both_ways_change_random_pods_the_same(
    place: Guarded, webhook: Webhook, kubectl: Kubectl, pytestconfig: pytest.Config
) -> None:
    rng, compared = Random(int(pytestconfig.getoption("seed"))), 0
    for _ in range(SHAPES):
        body = pod(**shape(rng), labels={"gpu-portal.io/allocation": "held"})
        answer = place.dry_run(body)
        if answer.status == 201:  # else it is refused by other policies, whichever way it was changed
            compared += 1
            by = f"system:serviceaccount:gpu-portal-people:person-{place.namespace}"
            assert _comparable(by_webhook(place, webhook, kubectl, body, by)) == _comparable(answer.body), body
    assert compared > SHAPES / 20


def test_a_pod_of_an_allocation_is_refused_where_no_gpu_project_is(place: Guarded, webhook: Webhook) -> None:
    bare, body = f"{place.namespace}-bare", manifest("a pod of time-slices")
    labels = {"gpu-portal.io/managed": "true"}
    place.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bare, "labels": labels}})
    try:
        eventually(lambda: "no params found" in place.admin.create(body, bare, dry_run=True).message)
        complete = _sendable(place.admin.create(body, plain(place), dry_run=True).granted)
        with pytest.raises(AssertionError, match="no params found"):
            webhook.patch(complete, bare, "system:admin")
    finally:
        place.admin.delete("namespace", bare)


def test_both_may_act_and_change_what_one_does(place: Guarded, local: Local, tmp_path: Path) -> None:
    name = f"test-both-{place.namespace}"
    alone = {case: _comparable(by_policies(place, local, case)) for case in CASES}
    with mutating_webhook.running(local.home, tmp_path) as webhook:
        place.admin.apply(webhook.configuration(name, place.namespace))
        try:
            webhook.process.send_signal(signal.SIGSTOP)
            eventually(lambda: "failed calling webhook" in place.dry_run(manifest("a pod of time-slices")).message)
            webhook.process.send_signal(signal.SIGCONT)  # now it is known to be asked
            eventually(lambda: place.dry_run(manifest("a pod of time-slices")).status == 201)
            assert {case: _comparable(by_policies(place, local, case)) for case in CASES} == alone
        finally:
            place.admin.delete("mutatingwebhookconfiguration", name)


def stop(webhook: Webhook) -> None:
    webhook.process.send_signal(signal.SIGSTOP)


def kill(webhook: Webhook) -> None:
    webhook.process.kill()


@pytest.fixture
def in_the_way(place: Guarded, local: Local, tmp_path: Path) -> Iterator[tuple[Webhook, str]]:
    """Yield a webhook that the API server asks for the guarded namespace, beside its own policies."""
    name = f"test-{place.namespace}"
    with mutating_webhook.running(local.home, tmp_path) as webhook:
        place.admin.apply(webhook.configuration(name, place.namespace))
        try:
            yield webhook, name
        finally:
            place.admin.delete("mutatingwebhookconfiguration", name)
    eventually(lambda: place.dry_run(manifest("a pod without GPUs")).status == 201)


@pytest.mark.parametrize("outage", [stop, kill])
def test_it_fails_closed_where_it_is_asked_and_is_not_noticed_elsewhere(
    outage: Callable[[Webhook], None], place: Guarded, in_the_way: tuple[Webhook, str]
) -> None:
    outage(in_the_way[0])
    eventually(lambda: "failed calling webhook" in place.dry_run(manifest("a pod of time-slices")).message)
    assert place.admin.create(manifest("a pod without GPUs"), plain(place), dry_run=True).status == 201


def test_an_expired_certificate_fails_closed_and_a_renewed_one_needs_no_restart(
    place: Guarded, local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, body = f"test-expired-{place.namespace}", manifest("a pod of time-slices")
    with mutating_webhook.running(local.home, tmp_path) as webhook:
        good = {suffix: webhook.certificate.with_suffix(suffix).read_bytes() for suffix in (".crt", ".key")}
        mutating_webhook.write_expired(local.home, webhook.certificate, monkeypatch)
        place.admin.apply(webhook.configuration(name, place.namespace))
        try:
            eventually(lambda: "certificate has expired" in place.dry_run(body).message)
            assert place.admin.create(manifest("a pod without GPUs"), plain(place), dry_run=True).status == 201
            for suffix, content in good.items():
                webhook.certificate.with_suffix(suffix).write_bytes(content)
            eventually(lambda: place.dry_run(body).status == 201)
        finally:
            place.admin.delete("mutatingwebhookconfiguration", name)
