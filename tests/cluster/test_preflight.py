"""The preflight command on the real cluster, for the portal and for tokens with fewer and more rights."""

import re
from pathlib import Path

import pytest
import yaml

from deploy.local.runner import Local
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.preflight import preflight
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def test_the_local_cluster_is_ready(local: Local):
    def is_ready() -> dict[str, dict[str, str]]:
        status, found = preflight(f"--kueue-config={local.root / 'kueue' / 'config.yaml'}")
        assert [f for f in found.values() if f["status"] != "ok"] == []
        assert status == 0
        return found

    found = eventually(is_ready, AssertionError)
    assert re.match(r"[1-9]\d* MiB of \d", found["etcd"]["found"])


def test_a_token_without_rights_is_told_which_to_use(local: Local, admin: ApiClient, tmp_path: Path):
    content = yaml.safe_load(local.portal_kubeconfig.read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = str(local.home.certs / "ca.crt")
    nobody = admin.token("default", "default")
    content["users"][0]["user"] = {"token": nobody}
    kubeconfig = tmp_path / "nobody.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(content))
    status, found = preflight(kubeconfig=kubeconfig)
    assert status == 1
    assert found["Our rights"]["status"] == "problem"
    assert "patch workloads.kueue.x-k8s.io" in found["Our rights"]["found"]
    assert "service account gpu-portal/portal" in found["Our rights"]["fix"]
    assert found["GPU nodes"]["status"] == found["Guards"]["status"] == found["etcd"]["status"] == "problem"
    assert "get /metrics" in found["Our rights"]["found"]
    missing = found["Our rights"]["found"].removeprefix("may not ").split("; ")
    assert {"create events", "patch events"} <= set(missing)
    assert found["Rights we should not have"]["status"] == found["Kubernetes"]["status"] == "ok"


def test_an_administrators_token_is_too_much(local: Local, admin: ApiClient, tmp_path: Path):
    content = yaml.safe_load(local.portal_kubeconfig.read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = str(local.home.certs / "ca.crt")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-too-much"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    admin.created(binding)
    try:
        content["users"][0]["user"] = {"token": admin.token("default", "default")}
        kubeconfig = tmp_path / "admin.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(content))
        status, found = preflight(kubeconfig=kubeconfig)
    finally:
        admin.delete("clusterrolebinding", "test-too-much")
    assert status == 1
    assert "list secrets" in found["Rights we should not have"]["found"]
    assert found["Our rights"]["status"] == "ok"


def test_the_portal_is_its_service_account_and_no_administrator(local: Local, kubectl: Kubectl):
    requests = (f"--kubeconfig={local.portal_kubeconfig}", "auth")
    assert "system:serviceaccount:gpu-portal:portal" in kubectl(*requests, "whoami")
    with pytest.raises(AssertionError, match="can-i get secrets"):
        kubectl(*requests, "can-i", "get", "secrets", "--all-namespaces")
