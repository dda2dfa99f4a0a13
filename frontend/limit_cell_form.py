"""The form of one cell of the matrix of limits."""

from django import forms
from django.http import QueryDict

from allocations.limits.matrix import MatrixCell, MatrixRow
from allocations.limits.services import LimitChange
from frontend.base_form import Form
from portal.tenants.models import Team
from quotas.limits.models import MAX_UNITS
from quotas.limits.tree import ZERO_QUOTA, Quota


def _amount(label: str, *, required: bool) -> forms.IntegerField:
    attributes = {"inputmode": "numeric", "autocomplete": "off"}
    attributes |= {} if required else {"placeholder": "unlimited"}
    widget = forms.NumberInput(attrs=attributes)
    return forms.IntegerField(label=label, min_value=0, max_value=MAX_UNITS, widget=widget, required=required)


class CellForm(Form):
    """The amounts of one holder's quota of one pool; an empty borrowing or lending limit is unlimited, and without a
    guaranteed quota there stays none where none was. A department at the top of the organization has a guaranteed quota
    alone.
    """

    nominal = _amount("Guaranteed", required=True)
    borrowing = _amount("Borrowing limit", required=False)
    lending = _amount("Lending limit", required=False)

    def __init__(
        self,
        row: MatrixRow,
        cell: MatrixCell,
        data: QueryDict | None = None,
        quota: Quota | None = None,
        *,
        has_focus: bool = False,
    ) -> None:
        """``quota``: what a form that is not sent yet proposes; None: the quota as it is."""
        proposed = vars(quota or cell.quota or ZERO_QUOTA)
        if not (quota or cell.quota):
            proposed = {**proposed, "nominal": None}
        super().__init__(data, prefix=key_of(row, cell), initial=proposed)
        self._row, self._cell = row, cell
        self.fields["nominal"].required = cell.quota is not None
        if has_focus:
            self.fields["nominal"].widget.attrs["autofocus"] = True
        if row.stands_alone:
            del self.fields["borrowing"], self.fields["lending"]

    def change(self) -> LimitChange | None:
        """Return the change that the valid values are; None if they are the quota as it is."""
        quota, values = self._cell.quota, self.cleaned_data
        if values["nominal"] is None:
            return None
        wanted = Quota(**{**vars(quota or ZERO_QUOTA), **values})
        if wanted == quota:
            return None
        return LimitChange(self._row.holder, self._cell.pool, wanted)


def key_of(row: MatrixRow, cell: MatrixCell) -> str:
    """Return the name of the cell in forms: ``team:vision:l40s/gpu``."""
    return f"{kind_of(row)}:{row.holder.slug}:{cell.pool.key}"


def kind_of(row: MatrixRow) -> str:
    return "team" if isinstance(row.holder, Team) else "department"
