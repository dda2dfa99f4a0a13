"""The pages. Each has an address that can be kept, also what a dialog shows."""

from django.urls import path

from frontend.views import allocations, ask, costs, home, limits, me, projects, queues, teams, tenants, theme

urlpatterns = [
    path("", home.home, name="home"),
    path("request", ask.ask, name="request"),
    path("request/preview", ask.preview, name="preview"),
    path("allocations", allocations.index, name="allocations"),
    path("allocations/<uuid:id_>", allocations.allocation, name="allocation"),
    path("allocations/<uuid:id_>/release", allocations.release, name="release"),
    path("allocations/<uuid:id_>/extend", allocations.extend, name="extend"),
    path("allocations/<uuid:id_>/retry", allocations.retry, name="retry"),
    path("allocations/<uuid:id_>/kubeconfig", allocations.kubeconfig, name="kubeconfig"),
    path("costs", costs.costs, name="costs"),
    path("jobs/<uuid:uid>", queues.job, name="job"),
    path("queues/<str:slug>", queues.queue, name="queue"),
    path("limits", limits.index, name="limits"),
    path("limits/set", limits.change, name="limit"),
    path("teams", teams.teams, name="teams"),
    path("teams/<str:slug>", teams.team, name="team"),
    path("teams/<str:slug>/members/<str:username>/remove", teams.remove, name="remove-member"),
    path("projects/<str:slug>", projects.project, name="project"),
    path("projects/<str:slug>/move", projects.move, name="move"),
    path("projects/<str:slug>/archive", projects.archive, name="archive"),
    path("projects/<str:slug>/unarchive", projects.unarchive, name="unarchive"),
    path("projects/<str:slug>/guard", projects.guard, name="guard"),
    path("tenants", tenants.tenants, name="tenants"),
    path("tenants/departments/new", tenants.new_department, name="new-department"),
    path("tenants/departments/<str:slug>/edit", tenants.department, name="edit-department"),
    path("tenants/teams/new", tenants.new_team, name="new-team"),
    path("tenants/teams/<str:slug>/edit", tenants.team, name="edit-team"),
    path("tenants/projects/new", tenants.new_project, name="new-project"),
    path("me", me.me, name="me"),
    path("me/tokens/<int:token_id>/revoke", me.revoke, name="revoke-token"),
    path("theme", theme.choose, name="theme"),
]
