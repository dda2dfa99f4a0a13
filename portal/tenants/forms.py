from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from portal.core.errors import Busy
from portal.http import address_limits, counters, early_refusals
from portal.tenants import sign_in

RETRY_UNCOUNTED_S = int(counters.PAUSE_S)


@dataclass(frozen=True)
class Refusal:
    """Why no password was checked: HTTP status, seconds for Retry-After, error code of the form, and sentence."""

    status: int
    retry_after_s: int
    code: str
    sentence: str


class SignInForm(AuthenticationForm):
    """Django's sign-in form, with limits per name and per address before a password is checked.

    `refusal` is set if a limit, or an unavailable Redis, prevented the check.
    """

    refusal: Refusal | None = None

    def clean(self) -> dict[str, Any]:
        name = str(self.cleaned_data.get("username", ""))
        try:
            self.refusal = self._over_limit(name)
            if self.refusal is None:
                return self._checked(name)
        except counters.Unavailable:
            self.refusal = _uncounted()
        except Busy as busy:
            self.refusal = _busy(busy)
        raise ValidationError(self.refusal.sentence, code=self.refusal.code)

    def _over_limit(self, name: str) -> Refusal | None:
        if self.request is None:
            return None
        if wait_s := address_limits.failed_sign_ins_wait(self.request):
            detail = "Too many failed sign-ins from your address, which others may share."
            early_refusals.remember(self.request, detail, wait_s)
            return _throttled(wait_s, detail)
        key = f"login:{address_limits.network(self.request)}:{name}"
        if wait_s := counters.count(key, settings.LOGINS_PER_MINUTE):
            return _throttled(wait_s, "Too many attempts for this name.")
        return None

    def _checked(self, name: str) -> dict[str, Any]:
        try:
            values: dict[str, Any] = super().clean()
        except ValidationError:
            sign_in.record_attempt(name, succeeded=False)
            if self.request is not None:
                address_limits.count_failed_sign_in(self.request)
            raise
        if self.user_cache is not None:
            sign_in.record_attempt(self.user_cache.get_username(), succeeded=True)
        return values


def _throttled(wait_s: int, reason: str) -> Refusal:
    return Refusal(429, wait_s, "throttled", f"{reason} Try again in {wait_s} seconds.")


def _busy(busy: Busy) -> Refusal:
    sentence = "Too many people are signing in just now. Your password was not checked. Try again in a few seconds."
    return Refusal(busy.status, busy.retry_after_s, "busy", sentence)


def _uncounted() -> Refusal:
    sentence = (
        "Sign-in by password is closed for the moment: Redis does not answer, so attempts cannot be counted. "
        "Whoever is signed in, and tokens, are not affected. Try again in a minute; if it lasts, tell an operator."
    )
    return Refusal(503, RETRY_UNCOUNTED_S, "uncounted", sentence)
