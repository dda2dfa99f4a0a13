"""The portal's admission webhook as a process of its own beside the local cluster, and its answers."""

import base64
import contextlib
import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import urllib3
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from deploy.local import certs, webhook
from deploy.local.home import PORT_RANGE, Home, claims
from tests.support.cluster.api_client import Object
from tests.support.cluster.waiting import eventually

RESOURCES = {
    "Pod": ("", "v1", "pods"),
    "Job": ("batch", "v1", "jobs"),
    "Deployment": ("apps", "v1", "deployments"),
    "StatefulSet": ("apps", "v1", "statefulsets"),
}


@dataclass(frozen=True)
class Webhook:
    """A running webhook. ``certificate`` is the path of its certificate and key without their suffixes."""

    process: subprocess.Popen[bytes]
    port: int
    certificate: Path
    authority: Path

    def patch(self, manifest: Object, namespace: str, username: str) -> str:
        """Return the JSON patch with which the webhook answers the creation of an object, "" for none; raise
        AssertionError with its message if it refuses.
        """
        group, version, plural = RESOURCES[manifest["kind"]]
        request = {
            "uid": "2b1a4f6e-0000-4000-8000-000000000000",
            "kind": {"group": group, "version": version, "kind": manifest["kind"]},
            "resource": {"group": group, "version": version, "resource": plural},
            "name": manifest["metadata"]["name"],
            "namespace": namespace,
            "operation": "CREATE",
            "userInfo": {"username": username},
            "object": {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}},
            "dryRun": True,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        with self._pool() as pool:
            url = f"https://127.0.0.1:{self.port}/mutate"
            answer = json.loads(pool.request("POST", url, body=json.dumps(review)).data)["response"]
        assert answer["allowed"], answer["status"]["message"]
        return base64.b64decode(answer.get("patch", "")).decode()

    def is_ready(self) -> bool:
        with self._pool() as pool, contextlib.suppress(urllib3.exceptions.HTTPError):
            return pool.request("GET", f"https://127.0.0.1:{self.port}/readyz").status == 200
        return False

    def configuration(self, name: str, namespace: str) -> Object:
        """Return the MutatingWebhookConfiguration of deploy/cluster/webhook, for this process and one namespace."""
        (shipped,) = (obj for obj in _manifests() if obj["kind"] == "MutatingWebhookConfiguration")
        obj = webhook.configuration(shipped, self.port, self.authority.read_bytes())
        obj["metadata"] = {"name": name}
        for hook in obj["webhooks"]:
            hook["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] = namespace
            hook["timeoutSeconds"] = 2
        return obj

    def _pool(self) -> urllib3.PoolManager:
        return urllib3.PoolManager(ca_certs=str(self.authority), retries=False, timeout=5)


def roles() -> list[Object]:
    """Return the shipped role of the webhook and its binding."""
    return [obj for obj in _manifests() if obj["kind"].startswith("ClusterRole")]


def _manifests() -> list[Object]:
    return list(yaml.safe_load_all((webhook.MANIFESTS / "webhook.yaml").read_text()))


@contextmanager
def running(home: Home, folder: Path) -> Iterator[Webhook]:
    """Run the webhook with a certificate of its own in ``folder``, from when it is ready until the block ends."""
    certificate = folder / "webhook"
    for suffix in (".crt", ".key"):
        shutil.copy(home.certs / f"webhook{suffix}", certificate.with_suffix(suffix))
    with claims(folder / "ports") as claim, (folder / "webhook.log").open("wb") as log:
        port = next(port for port in PORT_RANGE if claim(port))
        process = subprocess.Popen(webhook.command(home, port, certificate), stdout=log, stderr=log)
        running_webhook = Webhook(process, port, certificate, home.certs / "ca.crt")
        try:
            eventually(running_webhook.is_ready)
            yield running_webhook
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(timeout=20)


def write_expired(home: Home, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace a certificate by one of the same authority that expired half an hour ago."""
    authority = x509.load_pem_x509_certificate((home.certs / "ca.crt").read_bytes())
    key = serialization.load_pem_private_key((home.certs / "ca.key").read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    with monkeypatch.context() as patched:
        patched.setattr(certs, "VALID", timedelta(minutes=-30))
        leaf = certs.Leaf(certificate.name, "ca", "webhook", names=certs.LOOPBACK)
        certs._issue(certificate.parent, leaf, authority.subject, key)
