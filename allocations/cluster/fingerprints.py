"""Tells which observations of a watch change what the portal reads of an object. Pure."""

from collections.abc import Iterable
from hashlib import blake2b

from allocations.cluster.kinds import Observation
from allocations.domain.actions import digest
from allocations.domain.objects import Ref


def fingerprint(observation: Observation) -> bytes:
    """Return 16 bytes that are equal for two observations if and only if the portal reads the same from them."""
    fields = (observation.uid, observation.digest, observation.deleting, observation.allocation, observation.facts)
    return blake2b(digest(fields).encode(), digest_size=16).digest()


class Fingerprints:
    """The fingerprints of one kind's objects as they were last passed on, by reference; some 200 bytes an object."""

    def __init__(self) -> None:
        self._last: dict[Ref, bytes] = {}

    def start_over(self, listed: Iterable[Observation]) -> None:
        """Replace all fingerprints by those of a list."""
        self._last = {observation.ref: fingerprint(observation) for observation in listed}

    def is_change(self, observation: Observation) -> bool:
        """Return whether the observation differs from the object's last one, and remember it as the last one.

        Every deletion is a change: the mirror may have an object that the list did not select.
        """
        if observation.gone:
            self._last.pop(observation.ref, None)
            return True
        before, after = self._last.get(observation.ref), fingerprint(observation)
        self._last[observation.ref] = after
        return before != after
