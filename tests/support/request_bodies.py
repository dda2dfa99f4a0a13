"""Request bodies, derived from what a view takes: the schema of a REST operation, or the forms that a page shows.

A body has what is required, and what else of a form `VALUES` names. Of an operation that requires nothing it has what
`OTHER` says, or else all that `VALUES` names.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError
from django.forms import BaseForm

from tests.support import api_contract

Body = dict[str, Any]
LIMIT = {"project": "vision-train", "pool": "l40s/gpu", "nominal": 3}
VALUES: Body = {
    **{"slug": "new", "name": "new", "department": "research", "team": "vision", "project": "vision-train"},
    **{"username": "anyone", "invitee": "anyone", "role": "viewer", "scopes": ["read"], "guard": "enforce"},
    **{"offering": "l40s/whole", "hours": 1, "hidden": False, "nominal": 3, "query": "window=7d&aggregate=member"},
    **{"cluster": "local", "node": "l40s-0", "term": "spot", "month": "2026-01", "amount": "1000", "per_hour": "0.50"},
    **{"holder": "project:vision-train", "scope": "pool:l40s/gpu", "csv": "kind,of,amount\nprice,l40s,1.30\n"},
    **{"changes": [LIMIT], "token": "of no preview", "confirm": "vision-train"},
}
"""Values by the name of the field, in the world of `tests/support/world.py`."""
OTHER: dict[str, Body] = {
    "POST /api/v1/people": {"username": "newcomer", "password": "a long sentence to sign in with"},
    "POST /api/v1/projects/<str:slug>/move": {"team": "language"},
    "POST /api/v1/allocations/release": {"project": ["vision-train"], "dry_run": True},
    **dict.fromkeys(("POST /api/v1/limits", "POST /api/v1/limits/preview"), LIMIT),
    **{f"{method} /api/v1/flavors/<str:name>": {"title": "L40S"} for method in ("PUT", "PATCH")},
    "POST /api/v1/prices": {"flavor": "l40s", "per_gpu_hour": "1.20", "valid_from": "2090-01-01T00:00:00Z"},
    "POST /api/v1/node-costs": {"flavor": "l40s", "term": "spot"},
    "POST /api/v1/saved-views": {"team": "vision"},
    "POST /login": {"username": "nobody", "password": "wrong"},
    "POST /projects/<str:slug>/archive": {"confirm": VALUES["confirm"]},
    "POST /projects/<str:slug>/guard": {"guard": VALUES["guard"]},
    "POST /flavors/<str:name>/offerings": {"offering": VALUES["offering"]},
    "POST /prices/node-costs/set": {"of": "l40s"},
    "POST /prices/node-terms/set": {"of": "local/l40s-0"},
    "POST /costs/views": {"name": "new", "query": VALUES["query"], "team": "vision"},
}
"""What is right where neither schema nor form says it, by route."""


def of_operation(route: str) -> Body:
    """Return the body of a REST route, such as ``POST /api/v1/teams``."""
    schema = api_contract.body_schema(*route.split(" "))
    fields = schema.get("properties", {})
    writable = {name for name, field in fields.items() if not field.get("readOnly")}
    names = schema.get("required", []) or ([] if route in OTHER else VALUES.keys() & writable)
    return _body(route, {name: [VALUES.get(name), *_of_schema(fields[name])] for name in names})


def _of_schema(field: dict[str, Any]) -> list[Any]:
    """Return the choices of a field, or a text if it takes any."""
    schema = api_contract.resolved(field)
    return schema.get("enum") or (["new"] if schema.get("type") == "string" and "format" not in schema else [])


def of_forms(route: str, forms: Iterable[BaseForm]) -> Body:
    """Return the body of a page's route, given the forms that the page shows."""
    named = [(form, name) for form in forms for name, field in form.fields.items() if field.required or name in VALUES]
    return _body(route, {name: _taken(form, name) for form, name in named})


def _taken(form: BaseForm, name: str) -> Iterator[Any]:
    """Yield what the field takes of its value here, its initial value, its choices, and any text."""
    field = form.fields[name]
    initial = field.prepare_value(form.get_initial_for_field(field, name))
    for value in (VALUES.get(name), initial, *(str(key) for key, _ in getattr(field, "choices", [])), "new"):
        with suppress(ValidationError):
            yield value if field.clean(value) is not None else None


def _body(route: str, values: Mapping[str, Iterable[Any]]) -> Body:
    first = {name: next((value for value in some if value is not None), None) for name, some in values.items()}
    body = first | OTHER.get(route, {})
    missing = [name for name, value in body.items() if value is None]
    assert not missing, f"What {route} takes as {missing} is not known. Add a line to VALUES or OTHER of {__file__}."
    return body
