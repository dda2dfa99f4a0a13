"""Computes which slices still fit on a flavor's cards, and how many of them one request can have. Pure.

With dynamic MIG a card is divided on demand, so what fits depends on where its instances are placed
(``quotas.catalog.layouts``), not only on how much of it is left.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import floor

from allocations.capacity.cards import DISTINCT_GPUS, Card, Occupancy, SliceShape, group_of, occupancy
from quotas.catalog import layouts
from quotas.catalog.mig_tables import Geometry

CardState = tuple[Card, Occupancy, int]
"""A card, what is on it where it is cut on demand, and how many cards are like it."""
EMPTY: Occupancy = frozenset()


class FlavorDevices:
    """The cards of one flavor, and what fits on them.

    ``cards`` may be a function, which is called only if single cards are needed. Totals need ``states`` only, which
    returns one card for each state, with the number of such cards. ``part_of`` returns which part of a card a profile
    is that was made beforehand.
    """

    def __init__(
        self,
        cards: Iterable[Card] | Callable[[], Iterable[Card]],
        geometry: Geometry | None = None,
        occupied: Mapping[Card, Occupancy] | None = None,
        states: Callable[[], Iterable[tuple[Card, int]]] | None = None,
        part_of: Callable[[str], Fraction] = lambda profile: Fraction(1),
    ) -> None:
        self._read_cards = cards
        self.geometry = geometry
        self._given_occupied = occupied
        self._read_states = states
        self._part_of = part_of
        self._rooms: dict[tuple[str, str, int, Occupancy], int] = {}

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """In the order of their names."""
        found = self._read_cards() if callable(self._read_cards) else self._read_cards
        return tuple(sorted(found, key=lambda card: card.key))

    @cached_property
    def occupied(self) -> Mapping[Card, Occupancy]:
        """What is on each card that is cut on demand."""
        if self.geometry is None or self._given_occupied is not None:
            return self._given_occupied or {}
        return {card: occupancy(self.geometry, card) for card in self.cards}

    def of_clique(self, clique: str) -> "FlavorDevices":
        """Only the cards of the NVLink clique."""
        cards = (card for card in self.cards if card.clique == clique)
        return FlavorDevices(cards, self.geometry, self._given_occupied, part_of=self._part_of)

    def with_occupied(self, occupied: Mapping[Card, Occupancy]) -> "FlavorDevices":
        """The same cards with something else on them."""
        return FlavorDevices(self.cards, self.geometry, occupied, part_of=self._part_of)

    def total(self, shape: SliceShape, *, empty: bool = False) -> int:
        """Return how many slices fit, each with its share of its node; with ``empty`` how many would on an
        idle fleet.
        """
        rooms: Counter[str] = Counter()
        for card, there, count in self._states:
            room = self._room(shape, card, EMPTY if empty else there, empty=empty)
            rooms[card.node if card.blocked else ""] += count * room
        bounds = {} if empty else self._node_bounds(shape, self._states)
        return sum(min(room, bounds.get(node, room)) for node, room in rooms.items())

    def max_colocated(
        self, shape: SliceShape, constraints: Collection[str], *, spread: bool, empty: bool = False
    ) -> int:
        """Return the most slices that one request can get at once under its constraints; with ``empty`` on an idle
        fleet.
        """
        rooms: Counter[tuple[tuple[str, ...], str]] = Counter()
        for card in self.cards:
            if (group := group_of(card, constraints, spread=spread)) is not None:
                there = EMPTY if empty or self.geometry is None else self.occupied[card]
                room = self._room(shape, card, there, empty=empty)
                rooms[group, card.node] += min(1, room) if DISTINCT_GPUS in constraints else room
        bounds = {} if empty else self.node_bounds(shape)
        most: Counter[tuple[str, ...]] = Counter()
        for (group, node), room in rooms.items():
            most[group] += min(room, bounds.get(node, room))
        return max(most.values(), default=0)

    def node_bounds(self, shape: SliceShape) -> dict[str, int]:
        """By node with blocked cards: how many slices can have their share of the node beside what is held there."""
        return self._node_bounds(shape, self._on_blocked_nodes)

    def free_parts(self, shape: SliceShape) -> dict[str, Fraction]:
        """By node with blocked cards: how much of its cards can be had with the share of the node that goes with it."""
        return self._free_parts(shape, self._on_blocked_nodes)

    @cached_property
    def _on_blocked_nodes(self) -> Sequence[CardState]:
        return [(card, self.occupied.get(card, EMPTY), 1) for card in self.cards if card.blocked]

    def _node_bounds(self, shape: SliceShape, states: Iterable[CardState]) -> dict[str, int]:
        return {node: floor(left / self._part(shape)) for node, left in self._free_parts(shape, states).items()}

    def _free_parts(self, shape: SliceShape, states: Iterable[CardState]) -> dict[str, Fraction]:
        free: dict[str, Fraction] = {}
        for card, there, count in states:
            if card.blocked:
                left = free.get(card.node, -card.blocked)
                free[card.node] = left + count * self._free_part(card, there, shape)
        return {node: max(Fraction(0), left) for node, left in free.items()}

    def _room(self, shape: SliceShape, card: Card, there: Occupancy, *, empty: bool) -> int:
        """How many more slices fit on the card beside ``there``; with ``empty`` its taken devices count as free."""
        if self.geometry is not None:
            known = (shape.kind, shape.profile, shape.replicas, there)
            if known not in self._rooms:
                self._rooms[known] = _room_beside(self.geometry, there, shape)
            return self._rooms[known]
        if shape.kind == "mig":
            free = [profile for name, profile in card.parts.items() if empty or name not in card.taken]
            return free.count(shape.profile)
        return 0 if card.parts else max(0, shape.replicas - (0 if empty else len(card.taken)))

    def _part(self, shape: SliceShape) -> Fraction:
        """Part of a card that a slice is."""
        if shape.kind != "mig":
            return Fraction(1, shape.replicas)
        if self.geometry is None:
            return self._part_of(shape.profile)
        sizes = {one.name: one.size for one in self.geometry.profiles}
        return Fraction(sizes.get(shape.profile, self.geometry.memory), self.geometry.memory)

    def _free_part(self, card: Card, there: Occupancy, shape: SliceShape) -> Fraction:
        """Part of the card that nobody has."""
        if self.geometry is not None:
            taken = self.geometry.memory if there is None else sum(place.size for place in there)
            return Fraction(self.geometry.memory - taken, self.geometry.memory)
        if card.parts:
            free = (profile for name, profile in card.parts.items() if name not in card.taken)
            return sum(map(self._part_of, free), Fraction(0))
        return max(Fraction(0), 1 - Fraction(len(card.taken), shape.replicas))

    @cached_property
    def _states(self) -> Sequence[CardState]:
        """A card for each state, what is on it, and how many are in it: many cards are in few states."""
        if self._read_states is not None:
            given = [(card, self._occupancy(card), count) for card, count in self._read_states()]
        else:
            given = [(card, self.occupied.get(card, EMPTY), 1) for card in self.cards]
        found: dict[Hashable, CardState] = {}
        for card, there, count in given:
            state = (card.node if card.blocked else "", self._state(card, there))
            known = found.get(state, (card, there, 0))
            found[state] = (*known[:2], known[2] + count)
        return tuple(found.values())

    def _occupancy(self, card: Card) -> Occupancy:
        return occupancy(self.geometry, card) if self.geometry else EMPTY

    def _state(self, card: Card, there: Occupancy) -> Hashable:
        """All that decides what fits on the card."""
        if self.geometry is not None:
            return there
        return len(card.taken) if not card.parts else (tuple(sorted(card.parts.items())), card.taken)


def _room_beside(geometry: Geometry, there: Occupancy, shape: SliceShape) -> int:
    if there is None:
        return 0
    if shape.kind != "mig":
        return 0 if there else 1
    return layouts.room(geometry, there).get(shape.profile, 0)
