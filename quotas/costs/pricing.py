"""Sets prices and what capacity costs, by the names of things, for operators."""

from datetime import datetime
from decimal import Decimal

from portal.core.errors import Invalid
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Flavor, Node, Offering
from quotas.costs import capacity_services, currencies, services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.models import NodeCost, NodeTerm, Price
from quotas.costs.node_terms import Term


def set_price(
    user: User,
    flavor: str,
    amount: Decimal | str,
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> Price:
    """Set the price of the flavor with this name, by default in the currency of all prices; as `services.set_price`.

    Raises Forbidden; Invalid for an unknown flavor.
    """
    access.require(user, "price.manage", None)
    row = _flavor(flavor)
    return services.set_price(user.username, row, amount, currencies.check(currency), valid_from, source)


def set_slice_price(
    user: User,
    offering: str,
    amount: Decimal | str | None,
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> Price:
    """Set the list price of a slice of this offering; as `services.set_slice_price`. Raises as `set_price`."""
    access.require(user, "price.manage", None)
    row = Offering.objects.select_related("flavor").filter(key=offering).first()
    if row is None:
        raise Invalid({"offering": [f"There is no offering {named(offering)}. GET /offerings lists them."]})
    return services.set_slice_price(user.username, row, amount, currencies.check(currency), valid_from, source)


def set_node_cost(
    user: User,
    subject: CostSubject,
    per_hour: Decimal | str,
    per: str,
    split: str = "",
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> NodeCost:
    """Set what an hour of a node or of its GPUs costs the platform; as `capacity_services.set_node_cost`."""
    access.require(user, "price.manage", None)
    if per not in NodeCost.Per.values:
        raise Invalid({"per": [f"Use one of {', '.join(NodeCost.Per.values)}."]})
    by = capacity_services.weights(split) if split else None
    return capacity_services.set_node_cost(
        user.username, subject, per_hour, NodeCost.Per(per), by, currency, valid_from, source
    )


def set_node_term(user: User, cluster: str, node: str, term: str, valid_from: datetime | None = None) -> NodeTerm:
    """Say by which term this node is paid; as `capacity_services.set_node_term`."""
    access.require(user, "price.manage", None)
    return capacity_services.set_node_term(user.username, node_named(cluster, node), term_named(term), valid_from)


def subject_named(user: User, flavor: str = "", term: str = "", cluster: str = "", node: str = "") -> CostSubject:
    """Return what a cost is of: a flavor and term, or a node of a cluster. Raises Forbidden and Invalid."""
    access.require(user, "price.manage", None)
    return CostSubject(
        _flavor(flavor) if flavor else None,
        term_named(term) if term else None,
        node_named(cluster, node) if node else None,
    )


def term_named(term: str) -> Term:
    try:
        return Term(term)
    except ValueError as error:
        raise Invalid({"term": [f"Use one of {', '.join(Term)}."]}) from error


def node_named(cluster: str, node: str) -> Node:
    row = Node.objects.filter(cluster=cluster, name=node).first()
    if row is None:
        raise Invalid({"node": [f"There is no GPU node {named(node)} in cluster {named(cluster)}."]})
    return row


def _flavor(name: str) -> Flavor:
    row = Flavor.objects.filter(name=name).first()
    if row is None:
        raise Invalid({"flavor": [f"There is no flavor {named(name)}. GET /flavors lists them."]})
    return row
