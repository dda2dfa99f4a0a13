"""The docs, as `make docs` built them, for everyone who is signed in."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.storage import FileSystemStorage
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe
from django.views.static import serve

from frontend.pages import PageRequest, page, show
from portal.http.compression import compress

TEXTS = (".css", ".js", ".svg", ".txt")
YEAR_S = 365 * 24 * 3600


@require_safe
def docs(request: HttpRequest, file: str = "") -> HttpResponseBase:
    """Return a page or file of the docs; the `index.html` of a folder if the name is empty or ends with a slash."""
    if file == "" or file.endswith("/"):
        file += "index.html"
    return _page(request, file) if file.endswith(".html") else _file(request, file)


@page
def _page(request: PageRequest, name: str) -> HttpResponse:
    """Return the page in the theme that the person chose in the portal; Furo follows the system without one."""
    if not (settings.DOCS_ROOT / "index.html").is_file():
        return show(request, "frontend/docs_missing.html", {}, status=404)
    try:
        with FileSystemStorage(settings.DOCS_ROOT).open(name) as file:
            content = file.read()
    except (OSError, ValueError, SuspiciousFileOperation) as error:
        raise Http404 from error
    theme = request.COOKIES.get("theme")
    if theme in ("light", "dark"):
        content = content.replace(b"<body>", f'<body data-theme="{theme}">'.encode(), 1)
    response = HttpResponse(content)
    compress(request, response)  # the same for everyone
    return response


@login_required
def _file(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return a style sheet, script, picture or source file; browsers keep one with a digest in its address."""
    response = serve(request, name, document_root=str(settings.DOCS_ROOT))
    if name.startswith("_static/") and "v" in request.GET:
        patch_cache_control(response, private=True, max_age=YEAR_S, immutable=True)
    else:
        patch_cache_control(response, private=True, no_cache=True)
    if response.status_code == 200 and name.endswith(TEXTS):
        compress(request, response)
    return response


urlpatterns = [
    path("docs/", docs, name="docs"),
    path("docs/<path:file>", docs),
]
