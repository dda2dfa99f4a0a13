"""The forms of prices, costs of nodes, bills and fixed costs. Services check what forms do not."""

from collections.abc import Mapping
from typing import Any

from django import forms

from frontend.forms import MINUTE
from frontend.previewed_form import PreviewedForm
from portal.core.errors import Invalid, Problem
from portal.core.reading import digest_of
from portal.tenants.models import Team, User
from quotas.costs import bills, capacity_services, currencies, price_tables, services, subjects
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost
from quotas.costs.node_split import PRESETS
from quotas.costs.node_terms import Term
from quotas.costs.price_tables import COLUMN_OF_FIELD, Import

PLAIN = {"autocomplete": "off"}
MAX_TABLE = 1_000_000
NOT_TEXT = "The file is not UTF-8 text. Save it as CSV in UTF-8."


def _amount(help_text: str, **options: Any) -> forms.DecimalField:
    widget = forms.TextInput(attrs={**PLAIN, "inputmode": "decimal"})
    return forms.DecimalField(max_digits=20, label="Amount", help_text=help_text, widget=widget, **options)


def _source() -> forms.CharField:
    return forms.CharField(
        required=False,
        max_length=200,
        help_text="Where the figure comes from, such as a contract or an invoice.",
        widget=forms.TextInput(attrs=PLAIN),
    )


def _since() -> forms.DateTimeField:
    return forms.DateTimeField(
        required=False,
        label="From",
        input_formats=[MINUTE],
        help_text="In your time zone. Empty: from now on.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MINUTE),
    )


def _month(help_text: str) -> forms.CharField:
    return forms.CharField(max_length=7, help_text=help_text, widget=forms.TextInput(attrs={**PLAIN, "type": "month"}))


class DatedForm(PreviewedForm):
    """A form of an amount in the portal's currency, which is asked for only as long as there is none."""

    currency = forms.CharField(
        max_length=3,
        initial="EUR",
        help_text="ISO 4217, such as EUR. All amounts use it, and it cannot change later.",
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.unit = currencies.of_portal()
        if self.unit is not None:
            del self.fields["currency"]
            if "amount" in self.fields:
                self.fields["amount"].label = f"Amount in {self.unit}"

    def add_problem(self, problem: Problem) -> None:
        """Add the errors of a refusal, each at the field that has what it names."""
        errors: dict[str, list[str]] = {}
        for name, messages in problem.errors.items():
            errors.setdefault(COLUMN_OF_FIELD.get(name, name), []).extend(messages)
        super().add_problem(Invalid(errors) if errors else problem)

    @property
    def _currency(self) -> str:
        return str(self.cleaned_data.get("currency", ""))


class PriceForm(DatedForm):
    """A price of a GPU-hour of a flavor, or the list price of an offering; without an amount it ends."""

    of = forms.ChoiceField(label="Price of")
    amount = _amount("Per GPU-hour, or per slice-hour of an offering. Empty: the list price ends.", required=False)
    valid_from = _since()
    source = _source()
    field_order = ("of", "amount", "currency", "valid_from", "source")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["of"].choices = subjects.priced(user)  # type: ignore[attr-defined]

    def act(self) -> Price:
        values = self.cleaned_data
        kind, _, name = values["of"].partition(":")
        more = self._currency, values["valid_from"], values["source"]
        if kind == subjects.OFFERING:
            return services.set_slice_price(self.user, name, values["amount"], *more)
        if values["amount"] is None:
            raise Invalid({"amount": ["Give the price of a GPU-hour. Only a list price of an offering can end."]})
        return services.set_price(self.user, name, values["amount"], *more)


class NodeCostForm(DatedForm):
    """What an hour of a GPU or of a node costs the platform: of a flavor and a term, or of one node."""

    of = forms.CharField(
        label="Flavor or node",
        max_length=318,
        help_text="A flavor, such as h100, or a node as cluster/name.",
        widget=forms.TextInput(attrs={**PLAIN, "autocapitalize": "none", "spellcheck": "false", "list": "flavors"}),
    )
    term = forms.ChoiceField(
        required=False,
        choices=[("", "–"), *((term.value, term.value) for term in Term)],
        help_text="How nodes of the flavor are paid. Empty for one node.",
    )
    per = forms.ChoiceField(choices=NodeCost.Per.choices, label="Amount per", widget=forms.RadioSelect, initial="gpu")
    amount = _amount("Per hour.")
    split = forms.CharField(
        required=False,
        max_length=80,
        help_text=f"What of a node's cost is its GPUs': {', '.join(PRESETS)}, or weights of a CPU, a GiB and a GPU as "
        "0.9:0.1:9. Empty: all of it.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    valid_from = _since()
    source = _source()
    field_order = ("of", "term", "per", "amount", "split", "currency", "valid_from", "source")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.flavors = subjects.flavors(user)

    def act(self) -> NodeCost:
        values = self.cleaned_data
        cluster, slash, node = values["of"].strip().partition("/")
        flavor = "" if slash else cluster
        subject = capacity_services.subject_named(self.user, flavor, values["term"], cluster if slash else "", node)
        amount = values["amount"], values["per"], values["split"]
        more = self._currency, values["valid_from"], values["source"]
        return capacity_services.set_node_cost(self.user, subject, *amount, *more)


class NodeTermForm(DatedForm):
    """The term by which a node is paid, where its labels do not say it."""

    of = forms.CharField(
        label="Node",
        max_length=318,
        help_text="As cluster/name.",
        widget=forms.TextInput(attrs={**PLAIN, "autocapitalize": "none", "spellcheck": "false"}),
    )
    term = forms.ChoiceField(choices=[(term.value, term.value) for term in Term], widget=forms.RadioSelect)
    valid_from = _since()

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields.pop("currency", None)
        subjects.flavors(user)

    def act(self) -> NodeTerm:
        values = self.cleaned_data
        cluster, _, node = values["of"].strip().partition("/")
        return capacity_services.set_node_term(self.user, cluster, node, values["term"], values["valid_from"])


class BillForm(DatedForm):
    """The bill of a cluster for a month that has ended."""

    cluster = forms.ChoiceField()
    month = _month("One that has ended, such as 2026-10.")
    amount = _amount("Total of the month.", decimal_places=bills.PLACES)
    source = _source()
    field_order = ("cluster", "month", "amount", "currency", "source")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["cluster"].choices = [(slug, slug) for slug in subjects.clusters(user)]  # type: ignore[attr-defined]

    def act(self) -> Bill:
        values = self.cleaned_data
        month = bills.month_of(values["month"])
        return bills.enter_bill(self.user, values["cluster"], month, values["amount"], self._currency, values["source"])


class SharedCostForm(DatedForm):
    """A fixed cost of each month, which all share."""

    name = forms.CharField(
        max_length=bills.MAX_NAME,
        help_text="Such as network or support. A later one of the same name replaces it.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    month = _month("The first month, such as 2026-11.")
    amount = _amount("Per month. 0 ends it.", decimal_places=bills.PLACES)
    split = forms.ChoiceField(
        choices=[("weighted", "In proportion to GPU cost"), ("even", "Evenly between teams")],
        widget=forms.RadioSelect,
        initial="weighted",
    )
    cluster = forms.ChoiceField(required=False, help_text="Cluster whose GPUs share the cost.")
    teams = forms.ModelMultipleChoiceField(
        Team.objects.none(),
        required=False,
        to_field_name="slug",
        help_text="Only if the cost is split evenly. Select none to split it between all current teams.",
        widget=forms.SelectMultiple(attrs={"size": 4}),
    )
    source = _source()
    field_order = ("name", "month", "amount", "currency", "split", "teams", "cluster", "source")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        clusters = [("", "All clusters"), *((slug, slug) for slug in subjects.clusters(user))]
        self.fields["cluster"].choices = clusters  # type: ignore[attr-defined]
        self.fields["teams"].queryset = Team.objects.order_by("slug")  # type: ignore[attr-defined]

    def digest(self) -> str:
        values: Mapping[str, Any] = {**self.cleaned_data, "teams": self._teams}
        return digest_of([str(values[name]) for name in self.fields])

    def act(self) -> SharedCost:
        values = self.cleaned_data
        return bills.set_shared_cost(
            self.user,
            values["name"],
            bills.month_of(values["month"]),
            values["amount"],
            values["split"],
            cluster=values["cluster"],
            teams=self._teams,
            currency=self._currency,
            source=values["source"],
        )

    @property
    def _teams(self) -> list[str]:
        return [team.slug for team in self.cleaned_data["teams"]]


class TableForm(PreviewedForm):
    """A table of prices as a file, or as text: what was checked is in the text, so that just this is imported."""

    file = forms.FileField(
        required=False,
        label="CSV file",
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}),
    )
    csv = forms.CharField(
        required=False,
        label="CSV",
        strip=False,
        max_length=MAX_TABLE,
        help_text=f"Columns: {', '.join(price_tables.COLUMNS)}.",
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if file := values.get("file"):
            if file.size > MAX_TABLE:
                self.add_error("file", f"Give at most {MAX_TABLE} bytes.")
            else:
                try:
                    values["csv"] = file.read().decode("utf-8-sig")
                except UnicodeDecodeError:
                    self.add_error("file", NOT_TEXT)
        values["csv"] = (values.get("csv") or "").replace("\r\n", "\n")
        if not self.errors and not values["csv"].strip():
            self.add_error("file", "Choose a CSV file, or paste its rows below.")
        return values

    def digest(self) -> str:
        return digest_of(self.cleaned_data["csv"])

    def require_applied(self, done: Import) -> None:
        """Raise Invalid if an import was not applied, which was checked before: something changed since."""
        if not done.is_applied:
            raise Invalid({"csv": ["Something changed since the check, so nothing was imported. Check it again."]})
