"""Measures fragmentation by the order of MIG requests and the choice of GPUs: three tables of docs/appendix/mig.md.

No cluster: a GPU is the set of its placements, the scheduler is its rule (`layouts.first_fit`), and the portal's
choice is `layouts.best_gpu`. Seeded, so the figures are the same on every machine.
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
from tests.support import mig_layouts

H100 = TABLES["H100-80GB"]
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
LARGE = ("3g.40gb", "4g.40gb", "7g.80gb")
NODES, GPUS_OF_NODE = 8, 8
COMPUTE, MEMORY = NODES * GPUS_OF_NODE * H100.compute, NODES * GPUS_OF_NODE * H100.memory
STREAMS = 100
LOADS = (60, 80, 90)
STEPS = 600

GpuKey = tuple[int, int]
Occupation = frozenset[Placement]


@dataclass
class Fleet:
    """The placements on each GPU, by (node, number), in the order of names.

    `refused` are the profiles that did not fit although enough compute and memory slices were free.
    """

    gpus: dict[GpuKey, Occupation] = field(
        default_factory=lambda: {(node, n): frozenset() for node in range(NODES) for n in range(GPUS_OF_NODE)}
    )
    refused: list[str] = field(default_factory=list)

    def fitting(self, profile: str) -> Iterator[GpuKey]:
        return (name for name, state in self.gpus.items() if next_placement(state, profile))

    def place(self, name: GpuKey | None, profile: str) -> tuple[GpuKey, Placement] | None:
        """Add an instance where the scheduler would on that GPU, or record that it did not fit."""
        placement = next_placement(self.gpus[name], profile) if name else None
        if name is not None and placement is not None:
            self.gpus[name] |= {placement}
            return name, placement
        if all(free >= needed for free, needed in zip(self.free(), size(profile), strict=True)):
            self.refused.append(profile)
        return None

    def release(self, name: GpuKey, placement: Placement) -> None:
        self.gpus[name] -= {placement}

    def room(self, profile: str) -> int:
        return sum(room(state, profile) for state in self.gpus.values())

    def free(self) -> tuple[int, int]:
        """Return free memory and compute slices."""
        held = [size(placement.profile) for state in self.gpus.values() for placement in state]
        return MEMORY - sum(memory for memory, _ in held), COMPUTE - sum(compute for _, compute in held)


@cache
def next_placement(state: Occupation, profile: str) -> Placement | None:
    return layouts.first_fit(H100, state, profile)


@cache
def room(state: Occupation, profile: str) -> int:
    return layouts.remaining(H100, state)[profile]


@cache
def size(profile: str) -> tuple[int, int]:
    """Return memory and compute slices of an instance, the sort key of profiles by size."""
    return H100.profile(profile).size, H100.profile(profile).compute


@cache
def maximal_layouts_of_a_gpu() -> tuple[tuple[str, ...], ...]:
    """Return the profiles of every maximal layout."""
    maximal = (layout for layout in mig_layouts.maximal_layouts(H100) if set(layout) <= set(PROFILES))
    return tuple(tuple(name for name, n in layout.items() for _ in range(n)) for layout in maximal)


def gpu_on_random_node(fleet: Fleet, profile: str, chance: Random) -> GpuKey | None:
    """Return kube-scheduler's choice: a random node, since claims do not affect scores; then the first GPU that
    fits.
    """
    first: dict[int, GpuKey] = {}
    for name in fleet.fitting(profile):
        first.setdefault(name[0], name)
    return chance.choice(list(first.values())) if first else None


def gpu_on_first_node(fleet: Fleet, profile: str, _: Random) -> GpuKey | None:
    """Return the choice of a scheduler with a single node, or one that fills node after node."""
    return next(fleet.fitting(profile), None)


def gpu_by_portal(fleet: Fleet, profile: str, _: Random) -> GpuKey | None:
    """Return the portal's choice: the GPU with the least loss. The first of equal GPUs represents all of them."""
    first = {state: name for name, state in reversed(fleet.gpus.items())}
    gpus = {f"{node}-{number}": state for state, (node, number) in first.items()}
    key = layouts.best_gpu(H100, gpus, profile)
    return first[gpus[key]] if key is not None else None


GpuChoice = Callable[[Fleet, str, Random], GpuKey | None]
GPU_CHOICES: dict[str, GpuChoice] = {
    "scheduler, node by chance": gpu_on_random_node,
    "scheduler, node after node": gpu_on_first_node,
    "chosen by the portal": gpu_by_portal,
}

Order = Callable[[Iterable[str]], list[str]]
ORDERS: dict[str, Order] = {
    "largest first": lambda requested: sorted(requested, key=size, reverse=True),
    "as they come": list,
    "smallest first": lambda requested: sorted(requested, key=size),
}

PlacementChoice = Callable[[Geometry, Collection[Placement], str], Placement | None]
PLACEMENT_CHOICES: dict[str, PlacementChoice] = {
    "the scheduler, first free place": layouts.first_fit,
    "an operator, where it costs least": layouts.best_placement,
}


def requests(chance: Random) -> list[str]:
    """Return requests that fill every GPU in one of its maximal layouts, shuffled: all fit, if placed right."""
    requested = [profile for _ in range(NODES * GPUS_OF_NODE) for profile in chance.choice(maximal_layouts_of_a_gpu())]
    chance.shuffle(requested)
    return requested


def place_all(seed: int, order: Order, choice: GpuChoice) -> tuple[list[str], Fleet]:
    """Return the requests, and a fleet that was empty before they were placed in that order and by that choice."""
    chance, fleet = Random(seed), Fleet()
    requested = order(requests(chance))
    for profile in requested:
        fleet.place(choice(fleet, profile, chance), profile)
    return requested, fleet


def simulate_churn(seed: int, load: int, choice: GpuChoice) -> tuple[int, Fleet]:
    """Make random requests for profiles; end a random instance whenever more than `load` percent of compute is held.

    Returns the number of requests, and the fleet after `STEPS` of either.
    """
    chance = Random(seed)
    fleet, instances, held, requested = Fleet(), list[tuple[GpuKey, Placement]](), 0, 0
    for _ in range(STEPS):
        if held * 100 > load * COMPUTE:
            ended = instances.pop(chance.randrange(len(instances)))
            fleet.release(*ended)
            held -= size(ended[1].profile)[1]
            continue
        requested += 1
        profile = chance.choice(PROFILES)
        if placed := fleet.place(choice(fleet, profile, chance), profile):
            instances.append(placed)
            held += size(profile)[1]
    return requested, fleet


def fits_on_one_gpu(requested: Iterable[str], choose: PlacementChoice) -> bool:
    """Return whether one empty GPU takes all instances, one after the other."""
    placements: list[Placement] = []
    for profile in requested:
        if (chosen := choose(H100, placements, profile)) is None:
            return False
        placements.append(chosen)
    return True


def table_of_one_gpu() -> str:
    """Return a table: how many layouts are reached if their instances are requested one after the other."""
    every = [[name for name, n in layout.items() for _ in range(n)] for layout in layouts.layouts(H100)]
    rows = [f"| placed by | asked for | layouts that come about, of {len(every)} |", "|---|---|---|"]
    for choice_name, choose in PLACEMENT_CHOICES.items():
        for order in ("smallest first", "largest first"):
            rows.append(
                f"| {choice_name} | {order} | {sum(fits_on_one_gpu(ORDERS[order](one), choose) for one in every)} |"
            )
    suited = sum(any(fits_on_one_gpu(order, layouts.first_fit) for order in permutations(one)) for one in every)
    rows.insert(4, f"| {next(iter(PLACEMENT_CHOICES))} | in the order that suits the layout | {suited} |")
    return "\n".join(rows) + "\n"


def table_of_full_fleet() -> str:
    """Return a table: requests for exactly what fits, by order and choice of GPUs."""
    rows = [
        "| asked for | placed by | find no place | of 3g, 4g and 7g | compute slices left |",
        "|---" * 5 + "|",
    ]
    for order_name, order in ORDERS.items():
        for choice_name, choice in GPU_CHOICES.items():
            runs = [place_all(seed, order, choice) for seed in range(STREAMS)]
            none = mean(len(fleet.refused) / len(requested) for requested, fleet in runs)
            large = mean(_large(fleet.refused) / _large(requested) for requested, fleet in runs)
            left = mean(fleet.free()[1] / COMPUTE for _, fleet in runs)
            rows.append(f"| {order_name} | {choice_name} | {none:.1%} | {large:.1%} | {left:.1%} |")
    left = mean(1 - sum(size(one)[1] for one in requests(Random(seed))) / COMPUTE for seed in range(STREAMS))
    rows.append(f"| all known beforehand | an operator | 0.0% | 0.0% | {left:.1%} |")
    return "\n".join(rows) + "\n"


def table_of_churn() -> str:
    """Return a table: a fleet after many requests and releases, by load and choice of GPUs."""
    rows = ["| held | placed by | find no place | 7g that still fit | 4g | 3g |", "|---" * 6 + "|"]
    for load in LOADS:
        for choice_name, choice in GPU_CHOICES.items():
            runs = [simulate_churn(seed, load, choice) for seed in range(STREAMS)]
            none = sum(len(fleet.refused) for _, fleet in runs) / sum(requested for requested, _ in runs)
            fit = " | ".join(f"{mean(fleet.room(p) for _, fleet in runs):.1f}" for p in reversed(LARGE))
            rows.append(f"| {load} % | {choice_name} | {none:.1%} | {fit} |")
    return "\n".join(rows) + "\n"


def _large(profiles: Iterable[str]) -> int:
    return sum(profile in LARGE for profile in profiles)
