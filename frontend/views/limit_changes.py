"""The matrix of limits, changed in place: several cells under one preview."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from allocations.capacity.quota_usage import QuotaUsage
from allocations.limits import changes as limit_changes
from allocations.limits.matrix import Matrix, MatrixCell, MatrixRow, matrix_to_change
from allocations.limits.services import LimitChange
from frontend import form_idempotency
from frontend.limit_cell_form import AmountsForm, CellForm, key_of
from frontend.matrix_part import matrix_part, matrix_query
from frontend.pages import PageRequest, page, show
from frontend.presenters import limit_matrix as shown
from portal.core.errors import Invalid, NotVisible, Refused
from portal.tenants.models import Team

Cells = Mapping[str, tuple[MatrixRow, MatrixCell]]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def change(request: PageRequest) -> HttpResponse:
    """Open cells of the matrix, preview all changes together, and apply them. What is applied is what was previewed:
    the button that applies carries the token of the preview, and other values are previewed again.
    """
    usage = QuotaUsage()
    matrix = matrix_to_change(request.user, usage)
    cells = {key_of(row, cell): (row, cell) for row in matrix.rows for cell in row.cells}
    context: dict[str, Any] = {"key": form_idempotency.valid_key(request.POST.get("key", ""))}
    forms = _open(request, cells)
    if request.method == "POST" and not {"edit", "close"} & request.POST.keys():
        if (done := _preview_or_apply(request, forms, context)) is not None:
            return done
    elif source := request.GET.get("copy_from", ""):
        forms |= _copied(matrix, usage, cells, source, request.GET.get("copy_to", ""), context)
    part = matrix_part(request, matrix, forms)
    invalid = [(name, form) for name, form in forms.items() if form.is_bound and form.errors]
    context |= {
        "matrix": shown.table(part.matrix, forms),
        "part": part,
        "part_query": matrix_query(request),
        "team_slugs": shown.team_slugs(matrix),
        "may_set": True,
        "empty_cell": AmountsForm(prefix="KEY"),
        "invalid": [(shown.cell(*cells[name]), form) for name, form in invalid],
    }
    return show(request, "frontend/limit_changes.html", context, status=400 if invalid else 200)


def _open(request: PageRequest, cells: Cells) -> dict[str, CellForm]:
    """Return the forms of the cells that are open, with what was typed."""
    sent = request.POST if request.method == "POST" else None
    forms = {}
    for key in dict.fromkeys(request.POST.getlist("open")):
        if key != request.POST.get("close"):
            forms[key] = CellForm(*_found(cells, key), sent)
    opened = request.POST.get("edit") or request.GET.get("edit")
    if opened and opened not in forms:
        forms[opened] = CellForm(*_found(cells, opened), has_focus=True)
    return forms


def _found(cells: Cells, key: str) -> tuple[MatrixRow, MatrixCell]:
    if key not in cells:
        raise NotVisible("The limit")
    return cells[key]


def _preview_or_apply(
    request: PageRequest, forms: Mapping[str, CellForm], context: dict[str, Any]
) -> HttpResponse | None:
    """Apply the changes and return the redirect; or add their preview to the context."""
    valid = [form.is_valid() for form in forms.values()]  # of each, so that every error is shown
    if not all(valid):
        return None
    changed = {key: found for key, form in forms.items() if (found := form.change())}
    if not changed:
        context["is_same"] = True
        return None
    changes, token = list(changed.values()), request.POST.get("confirm", "")
    try:
        if token:
            try:
                return _apply(request, changes, token, context["key"])
            except Refused:
                context["is_changed"] = True
        preview = limit_changes.preview(request.user, changes)
    except Invalid as problem:
        for field, sentences in problem.errors.items():
            _, number, name = field.split(".", 2)
            forms[list(changed)[int(number)]].add_error(name, list(sentences))
        return None
    context |= {
        "preview": preview,
        "lines": shown.change_lines(changes, preview),
        "affected": shown.affected(preview),
        "is_over": any(effect.over for effect in preview.effects),
    }
    return None


def _apply(request: PageRequest, changes: Sequence[LimitChange], token: str, key: str) -> HttpResponse:
    def act() -> str:
        rows = limit_changes.apply(request.user, changes, token)
        if len(rows) == 1:
            now = f"is now {rows[0].nominal}" if changes[0].quota else "removed"
            return f"Limit of {rows[0].holder} for {rows[0].scope} {now}."
        return f"{len(rows)} limits changed."

    messages.success(request, form_idempotency.act_once(request.user, f"POST {request.path}", key, token, act))
    return redirect(f"{reverse('limits')}{matrix_query(request)}")


def _copied(
    matrix: Matrix, usage: QuotaUsage, cells: Cells, source: str, target: str, context: dict[str, Any]
) -> dict[str, CellForm]:
    """Return the forms that give one team the limits of another."""
    teams = {row.holder.slug: row.holder for row in matrix.rows if isinstance(row.holder, Team)}
    if source not in teams or target not in teams:
        raise NotVisible("The team")
    pools = [column.pool for column in matrix.columns]
    wanted = limit_changes.copied(usage.quotas, teams[source], teams[target], pools)
    context |= {"copy_from": source, "copy_to": target, "is_copy": True, "copies": len(wanted)}
    keyed = {f"team:{target}:{change.row().scope}": change for change in wanted}
    return {key: CellForm(*_found(cells, key), quota=change.quota) for key, change in keyed.items()}


urlpatterns = [
    path("limits/changes", change, name="change-limits"),
]
DOCS = "how-to/set-limits"
