"""The API server away and back, with who waits long before asking it again."""

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
OTHERS = ("kube-controller-manager", "kube-scheduler", "kueue", "kwok")
"""Clients of the API server that wait for up to half a minute before they ask again (client-go's back-off), and that
watch on in silence where etcd's revisions went back. They are started anew, as leader election does with the first
three after an outage, and an operator with all after a restore, so that what is measured is the portal."""


@contextmanager
def away(local: Local, kubectl: Kubectl, namespace: str, *stores: str) -> Iterator[None]:
    """The block is the outage: the API server, ``OTHERS`` and ``stores`` end by SIGKILL, and start after it.

    The API server is back when it lets pods into ``namespace``: for up to half a minute it says that it cannot find
    what its policies read.
    """
    processes = (*stores, "kube-apiserver", *OTHERS)
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
    eventually(lambda: kubectl(*arguments, stdin=json.dumps(POD)), AssertionError, within_s=60)
