"""What of each GPU model is held, unmanaged and free, in GPUs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from allocations.capacity.pool_use import PoolUse
from allocations.limits.services import text
from frontend.presenters import amounts
from quotas.catalog.models import Offering
from quotas.limits import counting


@dataclass(frozen=True)
class ModelLine:
    """A GPU model in GPUs. ``meter`` is what is held and unmanaged, in per cent of the total; all of it if that is more
    than there is, and then ``is_over``. ``fits`` is how many of the largest slice of each pool fit now.
    """

    flavor: str
    total: str
    held: str
    unmanaged: str
    blocked: str
    free: str
    meter: int
    is_over: bool
    fits: str


def lines(pools: Iterable[PoolUse]) -> list[ModelLine]:
    """Return the models by name."""
    by_flavor: dict[str, list[PoolUse]] = {}
    for one in pools:
        by_flavor.setdefault(one.pool.flavor.name, []).append(one)
    return [_line(flavor, of_flavor) for flavor, of_flavor in sorted(by_flavor.items())]


def _line(flavor: str, pools: Sequence[PoolUse]) -> ModelLine:
    def gpus(amount: Callable[[PoolUse], Fraction | int]) -> Fraction:
        return sum((amount(one) * gpus_per_unit(one.largest) for one in pools), Fraction(0))

    total, blocked = gpus(lambda one: one.total), gpus(lambda one: one.blocked)
    used = gpus(lambda one: one.held + one.unmanaged + one.blocked)
    return ModelLine(
        flavor=flavor,
        total=text(total),
        held=text(gpus(lambda one: one.held)),
        unmanaged=text(gpus(lambda one: one.unmanaged)),
        blocked=text(blocked) if blocked else "",
        free=text(gpus(lambda one: one.left)),
        meter=amounts.meter(used, total),
        is_over=any(one.held > one.total for one in pools),
        fits=", ".join(f"{one.free_slices} × {one.largest.key}" for one in pools),
    )


def gpus_per_unit(offering: Offering) -> Fraction:
    """Return the GPUs that one unit of the offering's pool is."""
    units = counting.demand(offering, 1).pools[offering.pool_id]
    return offering.gpu_share / units if units else Fraction(0)
