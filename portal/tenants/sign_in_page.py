from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpResponse

from portal.tenants.forms import SignInForm


class SignInPage(LoginView):
    """Django's sign-in page; 429 or 503 with Retry-After where the password was not checked."""

    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.refusal is not None:
            response.status_code = form.refusal.status
            response["Retry-After"] = str(form.refusal.retry_after_s)
        return response
