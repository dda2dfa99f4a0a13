"""The address of a view of costs: the parameters of REST, and how the page orders its rows."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.http import QueryDict
from django.urls import reverse

QUESTION = ("window", "timezone", "week_start", "aggregate", "filter", "idle", "idle_by", "idle_split", "cost")
"""The parameters that the page and REST share."""
OWN = ("accumulate", "sort", "page")
"""Those of the page: of its chart, and of its table."""
DEFAULTS = {"window": "7d", "aggregate": "project"}
REST = "/api/v1/costs"


@dataclass(frozen=True)
class CostsAddress:
    """The values of the parameters, by name, without empty ones."""

    values: Mapping[str, str]

    def page(self, **changes: str) -> str:
        """Return the address of the page, changed. Another question begins on the first page of its rows."""
        changes = changes if changes.keys() <= {"page"} else {"page": "", **changes}
        return f"{reverse('costs')}?{self._query((*QUESTION, *OWN), changes)}"

    def forecast(self) -> str:
        """Return the address of the forecast of the same question."""
        return f"{reverse('costs-forecast')}?{self._query(QUESTION, {})}"

    def rest(self, route: str = "", **changes: str) -> str:
        """Return the path of REST that answers the same question."""
        return f"{REST}{route}?{self._query((*QUESTION, *changes), changes)}"

    def parameters(self, **changes: str) -> QueryDict:
        """Return the parameters that REST reads."""
        return QueryDict(self._query((*QUESTION, *changes), changes))

    def saved(self) -> str:
        """Return what is saved of a view: its query without the page of its rows."""
        return self._query((*QUESTION, *OWN), {"page": ""})

    def _query(self, names: tuple[str, ...], changes: Mapping[str, str]) -> str:
        values = {**self.values, **changes}
        return urlencode({name: values[name] for name in dict.fromkeys(names) if values.get(name)}, safe=":,/")


def address_of(parameters: QueryDict, zone: str) -> CostsAddress:
    """Return the address that the parameters have; without a time zone, it is the reader's."""
    given = {name: ",".join(parameters.getlist(name)) for name in (*QUESTION, *OWN) if name in parameters}
    values = {"timezone": zone, **DEFAULTS, **{name: value for name, value in given.items() if value}}
    return CostsAddress(values)


def curl(path: str) -> str:
    """Return the command that requests a path of REST."""
    return " \\\n  ".join(
        ["curl -sS", '-H "Authorization: Bearer $GPU_PORTAL_TOKEN"', shlex.quote(settings.PORTAL_URL + path)]
    )
