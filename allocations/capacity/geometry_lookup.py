"""Which geometry the cards of a flavor have: what its driver publishes of them, else the table of their product."""

from quotas.catalog import published
from quotas.catalog.mig_tables import Geometry, geometry_of
from quotas.catalog.models import Flavor


def of_flavor(flavor: Flavor) -> Geometry | None:
    return published.from_document(flavor.geometry) or geometry_of(flavor.product, flavor.memory_mib)
