"""The named MIG layouts of a node's MIG manager: those generated for the card, and additional ones.

Source of the generated names: NVIDIA/mig-parted v0.15.0 pkg/mig/builder/{builder,balanced}.go.
"""

from collections.abc import Mapping

from quotas.catalog.mig_tables import Geometry, Profile

# Profile → number on one card. Empty: MIG is on without instances. None: MIG is off.
Layout = Mapping[str, int] | None

# Instances of `all-balanced`, by compute slices of the card: {compute slices of the instance: number}.
BALANCED = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}


def layouts_by_name(geometry: Geometry, custom: Mapping[str, Mapping[str, int]]) -> dict[str, Layout]:
    """Return the layout of every card, by configuration name.

    `added` are the administrator's configurations, unchecked: whether a card can be divided that way shows when the MIG
    manager applies it.
    """
    names: dict[str, Layout] = {"all-disabled": None, "all-enabled": {}}
    if balanced := _balanced(geometry):
        names["all-balanced"] = balanced
    for profile in geometry.profiles:
        names[f"all-{profile.name.replace('+', '.')}"] = {profile.name: profile.max_instances}
    return names | dict(custom)


def _balanced(geometry: Geometry) -> dict[str, int]:
    """Return the smallest plain profile of each size; empty if the card lacks one."""
    counts = BALANCED.get(geometry.compute, {})
    chosen = {size: _plain(geometry, size) for size in counts}
    return {profile.name: counts[size] for size, profile in chosen.items() if profile} if all(chosen.values()) else {}


def _plain(geometry: Geometry, compute: int) -> Profile | None:
    """Return, of the profiles with that many compute slices and no attribute (`+me`, `-me`), the one that fits most
    often.
    """
    plain = [p for p in geometry.profiles if p.compute == compute and not {"+", "-"} & set(p.name)]
    return max(plain, key=lambda profile: profile.max_instances, default=None)
