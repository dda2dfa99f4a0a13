"""The attribution of a usage interval: the offering, team, project and member that it is charged to."""

from fractions import Fraction
from typing import Any

from portal.tenants.models import Project
from quotas.catalog.models import Offering
from quotas.metering.services import Attribution


def attribution(project: Project, offering: Offering, gpu_share: Fraction, *, member: str, **more: Any) -> Attribution:
    """Return the attribution of a project's interval.

    ``gpu_share`` is the fraction of a GPU that one slice is; ``member`` is "" if the creator is unknown; ``more`` are
    further fields of Attribution.
    """
    return Attribution(
        offering=offering.key,
        flavor=offering.flavor.name,
        kind=offering.kind,
        gpu_share=gpu_share,
        cluster=project.cluster_id,
        department=project.team.department.slug,
        team=project.team.slug,
        project=project.slug,
        member=member,
        namespace=project.namespace,
        **more,
    )
