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

from deploy.local.control_plane import gangs
from deploy.local.home import Home
from tests.support.cluster import kinds
from tests.support.cluster.api_client import NAMESPACED, Answer, ApiClient
from tests.support.cluster.manifests import build, project, table
from tests.support.cluster.waiting import eventually

SHARED_KINDS = ("Namespace", "GpuProject", "RoleBinding")
CLUSTER_WIDE = ("clusterqueue", "resourceflavor", "cohort")
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
    """A person with a token, working in one namespace: by kubectl, or by an HTTP client, which takes a
    millisecond where to start kubectl takes a fifth of a processor's second.
    """

    kubectl: str
    kubeconfig: Path
    namespace: str
    api: ApiClient

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

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.api.get(kind, name, self.namespace)

    def items(self, kind: str, selector: str) -> list[dict[str, Any]]:
        return self.api.objects(kind, self.namespace, labels=selector)

    def create(self, manifest: dict[str, Any], *, dry_run: bool = False) -> Answer:
        return self.api.create(manifest, self.namespace, dry_run=dry_run)

    def created(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create the object; raise AssertionError if it is refused."""
        return self.api.created(manifest, self.namespace)

    def tried(self, manifest: dict[str, Any]) -> tuple[bool, str]:
        """Return whether a dry run of the object is refused, and what is said of it without quotes: of a kind that the
        API server does not have, by kubectl.
        """
        if kinds.find(self.api.all_kinds(), manifest["kind"], manifest["apiVersion"]):
            answer = self.create(manifest, dry_run=True)
            is_refused, said = answer.status >= 400, f"{answer.message} {answer.warnings}"
        else:
            done = self.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
            is_refused, said = done.returncode != 0, done.stderr
        return is_refused, " ".join(said.replace('"', "").split())

    def apply(self, manifest: dict[str, Any]) -> None:
        self.api.apply(manifest, self.namespace, manager="gpu-portal")

    def delete(self, kind: str, name: str, **options: object) -> Answer:
        return self.api.delete(kind, name, self.namespace, **options)


def person_with(home: Home, kubeconfig: Path, namespace: str) -> Person:
    """Return the person of a kubeconfig; without a token in it, the local administrator."""
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"].get("token")
    return Person(
        str(home.binaries / "kubectl"), kubeconfig, namespace, ApiClient(home, (lambda: token) if token else None)
    )


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


def _person(home: Home, folder: Path, account: str, accounts: str, namespace: str) -> Person:
    """Return a person with a one-hour token of service account ``account`` in namespace ``accounts``; CA and server are
    the administrator's.
    """
    token = ApiClient(home).token(account, accounts)
    config = yaml.safe_load(home.kubeconfig.read_text())
    config["users"] = [{"name": account, "user": {"token": token}}]
    for context in config["contexts"]:
        context["context"]["user"] = account
    path = folder / account / "kubeconfig"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(config))
    return person_with(home, path, namespace)


@contextmanager
def staged(home: Home, folder: Path) -> Iterator[Stage]:
    """Create a project with three holds, a neighbour, an open namespace and permitted objects; delete all
    afterwards.
    """
    ns = f"attacks-{secrets.token_hex(3)}"
    names = {part: f"{ns}-{part}" for part in ("open", "warned", "neighbours", "foreign", "bare")} | {
        "ns": ns,
        "person": f"person-{ns}",
    }
    (folder / "admin").mkdir()
    admin_config = folder / "admin" / "kubeconfig"
    admin_config.write_text(home.kubeconfig.read_text())
    admin = person_with(home, admin_config, ns)
    portal = _person(home, folder, "portal", "gpu-portal", ns)
    try:
        _write_projects(portal, names)
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names["foreign"]}})
        managed = {"name": names["bare"], "labels": {"gpu-portal.io/managed": "true"}}
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": managed})
        runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"nvidia-{ns}"}}
        admin.apply({**runtime, "handler": "nvidia"})
        tenant, viewer = (
            _person(home, folder, account, "gpu-portal-people", ns)
            for account in (names["person"], f"{names['person']}-viewer")
        )
        _see_the_guards_act(portal, tenant)
        names |= _make_honest_things(tenant)
        yield Stage(admin, portal, tenant, viewer, names | {"huge": "x" * HUGE, "gangs": gangs(), **TEXTS})
    finally:
        _take_all_away(admin, portal, names)


def _write_projects(portal: Person, names: Mapping[str, str]) -> None:
    person = names["person"]
    for manifest in project(ns=names["ns"], level="restricted", person=person):
        portal.apply(manifest)
    for part, level in (("open", "privileged"), ("warned", "restricted")):
        for manifest in project(SHARED_KINDS, ns=names[part], level=level, person=person):
            portal.apply(manifest)
    portal.do("label", "namespace", names["warned"], "gpu-portal.io/guard=audit", "--field-manager=gpu-portal")
    for manifest in project(SHARED_KINDS, ns=names["neighbours"], level="restricted", person="person-other"):
        portal.apply(manifest)


def _see_the_guards_act(portal: Person, tenant: Person) -> None:
    """Wait until policies and quotas are in force, which is a moment after they are written."""
    bad = build({"pod": {"container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}}, "sentinel")
    good = build({"pod": {"labels": {"gpu-portal.io/allocation": "serve-1"}}}, "sentinel")
    eventually(lambda: "gpu-portal-pod-gpus" in tenant.create(bad, dry_run=True).message)
    eventually(lambda: tenant.create(good, dry_run=True).status == 201)
    eventually(lambda: portal.get("resourcequota", f"gpu-portal-hold-{tenant.namespace}")["status"].get("hard"))


def _make_honest_things(tenant: Person) -> dict[str, str]:
    """Create all of honest.yaml; return the uid of the waiting Job and the pod of the running one."""
    for entry in table("honest"):
        tenant.created(build(entry, entry["name"]))
    tenant.do("create", "secret", "generic", "mine", "--from-literal=key=value")
    tenant.do("create", "service", "clusterip", "own", "--tcp=80")
    tenant.created(VOLUME)
    (pod,) = eventually(lambda: tenant.items("pods", "job-name=running"))
    return {"waiting_uid": tenant.get("job", "waiting")["metadata"]["uid"], "running_pod": pod["metadata"]["name"]}


def _take_all_away(admin: Person, portal: Person, names: Mapping[str, str]) -> None:
    ns = names["ns"]
    for part in ("ns", "open", "warned", "neighbours"):
        portal.delete("namespace", names[part])
    for part in ("foreign", "bare"):
        admin.delete("namespace", names[part])
    admin.api.call("DELETE", NAMESPACED["Pod"].format(ns), {"gracePeriodSeconds": 0})
    for person in (names["person"], f"{names['person']}-viewer"):
        portal.api.delete("serviceaccount", person, "gpu-portal-people")
    portal.delete("priorityclass", f"gpu-portal-hold-{ns}")
    for kind in CLUSTER_WIDE:
        portal.delete(kind, ns)
    admin.delete("runtimeclass", f"nvidia-{ns}")
    eventually(lambda: not admin.api.objects("pods,resourceclaims", ns))
