"""Requests of the hostile member to the API server: endless ones of each kind, from a random generator. Pure.

Names come from small ranges, so that requests meet objects of earlier ones without reading them.
"""

from collections.abc import Iterator
from random import Random

from tests.cluster.hostile_member import objects
from tests.cluster.hostile_member.calls import AttackContext, Call, Credentials, Object
from tests.cluster.random_tenant import changes
from tests.cluster.random_tenant import manifests as random_manifests
from tests.cluster.random_tenant.manifests import ALLOCATION, TOLERATION
from tests.support.cluster.manifests import QUEUE, merge

READABLE = ("events", "resourcequotas", "limitranges")
COUNTS = {
    "ConfigMap": 205,
    "Secret": 205,
    "Service": 105,
    "PersistentVolumeClaim": 55,
    "Deployment": 105,
    "StatefulSet": 55,
    "Job": 505,
    "Pod": 2005,
}
"""Slightly more of each kind than a project may have (docs/reference/guards.md)."""
FULL_TEXT = 24_000
FULL_DATA = 100_000
"""Bytes that make an object almost as large as all-objects.yaml allows; the second for ConfigMaps and Secrets."""
MARKS = ("a", "b", "c", "d", "e", "f", "g", objects.FOUR_BYTES)
TOO_LARGE = 1_000_000
KEEP = ("example.com/stay", "orphan", "foregroundDeletion")
CLUSTER_LISTS = ("/api/v1/pods", "/api/v1/secrets", "/api/v1/nodes", "/apis/apps/v1/deployments")


def cpu_and_memory(rng: Random, context: AttackContext) -> Iterator[Call]:
    """More CPU or memory than a slice's share, with the allocation's label and in queued Jobs."""
    number = 0
    while True:
        number += 1
        greedy: dict[str, dict[str, str]] = rng.choice(
            [
                {"requests": {"cpu": "50"}},
                {"requests": {"cpu": "46", "memory": "180Gi"}},
                {"limits": {"cpu": "50", "memory": "1Gi"}},
                {"requests": {"memory": "185Gi", "cpu": "1m"}},
                {"requests": {"cpu": "188", "memory": "1Gi"}},
            ]
        )
        if rng.random() < 0.7:
            labels = objects.label(rng, context)
            yield objects.create(
                "Pod", context, f"greedy-{number}", {"spec": objects.spec(greedy)}, labels, must_fail=True
            )
            continue
        gpus = {"nvidia.com/gpu": "1"}
        resources = {name: {**greedy.get(name, {}), **gpus} for name in ("limits", *greedy)}
        job = {"spec": {"template": {"spec": {**objects.spec(resources), "restartPolicy": "Never"}}}}
        yield objects.create("Job", context, f"greedy-{number}", job, {QUEUE: "gpu"}, must_fail=True)


def many_pods(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Tiny pods, most of them with an allocation's label, created and deleted repeatedly."""
    while True:
        name = f"many-{rng.randrange(COUNTS['Pod'])}"
        if rng.random() < 0.7:
            labels = {"app": "many", **(objects.label(rng, context) if rng.random() < 0.6 else {})}
            yield objects.create("Pod", context, name, {"spec": objects.tiny()}, labels)
        elif rng.random() < 0.98:
            yield objects.delete("Pod", context, name, gracePeriodSeconds=rng.choice([1, 5]))
        else:
            yield objects.delete_all("Pod", context, "app=many")


def many_replicas(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Deployments and StatefulSets with far more replicas than a project may have pods, scaled up and down."""
    while True:
        kind, number = rng.choice(["Deployment", "Deployment", "StatefulSet"]), rng.randrange(12)
        name, replicas = f"wide-{number}", rng.choice([0, 1, 50, 520, 2000, 100_000])
        if rng.random() < 0.15:
            yield objects.delete(kind, context, name, propagationPolicy=rng.choice(["Background", "Foreground"]))
        elif rng.random() < 0.5:
            yield objects.patch(kind, context, f"{name}/scale", {"spec": {"replicas": replicas}})
        else:
            labels = objects.label(rng, context) if rng.random() < 0.5 else {}
            yield objects.create(kind, context, name, objects.replicated(name, replicas, objects.tiny(), labels))


def too_large_objects(rng: Random, context: AttackContext) -> Iterator[Call]:
    """A megabyte in environment, data or annotations, at times in characters of four bytes; images nodes repeat."""
    number = 0
    while True:
        number += 1
        kind, name = rng.choice(list(objects.PATHS)), f"huge-{number}"
        size, mark = rng.choice([60_000, 300_000, TOO_LARGE]), rng.choice(MARKS)
        if kind in ("ConfigMap", "Secret"):
            body = objects.data(kind, max(size, 300_000), mark)
        elif kind in ("Service", "PersistentVolumeClaim"):
            body = objects.annotated(kind, name, objects.filler(size, mark))
        else:
            large = objects.tiny(objects.filler(size, mark))
            body = objects.running(kind, name, rng.choice([large, large, large, *objects.repeated()]))
        yield objects.create(kind, context, name, body, must_fail=True)


def full_objects(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Objects just below the maximum size, as many as allowed, each written repeatedly."""
    while True:
        # Those of which most bytes may be stored come most often.
        kind = rng.choices(list(COUNTS), [30, 30, 6, 4, 8, 5, 10, 12])[0]
        name, mark = f"full-{rng.randrange(COUNTS[kind])}", rng.choice(MARKS)
        if kind in ("ConfigMap", "Secret"):
            body = objects.data(kind, FULL_DATA, mark)
        elif kind in ("Service", "PersistentVolumeClaim"):
            body = objects.annotated(kind, name, objects.filler(FULL_TEXT, mark))
        else:
            body = objects.running(kind, name, objects.tiny(objects.filler(FULL_TEXT, mark)), replicas=0)
        yield objects.apply(kind, context, name, body)


def revisions(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Templates of Deployments and StatefulSets changed all the time, each change a revision of 24 KB."""
    number = 0
    while True:
        number += 1
        kind, name = rng.choice(["Deployment", "StatefulSet"]), f"often-{rng.randrange(20)}"
        spec = objects.tiny(f"{number} " + "r" * FULL_TEXT)
        body = merge(objects.replicated(name, rng.choice([0, 0, 0, 2]), spec), {"spec": {"revisionHistoryLimit": 1000}})
        yield objects.apply(kind, context, name, body)


def finalizers(rng: Random, context: AttackContext) -> Iterator[Call]:
    """The member's own finalizers on every kind, at creation and later."""
    number = 0
    while True:
        number += 1
        kind, stays = rng.choice(list(objects.PATHS)), {"metadata": {"finalizers": [rng.choice(KEEP)]}}
        if rng.random() < 0.6:
            name = f"stays-{number}"
            yield objects.create(kind, context, name, merge(objects.small(kind, name), stays), must_fail=True)
        else:
            yield objects.patch(kind, context, f"full-{rng.randrange(20)}", stays, must_fail=True)


def force_deletion(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Pods with slices, deleted with a grace period of 0; allowed for a pod without a node."""
    while True:
        name = f"forced-{rng.randrange(8)}"
        if rng.random() < 0.3:
            labels = {"app": "forced", ALLOCATION: context.allocations[-1]}
            yield objects.create("Pod", context, name, {"spec": objects.tiny()}, labels)
        elif rng.random() < 0.9:
            yield objects.delete("Pod", context, name, gracePeriodSeconds=0)
        else:
            yield objects.delete_all("Pod", context, "app=forced", gracePeriodSeconds=0)


def services(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Services of every type: exposed ones, ones with addresses of others, and plain ones created and deleted."""
    number = 0
    while True:
        number += 1
        name, small = f"service-{number % 120}", objects.small("Service", "")
        outside = rng.choice(
            [
                {"type": "NodePort"},
                {"type": "LoadBalancer"},
                {"externalIPs": ["192.0.2.7"]},
                {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
            ]
        )
        chosen = rng.random()
        if chosen < 0.5:
            yield objects.create("Service", context, f"open-{number}", merge(small, {"spec": outside}), must_fail=True)
        elif chosen < 0.7:
            yield objects.patch("Service", context, name, {"spec": outside}, must_fail=True)
        elif chosen < 0.85:
            yield objects.delete("Service", context, name)
        else:
            body: Object = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
            yield objects.create("Service", context, name, rng.choice([small, body]))


def token_secrets(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Secrets that a controller would fill with the token of a service account."""
    number = 0
    while True:
        number += 1
        account = {"kubernetes.io/service-account.name": rng.choice(["default", "builder"])}
        body = {"type": "kubernetes.io/service-account-token", "metadata": {"annotations": account}}
        yield objects.create("Secret", context, f"token-{number}", body, must_fail=True)


def added_tolerations(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Tolerations added to existing pods."""
    while True:
        name = f"tolerant-{rng.randrange(6)}"
        if rng.random() < 0.1:
            labels = objects.label(rng, context) if rng.random() < 0.5 else {}
            yield objects.create("Pod", context, name, {"spec": objects.tiny()}, labels)
        else:
            added = rng.choice([[TOLERATION], [{"operator": "Exists"}]])
            yield objects.patch("Pod", context, name, {"spec": {"tolerations": added}}, must_fail=True)


def odd_jobs(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Queued Jobs with unusual settings, changed and deleted in unusual ways."""
    while True:
        name, chosen = f"odd-{rng.randrange(COUNTS['Job'])}", rng.random()
        if chosen < 0.6:
            job = random_manifests.job(rng, context.namespace, name, objects.label(rng, context))
            yield objects.create("Job", context, name, merge(job, {"spec": rng.choice(ODD_SETTINGS)}))
        elif chosen < 0.85:
            known = {"spec": {"parallelism": rng.randint(1, 8)}}
            yield objects.patch("Job", context, name, changes.of_job(rng, known, [], objects.label(rng, context)))
        else:
            yield objects.delete(
                "Job", context, name, propagationPolicy=rng.choice(["Background", "Foreground", "Orphan"])
            )


ODD_SETTINGS: list[Object] = [
    {},
    {"parallelism": 500, "completions": 500},
    {"parallelism": 0},
    {"completionMode": "Indexed", "completions": 1000, "backoffLimitPerIndex": 3},
    {"backoffLimit": 1_000_000},
    {"managedBy": "example.com/nobody"},
    {"ttlSecondsAfterFinished": 0},
    {"suspend": False},
]


def lists(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Lists of all objects, of objects without permission, and the API server's own large documents."""
    plurals = [path.format(context.namespace) for path in objects.PATHS.values()]
    plurals += [f"/api/v1/namespaces/{context.namespace}/{plural}" for plural in READABLE]
    while True:
        chosen = rng.random()
        if chosen < 0.1:
            yield Call(Credentials.KUBECONFIG, "GET", rng.choice(CLUSTER_LISTS), must_fail=True)
        elif chosen < 0.15:
            yield Call(Credentials.KUBECONFIG, "GET", "/openapi/v2")
        elif chosen < 0.25:
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
            body = {**review, "spec": {"namespace": context.namespace}}
            yield Call(Credentials.KUBECONFIG, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)
        else:
            query = rng.choice([{}, {}, {"resourceVersion": "0"}, {"limit": "500"}, {"labelSelector": "app=many"}])
            yield Call(Credentials.KUBECONFIG, "GET", rng.choice(plurals), query=query)


def watches(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Watches of every kind, from now and from the beginning, many of them open at a time."""
    plurals = [path.format(context.namespace) for path in objects.PATHS.values()]
    plurals.append(f"/api/v1/namespaces/{context.namespace}/events")
    while True:
        begin = rng.choice([{}, {"resourceVersion": "0"}, {"allowWatchBookmarks": "true"}])
        query = {"watch": "1", "timeoutSeconds": "60", **begin}
        yield Call(Credentials.KUBECONFIG, "GET", rng.choice(plurals), query=query, stream=True)
