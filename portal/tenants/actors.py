"""Who changes something: a person, who may be signed out, or the portal itself."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from portal.tenants.models import User


@dataclass(frozen=True)
class System:
    """The portal itself, such as a seed or a command of `manage.py`. It may do what operators may; the audit log has
    its ``username``.
    """

    username: str = "system"


SYSTEM = System()
Actor = User | AnonymousUser | System
