"""The term by which the capacity of a node is paid, as clouds and Karpenter label it. Pure.

Sources: Karpenter, pkg/apis/v1 (`karpenter.sh/capacity-type`); Amazon EKS, CapacityType of a managed node group; GKE,
Spot VMs; AKS, spot node pools. A label that says neither reserved nor spot, nor that it is none of them, says nothing:
GKE calls nodes with and without a reservation `standard`.
"""

from collections.abc import Mapping
from enum import StrEnum


class Term(StrEnum):
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"
    SPOT = "spot"


TERMS_BY_LABEL: Mapping[str, Mapping[str, Term]] = {
    "karpenter.sh/capacity-type": {
        "on-demand": Term.ON_DEMAND,
        "reserved": Term.RESERVED,
        "spot": Term.SPOT,
    },
    "eks.amazonaws.com/capacityType": {
        "ON_DEMAND": Term.ON_DEMAND,
        "CAPACITY_BLOCK": Term.RESERVED,
        "SPOT": Term.SPOT,
    },
    "cloud.google.com/gke-provisioning": {"preemptible": Term.SPOT, "spot": Term.SPOT},
    "cloud.google.com/gke-spot": {"true": Term.SPOT},
    "cloud.google.com/gke-preemptible": {"true": Term.SPOT},
    "kubernetes.azure.com/scalesetpriority": {"regular": Term.ON_DEMAND, "spot": Term.SPOT},
}
"""Terms by label and value. Of a node with several of the labels the first counts that says one."""


def term_of_labels(labels: Mapping[str, str]) -> Term | None:
    """Return the term that a node's labels say; None if they say none."""
    for label, terms in TERMS_BY_LABEL.items():
        if term := terms.get(labels.get(label, "")):
            return term
    return None
