"""What is decided of a project besides its name and team: what REST, the form, the audit log and the model share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from portal.tenants.models import Egress, Exposure, PodSecurity
from portal.tenants.object_limits import CONFIG_KIB

SETTINGS = ("pod_security", "egress", "exposure", "admin_access")
"""The options that a project's own page changes; its object limits have another page."""


@dataclass(frozen=True)
class ProjectOptions:
    """Options of a new project. All but the first three can be changed later.

    ``cluster`` is the environment's unless given, and the namespace has the project's name. ``adopt`` takes a namespace
    that exists: its guard only warns at first (`Guard.AUDIT`), and the namespace outlives the project.
    ``object_limits``: kind → number of objects, where it is not the default.
    """

    cluster: str = ""
    namespace: str = ""
    adopt: bool = False
    pod_security: str = PodSecurity.RESTRICTED
    egress: str = Egress.NONE
    exposure: str = Exposure.CLUSTER
    admin_access: bool = False
    object_limits: Mapping[str, int | None] = field(default_factory=dict)
    config_size_kib: int = CONFIG_KIB
