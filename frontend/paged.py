"""A page of a long list, with the addresses of the pages beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest


@dataclass(frozen=True)
class Paged:
    """Rows ``first`` to ``last`` of all ``of``; ``previous`` and ``next`` are queries of the pages beside it, or empty.

    Other parameters of the address stay as they are.
    """

    rows: Page[Any]
    previous: str
    next: str

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    @property
    def first(self) -> int:
        return self.rows.start_index()

    @property
    def last(self) -> int:
        return self.rows.end_index()

    @property
    def of(self) -> int:
        return self.rows.paginator.count

    @property
    def is_part(self) -> bool:
        return self.rows.has_other_pages()


def paged(request: HttpRequest, rows: Any, name: str, size: int) -> Paged:
    """Return the page of rows (a queryset or a list) that the parameter ``name`` asks for, by default the first."""
    found = Paginator(rows, size).get_page(request.GET.get(name))

    def at(number: int) -> str:
        query = request.GET.copy()
        query[name] = str(number)
        return f"?{query.urlencode()}"

    before = at(found.previous_page_number()) if found.has_previous() else ""
    return Paged(found, before, at(found.next_page_number()) if found.has_next() else "")
