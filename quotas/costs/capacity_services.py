"""Write operations on what nodes cost the platform, and by which term they are paid, for operators.

Costs and terms never change what they were used for: they begin now or later, unless nothing was stated for that time.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db import transaction
from django.db.models import Q

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.actors import Actor
from quotas.catalog.models import Flavor, Node
from quotas.costs import currencies, subjects
from quotas.costs.amounts import amount
from quotas.costs.models import NodeCost, NodeTerm
from quotas.costs.node_split import PRESETS, Weights
from quotas.costs.node_terms import Term
from quotas.metering import dirty_hours

ACTION = "price.manage"
WEIGHTS = ("cpu_weight", "memory_gib_weight", "gpu_weight")


@dataclass(frozen=True)
class CostSubject:
    """What a cost is of: all nodes of a flavor with this term, or one node."""

    flavor: Flavor | None = None
    term: Term | None = None
    node: Node | None = None

    def __post_init__(self) -> None:
        if (self.flavor is None) == (self.node is None):
            raise Invalid({"flavor": ["Give a flavor and a term, or a node."]})
        if (self.flavor is None) != (self.term is None):
            raise Invalid({"term": ["Give a term with a flavor, and none with a node."]})

    @property
    def columns(self) -> dict[str, Any]:
        return {"flavor": self.flavor, "term": self.term or "", "node": self.node}

    @property
    def cluster(self) -> str:
        return (self.flavor or self.node).cluster_id  # type: ignore[union-attr]  # one of them is given

    def __str__(self) -> str:
        return f"{self.flavor} {self.term}" if self.flavor else f"node {self.node}"


def subject_named(actor: Actor, flavor: str = "", term: str = "", cluster: str = "", node: str = "") -> CostSubject:
    """Return what a cost is of: a flavor and term, or a node of a cluster. Raises Forbidden and Invalid."""
    access.require(actor, ACTION, None)
    return CostSubject(
        subjects.flavor_named(flavor) if flavor else None,
        _term(term) if term else None,
        subjects.node_named(cluster, node) if node else None,
    )


def _term(name: str) -> Term:
    try:
        return Term(name)
    except ValueError as error:
        raise Invalid({"term": [f"Use one of {', '.join(Term)}."]}) from error


def weights(split: str) -> Weights:
    """Return the weights of a preset, or of three numbers: CPU, GiB, GPU, such as ``0.9:0.1:9``."""
    if split in PRESETS:
        return PRESETS[split]
    parts = split.split(":")
    if len(parts) != len(WEIGHTS):
        example = "a CPU's, a GiB's and a GPU's weight as 0.9:0.1:9"
        raise Invalid({"split": [f"Use one of {', '.join(PRESETS)}, or give {example}."]})
    found = [amount(part, "split") for part in parts]
    if not found[-1]:
        raise Invalid({"split": ["A GPU weighs more than 0."]})
    return Weights(*map(Fraction, found))


def set_node_cost(
    actor: Actor,
    subject: CostSubject,
    per_hour: Decimal | str,
    per: str,
    split: str = "",
    currency: str = "",
    valid_from: datetime | None = None,
    source: str = "",
) -> NodeCost:
    """Set what an hour costs from ``valid_from`` (default: now) on, of a GPU or of a node, which is then split by
    `weights` (default: all to its GPUs). The same cost set twice is one row. Raises Forbidden, Invalid and Refused.
    """
    access.require(actor, ACTION, None)
    if per not in NodeCost.Per.values:
        raise Invalid({"per": [f"Use one of {', '.join(NodeCost.Per.values)}."]})
    by = weights(split) if split else None
    with transaction.atomic(), advisory_lock("prices"):
        now = clock.now()
        begins = valid_from or now
        values = _checked_node_cost(subject, per_hour, NodeCost.Per(per), by, currency, begins, now)
        row, created = NodeCost.objects.get_or_create(
            **subject.columns, valid_from=begins, defaults={**values, "source": source}
        )
        if created:
            dirty_hours.mark_all(begins, cluster=subject.cluster)
            audit(actor.username, "node_cost.set", str(subject), after=audit_values(row))
    return row


def _checked_node_cost(
    subject: CostSubject,
    per_hour: Decimal | str,
    per: NodeCost.Per,
    split: Weights | None,
    currency: str,
    begins: datetime,
    now: datetime,
) -> dict[str, Any]:
    """Return the values of the row if such a cost may be set; else raise Invalid or Refused, saying what may be."""
    if per == NodeCost.Per.GPU and split is not None:
        raise Invalid({"split": ["The cost of a GPU is not split. Leave split out, or give the cost per node."]})
    by = split or PRESETS["gpus"]
    values = {
        "per": per,
        "per_hour": amount(per_hour, "per_hour"),
        "currency": currencies.check(currency),
        **dict(zip(WEIGHTS, map(_decimal, (by.cpu, by.memory_gib, by.gpu)), strict=True)),
    }
    known = NodeCost.objects.filter(**subject.columns, valid_from=begins).first()
    if known and any(getattr(known, name) != value for name, value in values.items()):
        raise Refused(
            "name_taken",
            f"{subject} has another cost from {begins:%F %T} UTC on.",
            "Withdraw it while it has not begun, or set a later one.",
        )
    if not known and begins < now and _used(subject).filter(valid_from__lt=begins).exists():
        raise Invalid({"valid_from": ["A cost cannot change what was computed. Give a time from now on."]})
    return values


def set_node_term(actor: Actor, cluster: str, node: str, term: str, valid_from: datetime | None = None) -> NodeTerm:
    """Say by which term a node is paid from ``valid_from`` (default: now) on, where its labels do not.

    Raises Forbidden, Invalid and Refused.
    """
    access.require(actor, ACTION, None)
    of, paid_by = subjects.node_named(cluster, node), _term(term)
    with transaction.atomic(), advisory_lock("prices"):
        now = clock.now()
        begins = valid_from or now
        _check_node_term(of, paid_by, begins, now)
        row, created = NodeTerm.objects.get_or_create(node=of, valid_from=begins, defaults={"term": paid_by})
        if created:
            dirty_hours.mark_all(begins, cluster=cluster)
            audit(actor.username, "node_term.set", node, after=audit_term(row))
    return row


def _check_node_term(node: Node, term: Term, begins: datetime, now: datetime) -> None:
    """Raise Invalid or Refused if a node cannot have this term from then on, saying what is possible."""
    known = NodeTerm.objects.filter(node=node, valid_from=begins).first()
    if known and known.term != term:
        raise Refused(
            "name_taken",
            f"{node} has another term from {begins:%F %T} UTC on.",
            "Withdraw it while it has not begun, or set a later one.",
        )
    said = NodeTerm.objects.filter(node=node, valid_from__lt=begins).exists()
    if not known and begins < now and (said or _costs_of(node.cluster_id).filter(valid_from__lt=now).exists()):
        raise Invalid({"valid_from": ["A term cannot change what was computed. Give a time from now on."]})


def _used(subject: CostSubject) -> Any:
    """Return the costs that may have been used for what the subject is: of a node, also those of its flavor."""
    return _costs_of(subject.cluster) if subject.node else NodeCost.objects.filter(**subject.columns)


def _costs_of(cluster: str) -> Any:
    return NodeCost.objects.filter(Q(node__cluster=cluster) | Q(flavor__cluster=cluster))


def _decimal(weight: Fraction) -> Decimal:
    return Decimal(weight.numerator) / Decimal(weight.denominator)


def audit_term(row: NodeTerm) -> dict[str, str]:
    """Return a term as the audit log has it."""
    return {"term": str(row.term), "valid_from": row.valid_from.isoformat()}


def audit_values(row: NodeCost) -> dict[str, str]:
    """Return a cost as the audit log has it."""
    return {
        "per_hour": f"{row.per_hour.normalize():f}",
        "per": row.per,
        "weights": ":".join(f"{getattr(row, name).normalize():f}" for name in WEIGHTS),
        "currency": row.currency,
        "valid_from": row.valid_from.isoformat(),
        "source": row.source,
    }
