"""The MIG geometry of a flavor: as its driver publishes it, else the table of its product."""

from quotas.catalog import published
from quotas.catalog.mig_tables import Geometry, geometry_of
from quotas.catalog.models import Flavor


def of_flavor(flavor: Flavor) -> Geometry | None:
    return published.from_document(flavor.geometry) or geometry_of(flavor.product, flavor.memory_mib)
