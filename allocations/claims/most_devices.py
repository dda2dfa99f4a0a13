"""The most devices of a set that GPUs can give at once, which counters alone overestimate: an H100 has room for four
instances 2g.20gb by its counters and for three by their places. Pure.
"""

from collections.abc import Iterable

from allocations.claims.node_devices import NodeDevices, Option, State, replaces


class MostDevices:
    """Finds the most of ``devices``, which serve one claim each, that each domain has left; each state of a GPU is
    searched once.
    """

    def __init__(self, node: NodeDevices, devices: Iterable[int], kinds: list[int]) -> None:
        self.node, self.kinds = node, kinds
        self.option = Option((), 1, 1, (), is_all=False, admin=False)
        self.numbers: list[list[int]] = [[] for _ in node.shapes]
        chosen = set(devices)
        for domain, in_domain in enumerate(node.devices):
            found = [device for device in in_domain if device in chosen]
            needed: list[int] = []
            for device in found:
                if not any(replaces(node, other, device) for other in needed):
                    needed = [*(other for other in needed if not replaces(node, device, other)), device]
            self.numbers[domain] = [node.places[device].number for device in needed]
        self.known: dict[tuple[int, State, int], int] = {}

    def of(self, domain: int, state: State, start: int = 0) -> int:
        """Return the most devices that the domain can give in this state, of those from number ``start`` on."""
        known = (self.kinds[domain], state, start)
        if known in self.known:
            return self.known[known]
        shape, numbers = self.node.shapes[domain], self.numbers[domain]
        while start < len(numbers) and not shape.fits(state, numbers[start], self.option):
            start += 1
        most = 0
        if start < len(numbers):
            with_it = 1 + self.of(domain, shape.after(state, numbers[start], self.option), start + 1)
            most = max(with_it, self.of(domain, state, start + 1))
        self.known[known] = most
        return most
