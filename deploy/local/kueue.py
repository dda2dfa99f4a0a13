"""Kueue outside the cluster: its own manifests, changed for a process on 127.0.0.1, and its configuration.

Pure functions over parsed YAML, except the last: Kueue keeps its webhook certificates in a Secret that a kubelet would
mount; here they are copied to its certificate folder.
"""

import base64
import copy
from pathlib import Path
from typing import Any

import yaml

from deploy.local.home import Home

NAMESPACE = "kueue-system"
WEBHOOK_CERTIFICATE = "kueue-webhook-server-cert"
WEBHOOK_SERVICE = "kueue-webhook-service"
MANAGED = {"matchLabels": {"gpu-portal.io/managed": "true"}}
# Kept in addition to the webhooks of Kueue's own kinds; the others belong to disabled integrations.
JOB_WEBHOOKS = ("/mutate-batch-v1-job", "/validate-batch-v1-job")
CERTIFICATE_FILES = ("tls.crt", "tls.key", "ca.crt")

Manifest = dict[str, Any]


def folder(home: Home) -> Path:
    """Return Kueue's working directory; its visibility server writes `visibility-certs` there."""
    return home.root / "kueue"


def configuration(home: Home) -> Manifest:
    """Return Kueue's `Configuration` (config.kueue.x-k8s.io/v1beta2)."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{home.ports['kueue-health']}"},
        "metrics": {
            "bindAddress": f"127.0.0.1:{home.ports['kueue-metrics']}",
            "enableClusterQueueResources": True,
        },
        "webhook": {
            "host": "127.0.0.1",
            "port": home.ports["kueue-webhook"],
            "certDir": str(folder(home) / "webhook-certs"),
        },
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": home.ports["kueue-visibility"]},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": WEBHOOK_SERVICE,
            "webhookSecretName": WEBHOOK_CERTIFICATE,
        },
        "clientConnection": {"qps": 300, "burst": 500},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Workload.kueue.x-k8s.io": 10,
                "LocalQueue.kueue.x-k8s.io": 5,
                "Cohort.kueue.x-k8s.io": 1,
                "ClusterQueue.kueue.x-k8s.io": 5,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "integrations": {"frameworks": ["batch/job"]},
        "managedJobsNamespaceSelector": MANAGED,
        "waitForPodsReady": {
            "timeout": "300s",
            "recoveryTimeout": "300s",
            "requeuingStrategy": {"backoffLimitCount": 5},
        },
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "resources": {
            "quotaCheckStrategy": "BlockUndeclared",
            "excludeResourcePrefixes": ["cpu", "memory", "ephemeral-storage", "hugepages-"],
        },
        "featureGates": {
            "KueueDRAIntegration": False,
            "KueueDRAIntegrationExtendedResource": False,
            "KueueDRAIntegrationPartitionableDevices": False,
            "UnadmittedWorkloadsObservability": True,
            "UnadmittedWorkloadsExplicitStatus": True,
        },
    }


def manifests(rendered: str, home: Home) -> list[Manifest]:
    """Return Kueue's `config/default` with webhooks and visibility API on this home's ports."""
    objects = [document for document in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if document]
    return [_local(obj, home) for obj in objects if not _runs_in_cluster(obj)]


def _runs_in_cluster(obj: Manifest) -> bool:
    """Return whether the object serves Kueue's pod, which this process replaces."""
    name = obj["metadata"]["name"]
    return obj["kind"] in ("Deployment", "ConfigMap") or name == "kueue-controller-manager-metrics-service"


def _local(obj: Manifest, home: Home) -> Manifest:
    obj = copy.deepcopy(obj)
    match obj["kind"]:
        case "Service":
            # These Services have no pods: the API server resolves the name itself.
            obj["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        case "APIService":
            obj["spec"]["service"]["port"] = home.ports["kueue-visibility"]
        case "CustomResourceDefinition" if "conversion" in obj["spec"]:
            client = obj["spec"]["conversion"]["webhook"]["clientConfig"]
            client["service"]["port"] = home.ports["kueue-webhook"]
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
            obj["webhooks"] = [_webhook(hook, home) for hook in obj["webhooks"] if _is_kept(hook)]
    return obj


def _is_kept(hook: Manifest) -> bool:
    own = all("kueue.x-k8s.io" in rule["apiGroups"] for rule in hook["rules"])
    return own or hook["clientConfig"]["service"]["path"] in JOB_WEBHOOKS


def _webhook(hook: Manifest, home: Home) -> Manifest:
    hook["clientConfig"]["service"]["port"] = home.ports["kueue-webhook"]
    if hook["clientConfig"]["service"]["path"] in JOB_WEBHOOKS:
        # An outage of Kueue must not stop Jobs in namespaces that the portal does not manage.
        hook["namespaceSelector"] = MANAGED
    return hook


def copy_certificates(secret: Manifest, home: Home) -> bool:
    """Write the Secret's certificates for Kueue to read; return False while Kueue has not created them."""
    data = secret.get("data") or {}
    if not all(data.get(name) for name in CERTIFICATE_FILES):
        return False
    target = folder(home) / "webhook-certs"
    target.mkdir(parents=True, exist_ok=True)
    for name in CERTIFICATE_FILES:
        (target / name).touch(mode=0o600)
        (target / name).write_bytes(base64.b64decode(data[name]))
    return True
