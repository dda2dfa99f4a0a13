"""Adds what has run to a history: the allocation, and the intervals of what it held or used."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from demo.simulated_history.demand import Demand, Purpose
from demo.simulated_history.model import End, HeldAllocation, History, World
from demo.simulated_history.past_intervals import PastHold, PastUse
from demo.simulated_history.placement import Place
from demo.simulated_history.pod_times import pod_times
from quotas.metering import simulated
from quotas.metering.foreign import Use
from quotas.metering.services import Attribution, Begin
from quotas.metering.units import GPU, RESOURCE

SPARE = timedelta(hours=1)
"""How much longer than needed is asked for."""


@dataclass
class Running:
    """What is held or used, from ``start`` on; the pods of a Job begin later."""

    wanted: Demand
    places: list[Place]
    start: datetime
    pods_start: datetime
    number: int


@dataclass(frozen=True)
class Recorder:
    """Ids are of the cluster, the seed and what they are of, so the same seed gives the same."""

    world: World
    seed: int
    evidence: Mapping[str, Any]
    history: History

    def add(self, one: Running, end: datetime, why: End) -> None:
        """Add what ended, as far as its intervals have any time."""
        if one.wanted.purpose == Purpose.UNMANAGED:
            self._add_unmanaged(one, end)
        elif one.wanted.purpose == Purpose.JOB:
            self._add_job(one, end)
        else:
            self._add_hold(one, end, why)

    def _add_hold(self, one: Running, end: datetime, why: End) -> None:
        holder, wanted = self._uuid("holder", one.number), one.wanted
        if one.start >= end:
            return
        assert wanted.project is not None
        asked = HeldAllocation(
            id=holder,
            name=f"{wanted.labels['activity']}-{one.number}",
            project=wanted.project.slug,
            member=wanted.member,
            offering=wanted.slice.key,
            count=wanted.count,
            labels=wanted.labels,
            created_at=wanted.at,
            held_at=one.start,
            ends_at=end if why == End.EXPIRED else max(end, one.start + wanted.lasts) + SPARE,
            ended_at=end,
            end=why,
        )
        self.history.allocations.append(asked)
        self.history.pods.extend(pod_times(asked, Random(f"{self.seed} {holder}")))  # noqa: S311 - no secret
        for place in one.places:
            slot = f"{place.node}/{place.device}" if place.device else str(holder)
            self._hold(one, place, slot, holder, one.start, end)

    def _add_job(self, one: Running, end: datetime) -> None:
        """Add what a Job reserves until its pods run, and what each of them uses."""
        job, wanted = self._uuid("job", one.number), one.wanted
        reserved = Place(wanted.slice.flavor, "", "", "", wanted.slice.resource, wanted.count)
        slot = f"job:{job}/{wanted.slice.flavor}/{wanted.slice.resource}"
        self._hold(one, reserved, slot, job, one.start, min(one.pods_start, end), unused=True)
        for index, place in enumerate(one.places):
            uid = f"{simulated.UID_PREFIX}{self._uuid('pod', one.number, index)}"
            slot = f"pod:{uid}/{place.resource}"
            self._hold(one, place, slot, job, one.pods_start, end)
            assert wanted.project is not None
            name = f"batch-{one.number}-{index}"
            self._use(place, slot, "Pod", name, uid, wanted.project.namespace, "Job", one.pods_start, end)

    def _add_unmanaged(self, one: Running, end: datetime) -> None:
        namespace, owner = one.wanted.owner
        for index, place in enumerate(one.places):
            uid = f"{simulated.UID_PREFIX}{self._uuid('stranger', one.number, index)}"
            slot = f"pod:{uid}/{place.resource}" if place.resource else f"{place.node}/{place.device}"
            kind, name = "Pod" if place.resource else "ResourceClaim", f"{namespace}-{one.number}-{index}"
            self._use(place, slot, kind, name, uid, namespace, owner, one.start, end)

    def _hold(
        self,
        one: Running,
        place: Place,
        slot: str,
        holder: UUID,
        start: datetime,
        end: datetime,
        *,
        unused: bool = False,
    ) -> None:
        wanted, project, cluster = one.wanted, one.wanted.project, self.world.cluster
        if start >= end or project is None:
            return
        attribution = Attribution(
            offering=wanted.slice.key,
            flavor=wanted.slice.flavor,
            kind=wanted.slice.kind,
            gpu_share=wanted.slice.gpu_share,
            cluster=cluster,
            department=project.department,
            team=project.team,
            project=project.slug,
            member=wanted.member,
            namespace=project.namespace,
            node=place.node,
            device_uuid=place.uuid,
            unused=unused,
            labels=wanted.labels,
        )
        key = self._uuid("interval", one.number, slot)
        begin = Begin(key, holder, f"{cluster}/{slot}", start, attribution, place.count, self.evidence)
        self.history.holds.append(PastHold(begin, end))

    def _use(
        self,
        place: Place,
        slot: str,
        kind: str,
        name: str,
        uid: str,
        namespace: str,
        owner: str,
        start: datetime,
        end: datetime,
    ) -> None:
        if start < end:
            of_node, thing = (RESOURCE, place.resource) if place.resource else (GPU, place.device)
            use = Use(
                f"{self.world.cluster}/{slot}",
                place.node,
                of_node,
                thing,
                place.count,
                kind,
                name,
                uid,
                namespace,
                owner,
            )
            self.history.foreign.append(PastUse(use, start, end))

    def _uuid(self, *words: object) -> UUID:
        text = "/".join(str(word) for word in (self.world.cluster, self.seed, *words))
        return uuid5(NAMESPACE_URL, f"gpu-portal/simulated/{text}")
