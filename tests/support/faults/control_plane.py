"""An outage of the API server, with restarts of clients that wait long before they reconnect."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.local.runner import Local
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "plain"},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}
SLOW_CLIENTS = ("kube-controller-manager", "kube-scheduler", "kueue", "kwok")
"""Clients of the API server that wait up to half a minute before a retry (client-go's back-off), and that watch on
silently after etcd's revisions went back. They are restarted, as leader election restarts the first three after an
outage, and an operator restarts all of them after a restore, so that only the portal is measured.
"""


@contextmanager
def outage(local: Local, kubectl: Kubectl, namespace: str, *stores: str) -> Iterator[None]:
    """Run the block during an outage: the API server, ``OTHERS`` and ``stores`` get SIGKILL, and start after it.

    The API server is back when it admits pods into ``namespace``: for up to half a minute it reports that it cannot
    find the parameters of its policies.
    """
    processes = (*stores, "kube-apiserver", *SLOW_CLIENTS)
    for process in reversed(processes):
        local.hold(process)
    try:
        yield
    finally:
        for process in processes:
            local.start(process)
    for process in processes:
        local.wait_ready(process)
    arguments = ("create", "--dry-run=server", "-n", namespace, "-f", "-")
    eventually(lambda: kubectl(*arguments, stdin=json.dumps(POD)), AssertionError, within_s=120)
