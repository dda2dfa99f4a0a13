"""The named MIG layouts that a node's MIG manager knows: those it generates for the card, and added ones.

Source of the generated names: NVIDIA/mig-parted v0.15.0 pkg/mig/builder/{builder,balanced}.go.
"""

from collections.abc import Mapping

from quotas.catalog.mig_tables import Geometry, Profile

# Profile → how many on one card. Empty: MIG is on and nothing is cut. None: MIG is off.
Layout = Mapping[str, int] | None

# By compute slices of the card: how many instances of which compute slices `all-balanced` makes.
BALANCED = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}


def known(geometry: Geometry, added: Mapping[str, Mapping[str, int]]) -> dict[str, Layout]:
    """Name → layout of every card. `added` come from the administrator and are taken as they are: whether a card can
    be cut so is seen when it is tried.
    """
    names: dict[str, Layout] = {"all-disabled": None, "all-enabled": {}}
    if balanced := _balanced(geometry):
        names["all-balanced"] = balanced
    for profile in geometry.profiles:
        names[f"all-{profile.name.replace('+', '.')}"] = {profile.name: profile.most}
    return names | dict(added)


def _balanced(geometry: Geometry) -> dict[str, int]:
    """The smallest plain profile of each size; empty where the card lacks one."""
    counts = BALANCED.get(geometry.compute, {})
    chosen = {size: _plain(geometry, size) for size in counts}
    return {profile.name: counts[size] for size, profile in chosen.items() if profile} if all(chosen.values()) else {}


def _plain(geometry: Geometry, compute: int) -> Profile | None:
    """Of the profiles with so many compute slices and no attribute (`+me`, `-me`), the one of which most fit."""
    plain = [p for p in geometry.profiles if p.compute == compute and not {"+", "-"} & set(p.name)]
    return max(plain, key=lambda profile: profile.most, default=None)
