"""Rows that keep another row from being deleted."""

from django.db.models import PROTECT, ManyToOneRel, Model


def relations(model: type[Model]) -> list[ManyToOneRel]:
    """Return the relations that keep a row of the model from being deleted, also those without a name on this side."""
    every = model._meta.get_fields(include_hidden=True)
    return [one for one in every if isinstance(one, ManyToOneRel) and one.on_delete is PROTECT]
