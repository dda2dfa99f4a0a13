"""What refers to a flavor, so that it has to stay accepted: limits, also past ones, operators' presets and allocations.

Prices and costs of capacity do not count: a proposal may have them, and keeps its name while it has a price.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db.models import ManyToOneRel, Model, QuerySet

from portal.core import protected
from quotas.catalog.models import Flavor, Preset

OBSERVED, COSTS = "catalog", "costs"
"""Apps whose rows do not count: what discovery found of a flavor, but presets, and what its capacity costs."""


def to_flavor(flavor: Flavor) -> list[str]:
    """Return how many rows of each kind refer to the flavor, its pools or offerings, such as ``2 limits``."""
    found: Counter[type[Model]] = Counter()
    for rows in _parts(flavor):
        keys = list(rows.values_list("pk", flat=True))
        for relation in _relations(rows.model):
            model = relation.related_model
            rows_of_model = model._default_manager.filter(**{f"{relation.field.name}__in": keys})
            found[model] += (rows_of_model.filter(owner=None) if model is Preset else rows_of_model).count()
    return [_words(model, number) for model, number in found.items() if number]


def lock(flavor: Flavor) -> None:
    """Lock the flavor, its pools and offerings until the transaction ends, so that no row that refers to them is added
    meanwhile.
    """
    for rows in _parts(flavor):
        list(rows.select_for_update())


def _parts(flavor: Flavor) -> Sequence[QuerySet[Any]]:
    return Flavor.objects.filter(pk=flavor.pk), flavor.pools.order_by("pk"), flavor.offerings.order_by("pk")


def _relations(model: type[Model]) -> list[ManyToOneRel]:
    """Return the relations that keep a row from being deleted, but for what is observed and what capacity costs."""
    return [
        one
        for one in protected.relations(model)
        if one.related_model is Preset or one.related_model._meta.app_label not in (OBSERVED, COSTS)
    ]


def _words(model: type[Model], number: int) -> str:
    names = model._meta.verbose_name if number == 1 else model._meta.verbose_name_plural
    return f"{number} {names}"
