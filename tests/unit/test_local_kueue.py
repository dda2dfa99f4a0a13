"""Kueue's own manifests, changed for a process on this machine."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local import kueue
from deploy.local.home import PORTS, Home

HOOKS = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kueue-mutating-webhook-configuration}
webhooks:
- name: mpod.kb.io
  clientConfig: {service: {name: kueue-webhook-service, path: /mutate--v1-pod}}
  rules: [{apiGroups: [""], resources: [pods]}]
- name: mjob.kb.io
  clientConfig: {service: {name: kueue-webhook-service, path: /mutate-batch-v1-job}}
  rules: [{apiGroups: [batch], resources: [jobs]}]
- name: mworkload.kb.io
  clientConfig: {service: {name: kueue-webhook-service, path: /mutate-kueue-x-k8s-io-v1beta2-workload}}
  rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads]}]
---
apiVersion: v1
kind: Service
metadata: {name: kueue-webhook-service}
spec: {ports: [{port: 443}], selector: {control-plane: controller-manager}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, {name: 20000 + number for number, name in enumerate(PORTS)}, tmp_path / "bin")


@pytest.fixture
def objects(home: Home) -> dict[str, dict[str, Any]]:
    return {obj["kind"]: obj for obj in kueue.manifests(HOOKS, home)}


def test_the_pod_is_gone_and_its_service_points_at_this_machine(objects: dict[str, dict[str, Any]]) -> None:
    assert "Deployment" not in objects
    assert objects["Service"]["spec"] == {"type": "ExternalName", "externalName": "localhost"}


def test_only_webhooks_of_kueues_kinds_and_of_jobs_stay(home: Home, objects: dict[str, dict[str, Any]]) -> None:
    hooks = objects["MutatingWebhookConfiguration"]["webhooks"]
    assert [hook["name"] for hook in hooks] == ["mjob.kb.io", "mworkload.kb.io"]
    assert hooks[0]["namespaceSelector"] == {"matchLabels": {"gpu-portal.io/managed": "true"}}
    assert {hook["clientConfig"]["service"]["port"] for hook in hooks} == {home.ports["kueue-webhook"]}


def test_the_configuration_counts_plain_integers_and_blocks_what_is_undeclared(home: Home) -> None:
    configuration = kueue.configuration(home)
    assert configuration["integrations"] == {"frameworks": ["batch/job"]}
    assert configuration["resources"]["quotaCheckStrategy"] == "BlockUndeclared"
    assert configuration["waitForPodsReady"] == {
        "timeout": "300s",
        "recoveryTimeout": "300s",
        "requeuingStrategy": {"backoffLimitCount": 5},
    }
    gates = configuration["featureGates"]
    assert [gate for gate, on in gates.items() if not on] == [
        "KueueDRAIntegration",
        "KueueDRAIntegrationExtendedResource",
        "KueueDRAIntegrationPartitionableDevices",
    ]
    yaml.safe_dump(configuration)


def test_certificates_are_copied_once_kueue_has_filled_the_secret(home: Home) -> None:
    assert not kueue.copy_certificates({"kind": "Secret"}, home)
    assert not kueue.copy_certificates({"data": {"tls.crt": "", "tls.key": "", "ca.crt": ""}}, home)
    filled = {"data": dict.fromkeys(kueue.CERTIFICATE_FILES, "b25l")}
    assert kueue.copy_certificates(filled, home)
    assert (kueue.folder(home) / "webhook-certs" / "tls.key").read_text() == "one"
