"""A person's kubeconfig for a project."""

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_http_methods

from allocations.connect import person_access
from allocations.connect.person_access import Format
from frontend.pages import PageRequest, page, show


@require_http_methods(["GET", "HEAD", "POST"])
@page
def kubeconfig(request: PageRequest, slug: str) -> HttpResponse:
    """Say what a kubeconfig reaches. A POST returns it as a file, with a token in it if the form says so."""
    if request.method != "POST":
        project = person_access.project_for(request.user, slug)
        places = person_access.projects_of(request.user, project.cluster_id)
        return show(request, "frontend/kubeconfig.html", {"project": project, "places": places})
    wanted = Format.TOKEN if request.POST.get("format") == Format.TOKEN else Format.EXEC
    return HttpResponse(
        person_access.kubeconfig(request.user, slug, wanted).content,
        content_type="application/yaml",
        headers={"Content-Disposition": 'attachment; filename="gpu-portal.kubeconfig"'},
    )


urlpatterns = [
    path("projects/<str:slug>/kubeconfig", kubeconfig, name="project-kubeconfig"),
]
DOCS = "how-to/kubectl"
