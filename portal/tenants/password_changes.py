"""What a new password ends, however it is set: by an operator, by its owner, or by `manage.py changepassword`."""

from django.contrib.auth.base_user import AbstractBaseUser

from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User


class EndsTokens:
    """One of Django's password validators, which hear of new passwords, and not of old ones that are hashed anew. It
    accepts every password. Sessions end by themselves: they are signed with the hash.
    """

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Accept the password."""

    def get_help_text(self) -> str:
        return "A new password signs you out elsewhere, and revokes your tokens."

    def password_changed(self, password: str, user: AbstractBaseUser) -> None:
        """Revoke the tokens of the person."""
        if isinstance(user, User):
            services.revoke_tokens(SYSTEM, user)
