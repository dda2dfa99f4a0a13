"""The portal's admission webhook outside the cluster, where the API server serves no MutatingAdmissionPolicy.

`deploy/cluster/webhook`, changed for a process on 127.0.0.1: its Deployment and what serves that are left out.
"""

import base64
import copy
from pathlib import Path
from typing import Any

import yaml

from deploy.local.build import WEBHOOK, build_webhook
from deploy.local.control_plane import serves
from deploy.local.home import REPOSITORY, Home
from deploy.local.kubeconfigs import component_kubeconfig

MANIFESTS = REPOSITORY / "deploy" / "cluster" / "webhook"
POLICIES = REPOSITORY / "deploy" / "cluster" / "policies"
SINCE = "1.36"
"""The first version of Kubernetes that serves MutatingAdmissionPolicy at v1, and needs no webhook."""
IN_CLUSTER = ("Deployment", "Service", "PodDisruptionBudget")

Manifest = dict[str, Any]


def is_needed() -> bool:
    """Return whether the chosen version of Kubernetes needs the webhook."""
    return not serves(SINCE)


def command(home: Home, port: int, certificate: Path) -> tuple[str, ...]:
    """Return the command line; `certificate` is the path of certificate and key without their suffixes."""
    return (
        str(build_webhook() / WEBHOOK),
        f"--listen=127.0.0.1:{port}",
        f"--kubeconfig={component_kubeconfig(home, 'webhook')}",
        f"--policies={POLICIES}",
        f"--tls-cert-file={certificate}.crt",
        f"--tls-key-file={certificate}.key",
    )


def manifests(rendered: str, port: int, authority: bytes) -> list[Manifest]:
    """Return the objects of `deploy/cluster/webhook` with the webhook on a port; `authority` signed its certificate."""
    objects = [document for document in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if document]
    return [configuration(obj, port, authority) for obj in objects if obj["kind"] not in IN_CLUSTER]


def configuration(obj: Manifest, port: int, authority: bytes) -> Manifest:
    """Return the object; a MutatingWebhookConfiguration calls the process on this port."""
    if obj["kind"] != "MutatingWebhookConfiguration":
        return obj
    obj = copy.deepcopy(obj)
    client = {"url": f"https://127.0.0.1:{port}/mutate", "caBundle": base64.b64encode(authority).decode()}
    for hook in obj["webhooks"]:
        hook["clientConfig"] = client
    return obj
