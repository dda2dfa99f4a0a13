"""Splits the cost of a node between its GPUs and the rest of it. Pure.

A node's cost is divided in proportion to what it has, times a weight: AWS split cost allocation data weighs a GPU 9, a
vCPU 0.9 and a GiB 0.1; OpenCost weighs by the default price of each (OpenCost specification v0.1, appendix A).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from quotas.costs.rating import PRICE_UNITS


@dataclass(frozen=True)
class Weights:
    """What a CPU, a GiB of memory and a GPU weigh."""

    cpu: Fraction
    memory_gib: Fraction
    gpu: Fraction


GPUS_ONLY = Weights(Fraction(0), Fraction(0), Fraction(1))
AWS = Weights(Fraction("0.9"), Fraction("0.1"), Fraction(9))
OPENCOST = Weights(Fraction("0.031611"), Fraction("0.004237"), Fraction("0.95"))
PRESETS = {"gpus": GPUS_ONLY, "aws": AWS, "opencost": OPENCOST}


@dataclass(frozen=True)
class UnitCosts:
    """What an hour of a CPU, of a GiB and of a GPU costs."""

    cpu: Fraction
    memory_gib: Fraction
    gpu: Fraction


def unit_costs(per_node_hour: Fraction, cpus: Fraction, memory_gib: Fraction, gpus: Fraction, by: Weights) -> UnitCosts:
    """Return what the parts of a node cost, so that all of them together cost what the node does."""
    weight = by.cpu * cpus + by.memory_gib * memory_gib + by.gpu * gpus
    one = per_node_hour / weight
    return UnitCosts(by.cpu * one, by.memory_gib * one, by.gpu * one)


def per_gpu_hour(
    per_node_hour: Fraction, cpus: Fraction, memory_gib: Fraction, gpus: Fraction, by: Weights
) -> Fraction:
    """Return the cost of a GPU-hour with the decimal places of a price, rounded down: what is left belongs to the rest
    of the node, which so is never negative.
    """
    gpu = unit_costs(per_node_hour, cpus, memory_gib, gpus, by).gpu
    return Fraction(floor(gpu * PRICE_UNITS), PRICE_UNITS)
