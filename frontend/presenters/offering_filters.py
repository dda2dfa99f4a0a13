"""The table of the request form: its order, and its filters by model, memory, kind, price and what is available now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from frontend.presenters import amounts
from frontend.presenters.offerings import FlavorChoice, Offer
from frontend.tables import Column, Sorting
from quotas.catalog.models import Kind

PRICES = ("0.25", "0.50", "1", "2", "4", "8")
KINDS = {Kind.WHOLE: "Whole GPUs", Kind.MIG: "MIG slices", Kind.SHARED: "Shared slices", Kind.CLAIM: "Custom claims"}


@dataclass(frozen=True)
class FilterField:
    """A select of the filter bar; ``options`` are its values and words, ``value`` is the chosen one or empty."""

    name: str
    label: str
    options: list[tuple[str, str]]
    value: str


@dataclass(frozen=True)
class OfferGroup:
    """Rows of the table. ``group`` is the heading of its flavors, ``fold`` the words for what is folded; both empty if
    there is none.
    """

    offers: list[Offer]
    group: str = ""
    fold: str = ""


@dataclass(frozen=True)
class Filtered:
    """The models that meet the filters, the filter bar, and the rows in order. ``slices`` is how many are shown."""

    choices: list[FlavorChoice]
    fields: list[FilterField]
    is_now: bool
    is_filtered: bool
    sorting: Sorting

    @property
    def slices(self) -> int:
        return sum(len(choice.offers) for choice in self.choices)

    @property
    def sort(self) -> str:
        """The value of the address that sorts so; empty if nothing does."""
        column = self.sorting.column
        return f"{'-' if self.sorting.is_descending else ''}{column.name}" if column else ""

    @property
    def groups(self) -> list[OfferGroup]:
        """The rows, by model with the MIG slices folded; in one group if they are sorted or filtered."""
        if self.sorting.column:
            return [OfferGroup(self.sorting.rows(offer for choice in self.choices for offer in choice.offers))]
        found = []
        for choice in self.choices:
            if self.is_filtered or not choice.is_folded:
                found.append(OfferGroup(choice.offers, choice.group))
            else:
                found += [
                    OfferGroup(choice.unfolded, choice.group),
                    OfferGroup(choice.mig, choice.group, _fold(choice)),
                ]
        return found


def _fold(choice: FlavorChoice) -> str:
    """Return ``7 MIG slices, from 0.46``."""
    prices = [offer.per_hour for offer in choice.mig if offer.per_hour is not None]
    return f"{len(choice.mig)} MIG slices" + (f", from {amounts.rate(min(prices))}" if prices else "")


def columns(currency: str) -> list[Column]:
    return [
        Column("model", "Model", ("product", "kind")),
        Column("slice", "Slice", "kind"),
        Column("vram", "VRAM", "memory_gib", is_number=True),
        Column("cpu", "vCPU", "node_share.cpu_millicores", is_number=True),
        Column("ram", "RAM", "node_share.memory_mib", is_number=True),
        Column("isolation", "Isolation", "isolation"),
        Column("rate", f"{currency}/h", "per_hour", is_number=True),
        Column("free", "Free for you", "headroom.can_get_now", is_number=True),
        Column("next", "Next free", "available_at"),
    ]


def filtered(choices: Sequence[FlavorChoice], values: Mapping[str, str], currency: str, sorting: Sorting) -> Filtered:
    """Return the choices that meet the filters in ``values``; a value that no filter offers is ignored.

    The chosen offering stays in sight.
    """
    fields = _fields(choices, values, currency)
    is_now = bool(values.get("now"))
    wanted = {field.name: field.value for field in fields if field.value}
    tests = [_TESTS[name](value) for name, value in wanted.items() if name != "model"]
    if is_now:
        tests.append(lambda offer: not offer.unavailable and offer.headroom.can_get_now > 0)
    found = []
    for choice in choices:
        is_model = choice.product == wanted.get("model", choice.product)
        offers = [
            offer
            for offer in choice.offers
            if (is_model and all(test(offer) for test in tests)) or offer.key == values.get("offering")
        ]
        if offers:
            found.append(replace(choice, offers=offers))
    return Filtered(found, fields, is_now, bool(wanted) or is_now, sorting)


def _fields(choices: Iterable[FlavorChoice], values: Mapping[str, str], currency: str) -> list[FilterField]:
    choices = list(choices)
    offers = [offer for choice in choices for offer in choice.offers]
    kinds = {offer.kind_value for offer in offers}
    memory = sorted({offer.memory_gib for offer in offers if offer.memory_gib})
    dearest = max((offer.per_hour for offer in offers if offer.per_hour is not None), default=Fraction(0))
    options = {
        "model": ("Model", [(one, one) for one in dict.fromkeys(choice.product for choice in choices)]),
        "memory": ("Memory", [(str(gib), f"At least {gib} GiB") for gib in memory]),
        "kind": ("Kind", [(kind.value, words) for kind, words in KINDS.items() if kind in kinds]),
        "price": ("Price", [(p, f"Up to {p} {currency} per hour") for p in PRICES if Fraction(p) < dearest]),
    }
    return [
        FilterField(name, label, listed, chosen if (chosen := values.get(name, "")) in dict(listed) else "")
        for name, (label, listed) in options.items()
    ]


Test = Callable[[Offer], bool]
_TESTS: Mapping[str, Callable[[str], Test]] = {
    "memory": lambda value: lambda offer: offer.memory_gib >= int(value),
    "kind": lambda value: lambda offer: offer.kind_value == value,
    "price": lambda value: lambda offer: offer.per_hour is not None and offer.per_hour <= Fraction(value),
}
