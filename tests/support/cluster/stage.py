"""The people and objects of the attack tests, on the real control plane.

All objects of the portal are written with the portal's own token, which shows that its cluster role is sufficient.
"""

import json
import secrets
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tests.support.cluster.manifests import build, project, table
from tests.support.cluster.waiting import eventually

SHARED_KINDS = ("Namespace", "GpuProject", "RoleBinding")
CLUSTER_WIDE = ("clusterqueue", "resourceflavor", "cohorts.kueue.x-k8s.io")
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "own"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
TEXTS = {
    "long": "x" * 5000,
    "large": "x" * 40_000,
    "larger": "x" * 140_000,
    "large_by_bytes": "\N{SQUARED OK}" * 10_000,
    "larger_by_bytes": "\N{SQUARED OK}" * 35_000,
}
"""Sizes above limits: of the images of a pod, of one object of most kinds, and of ConfigMaps and Secrets. By bytes: not
by characters.
"""
HUGE = 300_000
"""Total bytes that the annotations of one object may not have."""


@dataclass(frozen=True)
class Person:
    """A person with a token, working in one namespace."""

    kubectl: str
    kubeconfig: Path
    namespace: str

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        options = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.kubeconfig.parent / 'cache'}"]
        if "-n" not in arguments:
            options.append(f"--namespace={self.namespace}")
        command = [self.kubectl, *options, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=180)

    def do(self, *arguments: str, stdin: str | None = None) -> str:
        """Return standard output; fail the test with kubectl's error output."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {shlex.join(arguments)}: {done.stderr}"
        return done.stdout

    @property
    def token(self) -> str | None:
        """Return the token in the kubeconfig; None for the local administrator, who has a certificate."""
        user: dict[str, str] = yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]
        return user.get("token")

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return dict(json.loads(self.do("get", kind, name, "-o", "json")))

    def items(self, kind: str, selector: str) -> list[dict[str, Any]]:
        return list(json.loads(self.do("get", kind, "-l", selector, "-o", "json"))["items"])

    def apply(self, manifest: dict[str, Any]) -> None:
        namespace = manifest["metadata"].get("namespace", self.namespace)
        apply = ("apply", "--server-side", "--field-manager=gpu-portal", "-f", "-", "-n", namespace)
        self.do(*apply, stdin=json.dumps(manifest))


@dataclass(frozen=True)
class Stage:
    admin: Person
    portal: Person
    tenant: Person
    viewer: Person
    names: Mapping[str, str]

    def person(self, role: str, namespace: str) -> Person:
        """Return a person. ``role`` is the name of a person above, ``where`` that of a namespace in ``names``."""
        person: Person = getattr(self, role)
        return replace(person, namespace=self.names[namespace])


def _person(kubectl: str, admin: Path, folder: Path, account: str, home: str, namespace: str) -> Person:
    """Return a person with a one-hour token of service account ``account`` in ``home``; CA and server are
    admin's.
    """
    token = Person(kubectl, admin, home).do("create", "token", account, "--duration=1h").strip()
    config = yaml.safe_load(admin.read_text())
    config["users"] = [{"name": account, "user": {"token": token}}]
    for context in config["contexts"]:
        context["context"]["user"] = account
    path = folder / account / "kubeconfig"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(config))
    return Person(kubectl, path, namespace)


@contextmanager
def staged(kubectl: str, kubeconfig: Path, folder: Path) -> Iterator[Stage]:
    """Create a project with three holds, a neighbour, an open namespace and permitted objects; delete all
    afterwards.
    """
    ns = f"attacks-{secrets.token_hex(3)}"
    names = {part: f"{ns}-{part}" for part in ("open", "neighbours", "foreign", "bare")} | {
        "ns": ns,
        "person": f"person-{ns}",
    }
    (folder / "admin").mkdir()
    admin_config = folder / "admin" / "kubeconfig"
    admin_config.write_text(kubeconfig.read_text())
    admin = Person(kubectl, admin_config, ns)
    portal = _person(kubectl, admin_config, folder, "portal", "gpu-portal", ns)
    try:
        _write_projects(portal, names)
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names["foreign"]}})
        managed = {"name": names["bare"], "labels": {"gpu-portal.io/managed": "true"}}
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": managed})
        runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"nvidia-{ns}"}}
        admin.apply({**runtime, "handler": "nvidia"})
        tenant, viewer = (
            _person(kubectl, admin_config, folder, account, "gpu-portal-people", ns)
            for account in (names["person"], f"{names['person']}-viewer")
        )
        _see_the_guards_act(portal, tenant)
        yield Stage(admin, portal, tenant, viewer, names | _make_honest_things(tenant) | {"huge": "x" * HUGE, **TEXTS})
    finally:
        _take_all_away(admin, portal, names)


def _write_projects(portal: Person, names: Mapping[str, str]) -> None:
    person = names["person"]
    for manifest in project(ns=names["ns"], level="restricted", person=person):
        portal.apply(manifest)
    for manifest in project(SHARED_KINDS, ns=names["open"], level="privileged", person=person):
        portal.apply(manifest)
    for manifest in project(SHARED_KINDS, ns=names["neighbours"], level="restricted", person="person-other"):
        portal.apply(manifest)


def _see_the_guards_act(portal: Person, tenant: Person) -> None:
    """Wait until policies and quotas are in force, which is a moment after they are written."""
    bad = json.dumps(build({"pod": {"container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}}, "sentinel"))
    good = json.dumps(build({"pod": {"labels": {"gpu-portal.io/allocation": "serve-1"}}}, "sentinel"))
    dry = ("create", "--dry-run=server", "-f", "-")
    eventually(lambda: "gpu-portal-pod-gpus" in tenant.run(*dry, stdin=bad).stderr)
    eventually(lambda: tenant.run(*dry, stdin=good).returncode == 0)
    eventually(lambda: portal.get("resourcequota", f"gpu-portal-hold-{tenant.namespace}")["status"].get("hard"))


def _make_honest_things(tenant: Person) -> dict[str, str]:
    """Create all of honest.yaml; return the uid of the waiting Job and the pod of the running one."""
    for entry in table("honest"):
        tenant.do("create", "-f", "-", stdin=json.dumps(build(entry, entry["name"])))
    tenant.do("create", "secret", "generic", "mine", "--from-literal=key=value")
    tenant.do("create", "service", "clusterip", "own", "--tcp=80")
    tenant.do("create", "-f", "-", stdin=json.dumps(VOLUME))
    (pod,) = eventually(lambda: tenant.items("pods", "job-name=running"))
    return {"waiting_uid": tenant.get("job", "waiting")["metadata"]["uid"], "running_pod": pod["metadata"]["name"]}


def _take_all_away(admin: Person, portal: Person, names: Mapping[str, str]) -> None:
    ns = names["ns"]
    portal.run("delete", "namespace", ns, names["open"], names["neighbours"], "--ignore-not-found", "--timeout=50s")
    people = (names["person"], f"{names['person']}-viewer")
    portal.run("delete", "serviceaccount", *people, "-n", "gpu-portal-people", "--ignore-not-found")
    portal.run("delete", "priorityclass", f"gpu-portal-hold-{ns}", "--ignore-not-found")
    for kind in CLUSTER_WIDE:
        portal.run("delete", kind, ns, "--ignore-not-found", "--wait=false")
    admin.run("delete", "namespace", names["foreign"], names["bare"], "--ignore-not-found", "--timeout=50s")
    admin.run("delete", "runtimeclass", f"nvidia-{ns}", "--ignore-not-found")
