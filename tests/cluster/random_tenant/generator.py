"""Random operations from a seed: the same seed gives the same operations, as long as it meets the same objects.

Each operation has a generator of its own, seeded by the run's: what one meets does not change the next ones. Many
operations continue with the object of the last one, since it takes several in a row to get around a rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.cluster.random_tenant import changes, manifests
from tests.cluster.random_tenant.operations import (
    Operation,
    Release,
    Request,
    create,
    delete,
    delete_all,
    patch,
)
from tests.support.cluster.api_client import NAMESPACED, ApiClient, Object

OFFERINGS = (
    ("l40s/whole", 3, False),
    ("l40s/whole", 2, False),
    ("t4/shared", 6, False),
    ("a100/mig-1g.10gb", 4, False),
    ("h100/whole", 2, False),
    ("h100/whole", 4, True),
    ("h100/mig-3g.40gb", 3, False),
)
"""Requests: offering, maximum count, whether the slices may spread over nodes."""
CROWDED = 24
"""With this many objects in a namespace, a creation becomes a deletion."""
AGAIN = 0.6
"""The probability that an operation continues with the last one's object."""


@dataclass(frozen=True)
class NamespaceState:
    """A namespace: ``live`` are the names of its unreleased allocations, ``ended`` of the others."""

    project: str
    namespace: str
    live: list[str]
    ended: list[str]


class Generator:
    def __init__(self, seed: int, tenant: ApiClient, namespaces: Callable[[], list[NamespaceState]]) -> None:
        """``tenant`` lists objects; ``namespaces`` returns the current state of the namespaces, in a fixed order."""
        self._random, self._tenant, self._namespaces = Random(seed), tenant, namespaces
        self._number, self._last = 0, ""

    def burst(self) -> int:
        """Return the number of operations before the next check."""
        return self._random.randint(10, 20)

    def next(self) -> Operation:
        """Return the next operation, given the current objects."""
        self._number += 1
        rng = Random(self._random.getrandbits(64))
        namespaces = self._namespaces()
        namespace_state = rng.choices(namespaces, [4, *[1] * (len(namespaces) - 1)])[0]
        objects = [thing for kind in NAMESPACED for thing in self._live(kind, namespace_state.namespace)]
        actions = [self._portal, self._make, self._change, self._scale, self._delete]
        action = rng.choices(actions, [16, 36, 24, 6, 18])[0]
        if action == self._make and len(objects) >= CROWDED:
            action = self._delete
        return action(rng, namespace_state, namespaces, objects) or self._make(
            rng, namespace_state, namespaces, objects
        )

    def _live(self, kind: str, namespace: str) -> list[Object]:
        """Return objects of a kind in an order that does not depend on random suffixes of names."""
        api = {"Pod": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
        found = self._tenant.items(NAMESPACED[kind].format(namespace))
        ours = [thing for thing in found if not thing["metadata"]["name"].endswith("-holder")]
        return [{"apiVersion": api, "kind": kind, **thing} for thing in sorted(ours, key=_order)]

    def _portal(
        self, rng: Random, namespace_state: NamespaceState, _: list[NamespaceState], __: list[Object]
    ) -> Operation:
        if namespace_state.live and rng.random() < (0.8 if len(namespace_state.live) > 5 else 0.4):
            return Release(namespace_state.project, rng.choice(namespace_state.live))
        offering, max_count, spread = rng.choice(OFFERINGS)
        return Request(namespace_state.project, f"hold-{self._number}", offering, rng.randint(1, max_count), spread)

    def _make(
        self, rng: Random, namespace_state: NamespaceState, namespaces: list[NamespaceState], objects: list[Object]
    ) -> Operation:
        kind = rng.choices(["Pod", "Job", "Deployment", "StatefulSet"], [34, 46, 10, 10])[0]
        name, label = f"{kind.lower()}-{self._number}", _label(rng, namespace_state, namespaces)
        if kind == "Pod":
            if rng.random() < 0.1:
                label |= changes.joining(rng, objects)
            return create(manifests.pod(rng, namespace_state.namespace, name, label))
        if kind == "Job":
            return create(manifests.job(rng, namespace_state.namespace, name, label))
        return create(manifests.replicated(rng, kind, namespace_state.namespace, name, label))

    def _change(
        self, rng: Random, namespace_state: NamespaceState, namespaces: list[NamespaceState], objects: list[Object]
    ) -> Operation | None:
        thing = self._pick(rng, objects, {"Job": 70, "Pod": 20, "Deployment": 5, "StatefulSet": 5})
        if thing is None:
            return None
        label, others = _label(rng, namespace_state, namespaces), [other for other in objects if other is not thing]
        if thing["kind"] == "Job":
            jobs = [other for other in others if other["kind"] == "Job"]
            return patch(thing, changes.of_job(rng, thing, jobs or others, label))
        if thing["kind"] == "Pod":
            return patch(thing, changes.of_pod(rng, others, label))
        return patch(thing, changes.of_replicated(rng, others, label))

    def _scale(
        self, rng: Random, _: NamespaceState, __: list[NamespaceState], objects: list[Object]
    ) -> Operation | None:
        thing = self._pick(rng, objects, {"Deployment": 1, "StatefulSet": 1})
        return patch(thing, {"spec": {"replicas": rng.randint(0, 6)}}, "scale") if thing else None

    def _delete(
        self, rng: Random, namespace_state: NamespaceState, _: list[NamespaceState], objects: list[Object]
    ) -> Operation | None:
        if rng.random() < 0.06:
            kind = rng.choice(["Pod", "Job"])
            return delete_all(
                rng, kind, namespace_state.namespace, rng.choice(["app", "job-name", "gpu-portal.io/allocation"])
            )
        thing = self._pick(rng, objects, {"Job": 40, "Pod": 44, "Deployment": 8, "StatefulSet": 8})
        return delete(rng, thing) if thing else None

    def _pick(self, rng: Random, objects: list[Object], weights: dict[str, int]) -> Object | None:
        """Return an object of one of the kinds: often the last one again, else by weighted kind."""
        by_kind = {kind: [thing for thing in objects if thing["kind"] == kind] for kind in weights}
        kinds = [kind for kind, things in by_kind.items() if things]
        if not kinds:
            return None
        found: Object = rng.choice(by_kind[rng.choices(kinds, [weights[kind] for kind in kinds])[0]])
        if rng.random() < AGAIN:
            again = (thing for kind in kinds for thing in by_kind[kind] if thing["metadata"]["uid"] == self._last)
            found = next(again, found)
        self._last = found["metadata"]["uid"]
        return found


def _order(thing: Object) -> tuple[str, str]:
    metadata = thing["metadata"]
    return metadata.get("generateName", metadata["name"]), metadata["creationTimestamp"]


def _label(rng: Random, namespace_state: NamespaceState, namespaces: list[NamespaceState]) -> dict[str, str]:
    """Return an allocation's label: mostly of the same namespace, else another namespace's, an ended one, or none."""
    elsewhere = [name for other in namespaces if other is not namespace_state for name in other.live]
    choice = rng.choices([namespace_state.live, elsewhere, namespace_state.ended, []], [82, 5, 6, 7])[0]
    return {manifests.ALLOCATION: rng.choice(choice)} if choice else {}
