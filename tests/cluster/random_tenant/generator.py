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
class Place:
    """A namespace: ``live`` are the names of its unreleased allocations, ``ended`` of the others."""

    project: str
    namespace: str
    live: list[str]
    ended: list[str]


class Generator:
    def __init__(self, seed: int, tenant: ApiClient, places: Callable[[], list[Place]]) -> None:
        """``tenant`` lists objects; ``namespaces`` returns the current state of the namespaces, in a fixed order."""
        self._random, self._tenant, self._places = Random(seed), tenant, places
        self._number, self._last = 0, ""

    def burst(self) -> int:
        """Return the number of operations before the next check."""
        return self._random.randint(10, 20)

    def next(self) -> Operation:
        """Return the next operation, given the current objects."""
        self._number += 1
        rng = Random(self._random.getrandbits(64))
        places = self._places()
        place = rng.choices(places, [4, *[1] * (len(places) - 1)])[0]
        there = [thing for kind in NAMESPACED for thing in self._live(kind, place.namespace)]
        actions = [self._portal, self._make, self._change, self._scale, self._delete]
        action = rng.choices(actions, [16, 36, 24, 6, 18])[0]
        if action == self._make and len(there) >= CROWDED:
            action = self._delete
        return action(rng, place, places, there) or self._make(rng, place, places, there)

    def _live(self, kind: str, namespace: str) -> list[Object]:
        """Return objects of a kind in an order that does not depend on random suffixes of names."""
        api = {"Pod": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
        found = self._tenant.items(NAMESPACED[kind].format(namespace))
        ours = [thing for thing in found if not thing["metadata"]["name"].endswith("-holder")]
        return [{"apiVersion": api, "kind": kind, **thing} for thing in sorted(ours, key=_order)]

    def _portal(self, rng: Random, place: Place, _: list[Place], __: list[Object]) -> Operation:
        if place.live and rng.random() < (0.8 if len(place.live) > 5 else 0.4):
            return Release(place.project, rng.choice(place.live))
        offering, most, spread = rng.choice(OFFERINGS)
        return Request(place.project, f"hold-{self._number}", offering, rng.randint(1, most), spread)

    def _make(self, rng: Random, place: Place, places: list[Place], _: list[Object]) -> Operation:
        kind = rng.choices(["Pod", "Job", "Deployment", "StatefulSet"], [34, 46, 10, 10])[0]
        name, label = f"{kind.lower()}-{self._number}", _label(rng, place, places)
        if kind == "Pod":
            return create(manifests.pod(rng, place.namespace, name, label))
        if kind == "Job":
            return create(manifests.job(rng, place.namespace, name, label))
        return create(manifests.replicated(rng, kind, place.namespace, name, label))

    def _change(self, rng: Random, place: Place, places: list[Place], there: list[Object]) -> Operation | None:
        thing = self._pick(rng, there, {"Job": 70, "Pod": 20, "Deployment": 5, "StatefulSet": 5})
        if thing is None:
            return None
        label, others = _label(rng, place, places), [other for other in there if other is not thing]
        if thing["kind"] == "Job":
            jobs = [other for other in others if other["kind"] == "Job"]
            return patch(thing, changes.of_job(rng, thing, jobs or others, label))
        if thing["kind"] == "Pod":
            return patch(thing, changes.of_pod(rng, others, label))
        return patch(thing, changes.of_replicated(rng, others, label))

    def _scale(self, rng: Random, _: Place, __: list[Place], there: list[Object]) -> Operation | None:
        thing = self._pick(rng, there, {"Deployment": 1, "StatefulSet": 1})
        return patch(thing, {"spec": {"replicas": rng.randint(0, 6)}}, "scale") if thing else None

    def _delete(self, rng: Random, place: Place, _: list[Place], there: list[Object]) -> Operation | None:
        if rng.random() < 0.06:
            kind = rng.choice(["Pod", "Job"])
            return delete_all(rng, kind, place.namespace, rng.choice(["app", "job-name", "gpu-portal.io/allocation"]))
        thing = self._pick(rng, there, {"Job": 40, "Pod": 44, "Deployment": 8, "StatefulSet": 8})
        return delete(rng, thing) if thing else None

    def _pick(self, rng: Random, there: list[Object], weights: dict[str, int]) -> Object | None:
        """Return an object of one of the kinds: often the last one again, else by weighted kind."""
        by_kind = {kind: [thing for thing in there if thing["kind"] == kind] for kind in weights}
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


def _label(rng: Random, place: Place, places: list[Place]) -> dict[str, str]:
    """Return an allocation's label: mostly of the same namespace, else another namespace's, an ended one, or none."""
    elsewhere = [name for other in places if other is not place for name in other.live]
    choice = rng.choices([place.live, elsewhere, place.ended, []], [82, 5, 6, 7])[0]
    return {manifests.ALLOCATION: rng.choice(choice)} if choice else {}
