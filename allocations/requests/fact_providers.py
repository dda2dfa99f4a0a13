"""Reads the facts that rules need to know of a request, in the one statement with all else that a decision reads.

To add one, name a ``Fact`` beside the rule's input (``allocations.domain.admission``), say in ``rules.NEEDS`` who needs
it, and give it a provider here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allocations.capacity import allocation_limits
from allocations.domain.admission import ALLOCATION_LIMITS, ApplicableLimits, Fact
from portal.core.reading import Batch
from portal.tenants.models import Project, User


@dataclass(frozen=True)
class Question:
    """Who asks for something in which project, from when on; ``at`` is None for a start now."""

    user: User
    project: Project
    at: datetime | None


def _allocation_limits(question: Question, batch: Batch) -> Callable[[], ApplicableLimits]:
    numbers = batch.add(allocation_limits.numbers(question.project))
    return lambda: allocation_limits.of_numbers(numbers(), question.user)


Provider = Callable[[Question, Batch], Callable[[], Any]]
"""Adds to the batch what it reads, and returns what gives the value of the fact."""
PROVIDERS: Mapping[Fact[Any], Provider] = {ALLOCATION_LIMITS: _allocation_limits}


def add(needed: Iterable[Fact[Any]], question: Question, batch: Batch) -> Callable[[], dict[Fact[Any], Any]]:
    """Add to the batch what these facts are read from; return what gives their values."""
    values = {fact: PROVIDERS[fact](question, batch) for fact in needed}
    return lambda: {fact: value() for fact, value in values.items()}
