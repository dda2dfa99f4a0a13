"""Looks up the MIG geometry of a flavor."""

from quotas.catalog import published
from quotas.catalog.mig_tables import Geometry, geometry_of
from quotas.catalog.models import Flavor


def of_flavor(flavor: Flavor) -> Geometry | None:
    """Return the MIG geometry that the driver publishes, else that of the product; None if neither is known."""
    return published.from_document(flavor.geometry) or geometry_of(flavor.product, flavor.whole_gpu_mib)
