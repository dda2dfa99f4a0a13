"""What of a person's own allocations needs the person, and the cards with since when no pod uses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from uuid import UUID

from django.urls import reverse

from allocations.domain.phases import Phase
from frontend.presenters import amounts
from frontend.presenters.allocations import Card
from frontend.presenters.home.counters import Counter, first_of

SOON = timedelta(minutes=20)
IDLE = timedelta(minutes=10)
"""A hold without a pod for less is no matter: images take minutes to pull."""


@dataclass(frozen=True)
class Own:
    """A person's allocations that have not ended, and since when those without a pod have none."""

    cards: Sequence[Card]
    idle: Mapping[UUID, datetime]
    now: datetime

    def without_pod(self) -> list[Card]:
        """Return the cards that have had no pod for some minutes, the longest first."""
        found = [card for card in self.cards if card.row.pk in self.idle and self.now - self.idle[card.row.pk] >= IDLE]
        return sorted(found, key=lambda card: self.idle[card.row.pk])

    def idle_for(self, card: Card) -> str:
        """Return for how long it has had no pod; empty while one uses it."""
        since = self.idle.get(card.row.pk)
        return amounts.span(self.now - since) if since else ""


def _failed(own: Own) -> list[Card]:
    rows = [(card, card.row) for card in own.cards]
    return [card for card, row in rows if row.needs_attention or (row.start_failures and row.held_since is None)]


def _ending(own: Own) -> list[Card]:
    found = [card for card in own.cards if card.row.held_since and card.row.ends_at]
    return [card for card in found if card.row.ends_at and card.row.ends_at - own.now <= SOON]


def _queued(own: Own) -> list[Card]:
    return [card for card in own.cards if card.row.phase == Phase.QUEUED]


def _failed_count(own: Own) -> tuple[int, str]:
    found = _failed(own)
    return len(found), first_of([card.row.name for card in found])


def _ending_count(own: Own) -> tuple[int, str]:
    found = _ending(own)
    return len(found), first_of([f"{card.row.name}: {card.time}" for card in found])


def _idle_count(own: Own) -> tuple[int, str]:
    found = own.without_pod()
    if not found:
        return 0, ""
    prices = [card.detail.per_hour for card in found if card.detail.per_hour is not None]
    price = f" at {amounts.rate(sum(prices, Fraction(0)), found[0].detail.currency)}/h" if prices else ""
    return len(found), f"for {own.idle_for(found[0])}{price}"


def _queued_count(own: Own) -> tuple[int, str]:
    found = _queued(own)
    return len(found), first_of([f"{card.row.name}: {card.place or 'waits'}".rstrip(".") for card in found])


def _link(found: Sequence[Card]) -> str:
    return found[0].address if len(found) == 1 else f"{reverse('allocations')}?mine=1&phase=live"


COUNTERS = (
    Counter("Could not start", "bad", _failed_count, lambda own: _link(_failed(own))),
    Counter("End within 20 min", "bad", _ending_count, lambda own: _link(_ending(own))),
    Counter("Your holds without a pod", "warn", _idle_count, lambda own: _link(own.without_pod())),
    Counter("Queued", "wait", _queued_count, lambda own: _link(_queued(own))),
)
