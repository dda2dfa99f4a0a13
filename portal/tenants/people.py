"""People and their tokens, as operators manage them: over REST, where the admin is not at hand."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from portal.core.errors import Invalid, NotVisible
from portal.core.locks import RowLock, unlocked
from portal.core.quotation import named
from portal.tenants import access, services
from portal.tenants.models import ApiToken, User


def visible(user: User) -> QuerySet[User]:
    """Return all people, for platform staff. Raises Forbidden."""
    return access.for_platform(user, User.objects.all())


def person(user: User, username: str) -> User:
    """Return the person, for platform staff. Raises Forbidden, NotVisible."""
    found = None if "\x00" in username else visible(user).filter(username=username).first()
    if found is None:
        raise NotVisible(f"The person {named(username)}", hint="See the list of people.")
    return found


def to_change(user: User, username: str = "") -> User:
    """Return the person, for a form that changes them; without a name nobody yet. Raises Forbidden, NotVisible."""
    access.require(user, services.PEOPLE, None)
    return person(user, username) if username else User()


def keep_columns(user: User, table: str, names: Sequence[str]) -> None:
    """Keep which columns of a list the person chose, for the person alone."""
    user.columns = {**user.columns, table: list(names)}
    user.save(update_fields=["columns"])


def create(user: User, username: str, password: str, **fields: Any) -> User:
    """Create a person who signs in with this password; ``fields`` are those of `services.create_user`.

    Raises Forbidden; Invalid, also for a password that is too weak; Refused for a name that is taken.
    """
    access.require(user, services.PEOPLE, None)
    try:
        validate_password(password, User(username=username, email=fields.get("email", "")))
    except ValidationError as error:
        raise Invalid({"password": list(error.messages)}) from error
    return services.create_user(user, username, password, **fields)


def change(user: User, row: User, changes: Mapping[str, Any], lock: RowLock[User] = unlocked) -> User:
    """Change name, address, platform role, or whether the person is active, and return the person. Who is no longer
    active loses all tokens and the access to clusters.

    Raises Forbidden; Invalid; Refused ``last_operator`` if nobody could give the role back.
    """
    access.require(user, services.PEOPLE, None)
    with transaction.atomic():
        row = lock(row)
        if not changes:
            return row
        for name, value in changes.items():
            setattr(row, name, value)
        try:
            row.full_clean(exclude=["password"], validate_unique=False)
        except ValidationError as error:
            raise Invalid(error.message_dict) from error
        services.save_person(user, row, list(changes))
    return row


def tokens_of(user: User, username: str) -> QuerySet[ApiToken]:
    """Return the tokens of a person, for operators. Raises Forbidden, NotVisible."""
    access.require(user, services.PEOPLE, None)
    return ApiToken.objects.filter(user=person(user, username))


def token(user: User, token_id: int) -> ApiToken:
    """Return a token of the user, or of anybody for operators. Raises NotVisible."""
    rows = ApiToken.objects.select_related("user")
    own = rows if access.can(user, services.PEOPLE, None) else rows.filter(user=user)
    found = own.filter(pk=token_id).first()
    if found is None:
        raise NotVisible("The token")
    return found
