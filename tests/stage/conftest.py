"""Fixtures of tests of the simulated hardware and of the supervisor, for `make test-stage`."""

from tests.support.cluster.fixtures import admin, kubeconfig, kubectl, live_database, local  # noqa: F401 (fixtures)
from tests.support.cluster.hardware import apply, fleet, namespace, one_more, read  # noqa: F401 (fixtures)
from tests.support.cluster.mig_changes import cut  # noqa: F401 (a fixture)
