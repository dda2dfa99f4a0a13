"""Measures fragmentation by the order of MIG requests and the choice of cards: three tables of docs/guide/mig.md.

No cluster: a card is the set of its placements, the scheduler is its rule (`layouts.first_fit`), and the portal's
choice is `layouts.best_card`. Seeded, so the figures are the same on every machine.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from random import Random
from statistics import mean

from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import TABLES, Geometry

H100 = TABLES["H100-80GB"]
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
LARGE = ("3g.40gb", "4g.40gb", "7g.80gb")
NODES, CARDS_OF_NODE = 8, 8
COMPUTE, MEMORY = NODES * CARDS_OF_NODE * H100.compute, NODES * CARDS_OF_NODE * H100.memory
STREAMS = 100
LOADS = (60, 80, 90)
STEPS = 600

Name = tuple[int, int]
State = frozenset[Placement]


@dataclass
class Fleet:
    """The placements on each card, by (node, number), in the order of names.

    `refused` are the profiles that did not fit although enough compute and memory slices were free.
    """

    cards: dict[Name, State] = field(
        default_factory=lambda: {(node, n): frozenset() for node in range(NODES) for n in range(CARDS_OF_NODE)}
    )
    refused: list[str] = field(default_factory=list)

    def fitting(self, profile: str) -> Iterator[Name]:
        return (name for name, state in self.cards.items() if next_place(state, profile))

    def place(self, name: Name | None, profile: str) -> tuple[Name, Placement] | None:
        """Add an instance where the scheduler would on that card, or record that it did not fit."""
        place = next_place(self.cards[name], profile) if name else None
        if name is not None and place is not None:
            self.cards[name] |= {place}
            return name, place
        if all(free >= wanted for free, wanted in zip(self.free(), size(profile), strict=True)):
            self.refused.append(profile)
        return None

    def release(self, name: Name, place: Placement) -> None:
        self.cards[name] -= {place}

    def room(self, profile: str) -> int:
        return sum(room(state, profile) for state in self.cards.values())

    def free(self) -> tuple[int, int]:
        """Return free memory and compute slices."""
        held = [size(place.profile) for state in self.cards.values() for place in state]
        return MEMORY - sum(memory for memory, _ in held), COMPUTE - sum(compute for _, compute in held)


@cache
def next_place(state: State, profile: str) -> Placement | None:
    return layouts.first_fit(H100, state, profile)


@cache
def room(state: State, profile: str) -> int:
    return layouts.room(H100, state)[profile]


@cache
def size(profile: str) -> tuple[int, int]:
    """Return memory and compute slices of an instance, the sort key of profiles by size."""
    return H100.profile(profile).size, H100.profile(profile).compute


@cache
def full_cards() -> tuple[tuple[str, ...], ...]:
    """Return the profiles of every maximal layout."""
    found = (layout for layout in layouts.maximal_layouts(H100) if set(layout) <= set(PROFILES))
    return tuple(tuple(name for name, n in layout.items() for _ in range(n)) for layout in found)


def node_by_chance(fleet: Fleet, profile: str, chance: Random) -> Name | None:
    """Return kube-scheduler's choice: a random node, since claims do not affect scores; then the first card that
    fits.
    """
    first: dict[int, Name] = {}
    for name in fleet.fitting(profile):
        first.setdefault(name[0], name)
    return chance.choice(list(first.values())) if first else None


def node_by_name(fleet: Fleet, profile: str, _: Random) -> Name | None:
    """Return the choice of a scheduler with a single node, or one that fills node after node."""
    return next(fleet.fitting(profile), None)


def steered(fleet: Fleet, profile: str, _: Random) -> Name | None:
    """Return the portal's choice: the card with the least loss. The first of equal cards represents all of them."""
    first = {state: name for name, state in reversed(fleet.cards.items())}
    cards = {f"{node}-{number}": state for state, (node, number) in first.items()}
    key = layouts.best_card(H100, cards, profile)
    return first[cards[key]] if key is not None else None


Way = Callable[[Fleet, str, Random], Name | None]
WAYS: dict[str, Way] = {
    "scheduler, node by chance": node_by_chance,
    "scheduler, node after node": node_by_name,
    "steered to a card": steered,
}

Order = Callable[[Iterable[str]], list[str]]
ORDERS: dict[str, Order] = {
    "largest first": lambda asked: sorted(asked, key=size, reverse=True),
    "as they come": list,
    "smallest first": lambda asked: sorted(asked, key=size),
}

Place = Callable[[Geometry, Collection[Placement], str], Placement | None]
PLACES: dict[str, Place] = {
    "the scheduler, first free place": layouts.first_fit,
    "an operator, where it costs least": layouts.best_placement,
}


def requests(chance: Random) -> list[str]:
    """Return requests that fill every card in one of its maximal layouts, shuffled: all fit, if placed right."""
    asked = [profile for _ in range(NODES * CARDS_OF_NODE) for profile in chance.choice(full_cards())]
    chance.shuffle(asked)
    return asked


def at_once(seed: int, order: Order, way: Way) -> tuple[list[str], Fleet]:
    """Return the requests, and a fleet that was empty before they were placed in that order and by that choice."""
    chance, fleet = Random(seed), Fleet()
    asked = order(requests(chance))
    for profile in asked:
        fleet.place(way(fleet, profile, chance), profile)
    return asked, fleet


def coming_and_going(seed: int, load: int, way: Way) -> tuple[int, Fleet]:
    """Make random requests for profiles; end a random instance whenever more than `load` percent of compute is held.

    Returns the number of requests, and the fleet after `STEPS` of either.
    """
    chance = Random(seed)
    fleet, standing, held, asked = Fleet(), list[tuple[Name, Placement]](), 0, 0
    for _ in range(STEPS):
        if held * 100 > load * COMPUTE:
            gone = standing.pop(chance.randrange(len(standing)))
            fleet.release(*gone)
            held -= size(gone[1].profile)[1]
            continue
        asked += 1
        profile = chance.choice(PROFILES)
        if placed := fleet.place(way(fleet, profile, chance), profile):
            standing.append(placed)
            held += size(profile)[1]
    return asked, fleet


def builds(asked: Iterable[str], place: Place) -> bool:
    """Return whether one empty card takes all instances, one after the other."""
    there: list[Placement] = []
    for profile in asked:
        if (chosen := place(H100, there, profile)) is None:
            return False
        there.append(chosen)
    return True


def on_one_card() -> str:
    """Table: how many layouts are reached if their instances are requested one after the other."""
    every = [[name for name, n in layout.items() for _ in range(n)] for layout in layouts.layouts(H100)]
    rows = [f"| placed by | asked for | layouts that come about, of {len(every)} |", "|---|---|---|"]
    for place_name, place in PLACES.items():
        for order in ("smallest first", "largest first"):
            rows.append(f"| {place_name} | {order} | {sum(builds(ORDERS[order](one), place) for one in every)} |")
    suited = sum(any(builds(order, layouts.first_fit) for order in permutations(one)) for one in every)
    rows.insert(4, f"| {next(iter(PLACES))} | in the order that suits the layout | {suited} |")
    return "\n".join(rows) + "\n"


def all_at_once() -> str:
    """Table: requests for exactly what fits, by order and choice of cards."""
    rows = [
        "| asked for | placed by | find no place | of 3g, 4g and 7g | compute slices left |",
        "|---" * 5 + "|",
    ]
    for order_name, order in ORDERS.items():
        for way_name, way in WAYS.items():
            runs = [at_once(seed, order, way) for seed in range(STREAMS)]
            none = mean(len(fleet.refused) / len(asked) for asked, fleet in runs)
            large = mean(_large(fleet.refused) / _large(asked) for asked, fleet in runs)
            left = mean(fleet.free()[1] / COMPUTE for _, fleet in runs)
            rows.append(f"| {order_name} | {way_name} | {none:.1%} | {large:.1%} | {left:.1%} |")
    left = mean(1 - sum(size(one)[1] for one in requests(Random(seed))) / COMPUTE for seed in range(STREAMS))
    rows.append(f"| all known beforehand | an operator | 0.0% | 0.0% | {left:.1%} |")
    return "\n".join(rows) + "\n"


def after_a_while() -> str:
    """Table: a fleet after many requests and releases, by load and choice of cards."""
    rows = ["| held | placed by | find no place | 7g that still fit | 4g | 3g |", "|---" * 6 + "|"]
    for load in LOADS:
        for way_name, way in WAYS.items():
            runs = [coming_and_going(seed, load, way) for seed in range(STREAMS)]
            none = sum(len(fleet.refused) for _, fleet in runs) / sum(asked for asked, _ in runs)
            fit = " | ".join(f"{mean(fleet.room(p) for _, fleet in runs):.1f}" for p in reversed(LARGE))
            rows.append(f"| {load} % | {way_name} | {none:.1%} | {fit} |")
    return "\n".join(rows) + "\n"


def _large(profiles: Iterable[str]) -> int:
    return sum(profile in LARGE for profile in profiles)
