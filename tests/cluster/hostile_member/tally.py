"""Counts the answers by kind and status, as a document for a pipe. Pure."""

from collections import Counter, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.hostile_member.attacks import Attack
from tests.cluster.hostile_member.calls import Call

NO_ANSWER = 0
LAST_CALLS, MAX_LENGTH = 10, 400


@dataclass
class Tally:
    """The answers to one kind of attack.

    ``accepted``: the number of successful calls. ``messages``: the first message of each status. ``let_through``: calls
    that had to be refused and were not. ``last``: the last calls with their status.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    accepted: int = 0
    messages: dict[int, str] = field(default_factory=dict)
    let_through: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_CALLS))

    def add(self, call: Call, status: int, message: str) -> None:
        self.statuses[status] += 1
        self.accepted += call.is_accepted(status)
        self.messages.setdefault(status, message[:MAX_LENGTH])
        self.last.append(f"{call} -> {status}"[:MAX_LENGTH])
        if call.must_fail and call.is_accepted(status) and len(self.let_through) < LAST_CALLS:
            self.let_through.append(f"{call} -> {status}"[:MAX_LENGTH])

    @property
    def attempts(self) -> int:
        return self.statuses.total()

    @property
    def throttled(self) -> int:
        return self.statuses[429] + self.statuses[503]

    @property
    def failed(self) -> int:
        """Return the number of calls without an answer, or with a server error."""
        return sum(n for status, n in self.statuses.items() if status == NO_ANSWER or (status >= 500 and status != 503))

    @property
    def refused(self) -> int:
        return self.attempts - self.accepted - self.throttled - self.failed

    def document(self) -> dict[str, Any]:
        own = {"statuses": dict(self.statuses), "accepted": self.accepted, "messages": self.messages}
        return {**own, "let_through": self.let_through, "last": list(self.last)}


def read(document: dict[str, Any]) -> Tally:
    """Return the tally of a document from JSON, whose keys are texts."""
    return Tally(
        Counter({int(status): count for status, count in document["statuses"].items()}),
        document["accepted"],
        {int(status): message for status, message in document["messages"].items()},
        list(document["let_through"]),
        deque(document["last"], maxlen=LAST_CALLS),
    )


def merged(tallies: Collection[Tally]) -> Tally:
    """Return the sum of the tallies of one attack's threads."""
    whole = Tally()
    for one in tallies:
        whole.statuses += one.statuses
        whole.accepted += one.accepted
        whole.messages = {**one.messages, **whole.messages}
        whole.let_through += one.let_through
        whole.last.extend(one.last)
    return whole


def findings(attacks: Collection[Attack], tallies: dict[str, Tally], seconds: float) -> Iterator[str]:
    """Return a sentence for each attack that did not take place, that got through, or that made the portal fail."""
    for attack in attacks:
        tally = tallies.get(attack.name, Tally())
        minimum = attack.min_per_minute * seconds / 60
        if tally.attempts < minimum:
            attempts = f"{tally.attempts} attempts in {seconds:.0f} s"
            yield f"{attack.name}: {attempts} are no attack; at least {minimum:.0f} are"
        if 2 * tally.statuses[NO_ANSWER] > tally.attempts:
            yield f"{attack.name}: most were not answered: {tally.messages[NO_ANSWER]}"
        for call in tally.let_through:
            yield f"{attack.name}: accepted, and has to be refused: {call}"


def table(attacks: Collection[Attack], tallies: dict[str, Tally]) -> list[str]:
    lines = [f"{'attack':<24}{'attempts':>9}{'accepted':>9}{'refused':>9}{'throttled':>10}{'failed':>8}  by status"]
    for attack in attacks:
        one = tallies.get(attack.name, Tally())
        counts = f"{one.attempts:>9}{one.accepted:>9}{one.refused:>9}{one.throttled:>10}{one.failed:>8}"
        statuses = ", ".join(f"{status}: {count}" for status, count in sorted(one.statuses.items()))
        lines.append(f"{attack.name:<24}{counts}  {statuses}")
    return lines


def details(attacks: Collection[Attack], tallies: dict[str, Tally]) -> Iterator[str]:
    """Return messages by kind and status, and the last calls of each kind: for a failed run."""
    for attack in attacks:
        one = tallies.get(attack.name, Tally())
        yield f"-- {attack.name}"
        yield from (f"   {status}: {messages}" for status, messages in sorted(one.messages.items()) if messages)
        yield from (f"   last: {call}" for call in one.last)
