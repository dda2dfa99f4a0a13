"""Draws a history: demands are met within quotas as far as slices are free, and end when they are over or evicted.

The same world and seed give the same history, and nothing is read from the database. Events are processed in the order
of their times.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any

from demo.simulated_history import demand, incidents, prices
from demo.simulated_history.demand import Demand, Purpose
from demo.simulated_history.incidents import Incident
from demo.simulated_history.model import End, FleetUnit, History, LayoutChange, World
from demo.simulated_history.placement import Fleet
from demo.simulated_history.recorder import Recorder, Running


def generate(world: World, seed: int, evidence: Mapping[str, Any]) -> History:
    """Return a history of the world; ``evidence`` is that of its rows."""
    return _Generator(world, seed, evidence).run()


class _Generator:
    def __init__(self, world: World, seed: int, evidence: Mapping[str, Any]) -> None:
        self.world = world
        self.random = Random(seed)  # noqa: S311 - a demo, not a secret
        self.history = History(world.start, world.until)
        self.recorder = Recorder(world, seed, evidence, self.history)
        self.fleet = Fleet(world)
        self.held: Counter[tuple[str, str, str]] = Counter()  # by team, pool and resource
        self.running: dict[int, Running] = {}
        self.waiting: list[Demand] = []
        self.events: list[tuple[datetime, int, Callable[[datetime], None]]] = []
        self.number, self.order = count(), count()

    def run(self) -> History:
        world, history = self.world, self.history
        happened = incidents.draw(world, self.random)
        history.layouts = list(incidents.layout_changes(world))
        joined = incidents.joined(world)
        history.capacity = list(incidents.capacity(world, happened, history.layouts, joined))
        history.prices = prices.changes(world)
        self._schedule_fleet(happened, joined)
        for wanted in demand.draw(world, self.random):
            self._at(wanted.at, partial(self._ask, self._then_offered(wanted)))
        while self.events:
            at, _, event = heapq.heappop(self.events)
            if at < world.until:
                event(at)
        for number in list(self.running):
            self._finish(number, world.until, End.RELEASED)
        return history

    def _at(self, moment: datetime, event: Callable[[datetime], None]) -> None:
        heapq.heappush(self.events, (moment, next(self.order), event))

    def _schedule_fleet(self, happened: list[Incident], joined: Mapping[str, datetime]) -> None:
        changes = {one.flavor: one for one in self.history.layouts}
        for one in self.world.units:
            change = changes.get(one.value.flavor)
            since = max(joined[one.unit.node], change.end) if change else joined[one.unit.node]
            self._at(since, partial(self._add_unit, one))
        for former, change in incidents.former_units(self.world, self.history.layouts):
            self._at(joined[former.unit.node], partial(self._add_unit, former))
            self._at(change.start, partial(self._remove_unit, former))
        for change in self.history.layouts:
            self._at(change.start, partial(self._end_layout, change))
        for incident in happened:
            self._at(incident.start, partial(self._begin_incident, incident))
            self._at(incident.evicted, partial(self._evict, node=incident.node, name=incident.name))
            self._at(incident.end, partial(self._end_incident, incident))

    def _then_offered(self, wanted: Demand) -> Demand:
        """Return the demand with the slice that its flavor had at the time."""
        for change in self.history.layouts:
            if change.flavor == wanted.slice.flavor and wanted.at < change.start:
                return replace(wanted, slice=change.slice)
        return wanted

    def _ask(self, wanted: Demand, at: datetime) -> None:
        if not self._start(wanted, at):
            self.waiting.append(wanted)

    def _retry(self, at: datetime) -> None:
        left = []
        for wanted in self.waiting:
            if at <= wanted.at + wanted.patience and not self._start(wanted, at):
                left.append(wanted)
        self.waiting = left

    def _start(self, wanted: Demand, at: datetime) -> bool:
        """Begin what is wanted if quota and fleet allow it; return whether they do."""
        if not self._has_quota(wanted):
            return False
        on_nodes = wanted.purpose != Purpose.HOLD
        places = self.fleet.find(wanted.slice, wanted.count, on_nodes=on_nodes, pods=wanted.pods)
        if places is None:
            return False
        self.fleet.take(places)
        self._charge_quota(wanted, 1)
        number = next(self.number)
        start = at + timedelta(seconds=self.random.randint(2, 20))
        is_job = wanted.purpose == Purpose.JOB
        pods_start = start + timedelta(seconds=self.random.randint(30, 240) if is_job else 0)
        self.running[number] = Running(wanted, places, start, pods_start, number)
        self._at(pods_start + wanted.lasts, partial(self._end, number))
        return True

    def _end(self, number: int, at: datetime) -> None:
        if number in self.running:
            self._finish(number, at, self.random.choice((End.RELEASED, End.EXPIRED)))
            self._retry(at)

    def _add_unit(self, one: FleetUnit, at: datetime) -> None:
        self.fleet.add(one)
        self._retry(at)

    def _remove_unit(self, one: FleetUnit, _: datetime) -> None:
        self.fleet.remove(one)

    def _begin_incident(self, incident: Incident, _: datetime) -> None:
        self.fleet.begin(incident)

    def _end_incident(self, incident: Incident, at: datetime) -> None:
        self.fleet.end(incident)
        self._retry(at)

    def _end_layout(self, change: LayoutChange, at: datetime) -> None:
        """End what holds the former layout: counts on the flavor, which no node has."""
        for number, one in list(self.running.items()):
            if (one.wanted.slice.flavor, one.wanted.slice.resource) == (change.flavor, change.slice.resource):
                self._finish(number, at, End.EVICTED)

    def _evict(self, at: datetime, *, node: str, name: str) -> None:
        """End what runs on a node, or on one of its GPUs; a count on a flavor names no node, and stays."""
        for number, one in list(self.running.items()):
            on_node = [place for place in one.places if place.node == node]
            if any(name in ("", place.gpu) for place in on_node):
                self._finish(number, at, End.EVICTED)
        self._retry(at)

    def _has_quota(self, wanted: Demand) -> bool:
        if wanted.project is None:
            return True
        team, pool, asked = wanted.project.team, wanted.slice.pool, wanted.slice.requests
        nominal, unit = self.world.quotas.get((team, pool), 0), self.world.pools[pool]
        return all(
            self.held[team, pool, name] + amount * wanted.count <= nominal * unit.get(name, 0)
            for name, amount in asked.items()
        )

    def _charge_quota(self, wanted: Demand, sign: int) -> None:
        if wanted.project:
            for name, amount in wanted.slice.requests.items():
                self.held[wanted.project.team, wanted.slice.pool, name] += sign * amount * wanted.count

    def _finish(self, number: int, at: datetime, why: End) -> None:
        """End what runs, and add its intervals to the history, as far as they have any time."""
        one = self.running.pop(number)
        self.fleet.free(one.places)
        self._charge_quota(one.wanted, -1)
        self.recorder.add(one, at, why)
