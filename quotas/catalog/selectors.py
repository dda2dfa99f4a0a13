"""Reads the catalog."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from django.db.models import F, Q, QuerySet

from portal.tenants.models import User
from quotas.catalog import blocked_capacity, node_labels
from quotas.catalog.models import HOLDER_PODS, Flavor, Kind, Offering, Path, Pool, Preset
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.types import Discovered, GpuMemory, Identity


def known_names(cluster: str) -> tuple[dict[Identity, str], frozenset[str]]:
    """Return the names for `discovery.discover`: of this cluster's flavors, and those taken by other clusters."""
    known, taken = {}, set()
    for flavor in Flavor.objects.all():
        if flavor.cluster_id == cluster:
            known[Identity(flavor.product, flavor.path, flavor.strategy)] = flavor.name
        else:
            taken.add(flavor.name)
    return known, frozenset(taken)


def names_with_known_nodes() -> set[str]:
    """Return the flavors whose GPUs Kubernetes names, so that the node of what is held is known."""
    return set(Flavor.objects.filter(path=Path.DRA).values_list("name", flat=True))


def known_shares(cluster: str) -> dict[str, Fraction]:
    """Return `current_shares` for `discovery.discover`: the part of a GPU that a slice of each offering is, by key."""
    return {offering.key: offering.gpu_share for offering in Offering.objects.filter(flavor__cluster=cluster)}


def gpu_memory(cluster: str) -> GpuMemory:
    """Return `gpu_memory` for `discovery.discover`, the least of several flavors of a model. Labels of nodes that have
    MIG by strategy `single` do not count.
    """
    decided, labelled = dict[str, int](), dict[str, int]()
    for row in Flavor.objects.filter(cluster=cluster):
        model = node_labels.model(row.product)
        for found, memory in ((decided, row.gpu_memory_mib), (labelled, row.whole_gpu_mib)):
            if memory:
                found[model] = min(memory, found.get(model, memory))
    return GpuMemory(decided, labelled)


def offerings() -> QuerySet[Offering]:
    """Return all offerings of accepted flavors that are not hidden, with cluster, flavor, pool and its use."""
    shown = Offering.objects.filter(hidden=False, flavor__hidden=False, flavor__accepted=True)
    return shown.select_related("flavor__cluster", "pool__use")


def units(pool: Pool) -> int:
    """Return the units on healthy devices, without foreign use, and without free units that cannot have their share of
    their node.
    """
    use = getattr(pool, "use", None)
    return max(0, use.total - use.foreign - use.blocked) if use else 0


def per_gpu(cluster: str, found: Discovered) -> dict[str, NodeShare]:
    """Return what of its node goes with a GPU of each flavor that was found, as operators decided; one query."""
    rows = {row.name: row for row in Flavor.objects.filter(cluster=cluster)}
    shares = {}
    for flavor in found.flavors:
        row, now = rows.get(flavor.name, Flavor()), flavor.per_gpu
        row.node_cpu_millicores, row.node_memory_mib, row.node_pods = now.cpu_millicores, now.memory_mib, now.pods
        parts = [one.memory_part for one in found.offerings if one.flavor == flavor.name and one.kind != Kind.CLAIM]
        holders = HOLDER_PODS[Path(flavor.identity.path)]
        shares[flavor.name] = blocked_capacity.promised(row.per_gpu, parts, holders=holders)
    return shares


def fitting_slices(
    units: int, unit: Mapping[str, int], requests: Mapping[str, int], used: Mapping[str, int] = MappingProxyType({})
) -> int:
    """Return how many slices that consume `requests` fit in so many units of a pool of which `used` is taken; 0 for a
    resource that the pool lacks.
    """
    counts = [(units * unit.get(name, 0) - used.get(name, 0)) // amount for name, amount in requests.items() if amount]
    return max(0, min(counts, default=0))


def pools(cluster: str = "") -> QuerySet[Pool]:
    """Return pools with flavor and use, of one cluster or all, including those no longer found, since limits may refer
    to them.
    """
    rows = Pool.objects.select_related("flavor__cluster", "use").order_by("key")
    return rows.filter(flavor__cluster=cluster) if cluster else rows


def largest_first(rows: Iterable[Offering]) -> list[Offering]:
    """Return the offerings by what they take of a GPU, the largest first: whole GPUs before slices as large, custom
    claims last.
    """
    return sorted(rows, key=lambda one: (one.kind == Kind.CLAIM, -one.gpu_share, one.kind != Kind.WHOLE, one.key))


def operators_presets() -> QuerySet[Preset]:
    """Return the presets that operators offer, hidden ones too, in order, with their offering."""
    return Preset.objects.filter(owner=None).select_related("offering__flavor")


def presets() -> QuerySet[Preset]:
    """Return the operators' presets that are not hidden, in order, with their offering."""
    return operators_presets().filter(hidden=False)


def presets_for(user: User) -> QuerySet[Preset]:
    """Return the operators' presets that are not hidden, then the person's own, with their offering."""
    rows = Preset.objects.filter(Q(owner=None, hidden=False) | Q(owner=user))
    return rows.select_related("offering__flavor").order_by(F("owner").asc(nulls_first=True), "position", "name")
