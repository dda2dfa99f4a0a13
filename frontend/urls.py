"""The pages. Each has an address that can be kept, also what a dialog shows."""

from django.urls import path

from frontend.views import allocations, ask, costs, home, limits, me, theme

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
    path("limits", limits.index, name="limits"),
    path("limits/set", limits.change, name="limit"),
    path("me", me.me, name="me"),
    path("me/tokens/<int:token_id>/revoke", me.revoke, name="revoke-token"),
    path("theme", theme.choose, name="theme"),
]
