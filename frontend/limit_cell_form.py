"""The form of one cell of the matrix of limits."""

from django import forms
from django.http import QueryDict

from allocations.limits.matrix import MatrixCell, MatrixRow
from allocations.limits.services import LimitChange
from frontend.base_form import Form
from portal.tenants.models import Team
from quotas.limits.models import MAX_UNITS
from quotas.limits.tree import ZERO_QUOTA, Quota


def _amount(label: str, empty: str) -> forms.IntegerField:
    """Return the field of an amount, which an empty value leaves ``empty``."""
    widget = forms.NumberInput(attrs={"inputmode": "numeric", "autocomplete": "off", "placeholder": empty})
    return forms.IntegerField(label=label, min_value=0, max_value=MAX_UNITS, widget=widget, required=False)


class AmountsForm(Form):
    """The amounts of a quota; an empty borrowing or lending limit is unlimited, and an empty
    guaranteed quota is none, which is not one of 0.
    """

    nominal = _amount("Guaranteed", "none")
    borrowing = _amount("Borrowing limit", "unlimited")
    lending = _amount("Lending limit", "unlimited")


class CellForm(AmountsForm):
    """The quota of one holder of one pool. A department at the top of the organization has a guaranteed quota alone."""

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
        if has_focus:
            self.fields["nominal"].widget.attrs["autofocus"] = True
        if row.stands_alone:
            del self.fields["borrowing"], self.fields["lending"]

    def change(self) -> LimitChange | None:
        """Return the change that the valid values are; None if they are the quota as it is."""
        quota, values = self._cell.quota, self.cleaned_data
        is_none = values["nominal"] is None
        wanted = None if is_none else Quota(**{**vars(quota or ZERO_QUOTA), **values})
        if wanted == quota:
            return None
        return LimitChange(self._row.holder, self._cell.pool, wanted)


def key_of(row: MatrixRow, cell: MatrixCell) -> str:
    """Return the name of the cell in forms: ``team:vision:l40s/gpu``."""
    return f"{kind_of(row)}:{row.holder.slug}:{cell.pool.key}"


def kind_of(row: MatrixRow) -> str:
    return "team" if isinstance(row.holder, Team) else "department"
