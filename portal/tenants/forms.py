from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from portal.core import counters, http
from portal.tenants import sign_in


class SignInForm(AuthenticationForm):
    """Django's form, with a limit of attempts per name and address before any password is checked."""

    def clean(self) -> dict[str, Any]:
        address = http.address(self.request) if self.request else ""
        name = str(self.cleaned_data.get("username", ""))
        wait_s = counters.hit(f"login:{address}:{name}", settings.LOGINS_PER_MINUTE)
        if wait_s:
            raise ValidationError(f"Too many attempts. Try again in {wait_s} seconds.", code="throttled")
        try:
            values: dict[str, Any] = super().clean()
        except ValidationError:
            sign_in.note(name, succeeded=False)
            raise
        if self.user_cache is not None:
            sign_in.note(self.user_cache.get_username(), succeeded=True)
        return values
