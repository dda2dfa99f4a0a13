"""A condition for any number of values that is the same statement for all numbers of them."""

from collections.abc import Collection
from typing import Any

from django.db.models import F, Lookup


class AnyOf(Lookup):
    """The condition that a column has one of these values: ``= ANY(%s)``, one parameter however many they are.

    ``__in`` has a parameter for each value, so that Django compiles another statement for another number of them, which
    ``portal.core.query_templates`` cannot keep.
    """

    prepare_rhs = False

    def __init__(self, column: str, values: Collection[Any]) -> None:
        super().__init__(F(column), values)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, parameters = self.process_lhs(compiler, connection)
        return f"{column} = ANY(%s)", (*parameters, self.rhs)
