"""A node that runs the pods of the chart, as a kubelet would, beside the simulated ones, whose pods run nothing.

For each pod that the scheduler has put on it: init containers, then the container with its probes, with Secrets and the
token of its service account mounted. It ends a deleted pod within its grace period. The Service of the chart is served
on a port of this machine, from the endpoints that Kubernetes' own controller lists.
"""

import base64
import json
import os
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.delivery import network
from deploy.delivery.container import Container, Image
from deploy.local.fleet.api import Api, ApiError

Object = dict[str, Any]
NAME, NAMESPACE = "portal-host", "gpu-portal"
ANNOTATION = "simulated-fleet.gpu-portal.io/run-by"
"""On pods that this node runs; KWOK's stages leave them alone."""
TOKEN_FOLDER = "/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105
LOOK_S = 0.25
FINAL = ("Succeeded", "Failed")


class Node:
    """The node, and the pods that run on it by name. ``ports`` of this machine are reached from within all pods."""

    def __init__(self, api: Api, image: Image, folder: Path, apiserver: int, ports: list[int]) -> None:
        self.api, self.image, self.folder, self.apiserver, self.ports = api, image, folder, apiserver, ports
        self.pods: dict[str, Pod] = {}
        self.endpoints: list[str] = []
        self._stop = threading.Event()
        self._service = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._next = 0

    @property
    def url(self) -> str:
        """The address of the Service."""
        return f"http://127.0.0.1:{self._service.getsockname()[1]}"

    def start(self) -> None:
        capacity = {"cpu": "16", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}, "status": {"capacity": capacity}}
        self.api.create("/api/v1/nodes", node)
        self.api.merge(f"/api/v1/nodes/{NAME}/status", {"status": {"allocatable": capacity}})
        network.forward(self._service, self._dial)
        threading.Thread(target=self._look, daemon=True).start()

    def stop(self) -> None:
        """End what still runs."""
        self._stop.set()
        self._service.close()
        for pod in self.pods.values():
            if pod.container:
                pod.container.stop(5.0)

    def running(self, component: str) -> "Pod":
        """Return a ready pod of a role."""
        return next(pod for pod in self.pods.values() if pod.component == component and pod.is_ready)

    def _dial(self) -> socket.socket:
        """Return a connection to the next endpoint, as kube-proxy chooses one for each connection."""
        by_address = {pod.address: pod for pod in self.pods.values()}
        pods = [by_address[address] for address in self.endpoints if address in by_address]
        self._next += 1
        for pod in pods[self._next % max(len(pods), 1) :] + pods:
            if pod.container and pod.container.pid:
                with suppress(OSError):
                    return network.connect(pod.container.pid, 8000)
        raise ConnectionRefusedError

    def _look(self) -> None:
        while not self._stop.wait(LOOK_S):
            with suppress(ApiError, OSError):
                self._look_once()

    def _look_once(self) -> None:
        listed = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?fieldSelector=spec.nodeName%3D{NAME}")["items"]
        for document in listed or []:
            name = document["metadata"]["name"]
            if name not in self.pods and document["status"].get("phase") not in FINAL:
                self.pods[name] = Pod(self, document, f"10.244.9.{len(self.pods) + 1}")
                self.pods[name].start()
            elif name in self.pods and "deletionTimestamp" in document["metadata"]:
                self.pods[name].is_deleted = True
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        self.endpoints = [
            endpoint["addresses"][0]
            for each in self.api.get(slices)["items"] or []
            for endpoint in each["endpoints"] or []
            if endpoint["conditions"].get("ready")
        ]


class Pod(threading.Thread):
    """A pod, from its start to its end."""

    def __init__(self, node: Node, document: Object, address: str) -> None:
        super().__init__(daemon=True, name=document["metadata"]["name"])
        self.node, self.spec, self.address = node, document["spec"], address
        self.component = document["metadata"]["labels"]["app.kubernetes.io/component"]
        self.path = f"/api/v1/namespaces/{NAMESPACE}/pods/{self.name}"
        self.folder = node.folder / self.name
        self.is_deleted = self.is_ready = False
        self.container: Container | None = None
        self.restarts = 0
        self.started_at = _now()

    def run(self) -> None:
        volumes = {volume["name"]: self._volume(volume) for volume in self.spec["volumes"]}
        self._report("Pending")
        for spec in self.spec.get("initContainers", ()):
            while not self.is_deleted and self._run(spec, volumes):
                self.restarts += 1
        main = self.spec["containers"][0]
        while not self.is_deleted:
            code = self._run(main, volumes)
            if self.spec["restartPolicy"] == "Never":
                self._report("Failed" if code else "Succeeded", code)
                return
            self.restarts += 1
        self._report("Failed")  # KWOK deletes it then

    def _run(self, spec: Object, volumes: dict[str, Path]) -> int | None:
        """Return the exit status of a container, or None of one that was ended with its pod."""
        service = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.node.apiserver)}
        spec = {**spec, "env": [*spec["env"], *({"name": name, "value": value} for name, value in service.items())]}
        bundle = self.folder / f"{spec['name']}-{self.restarts}"
        id_ = f"{self.name}-{bundle.name}"
        self.container = container = Container(id_, self.node.image, spec, volumes, bundle, self.node.ports)
        try:
            return self._watch(spec, container)
        finally:
            self.is_ready = False
            container.close()

    def _watch(self, spec: Object, container: Container) -> int | None:
        started = "startupProbe" not in spec
        failures, due = 0, {"startupProbe": 0.0, "readinessProbe": 0.0, "livenessProbe": 0.0}
        self._report("Running")
        while container.exit_code is None:
            if self.is_deleted:
                self.is_ready = False
                pre_stop = spec.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
                time.sleep(pre_stop)
                container.stop(self.spec["terminationGracePeriodSeconds"] - pre_stop)
                return None
            kinds = ("readinessProbe", "livenessProbe") if started else ("startupProbe",)
            for kind in kinds:
                if kind not in spec or time.monotonic() < due[kind]:
                    continue
                probe = _numbered(spec[kind], spec.get("ports", ()))
                passed = container.passes(probe)
                due[kind] = time.monotonic() + probe.get("periodSeconds", 10)
                if kind == "startupProbe":
                    started = passed
                elif kind == "readinessProbe":
                    self._set_ready(passed)
                failures = 0 if passed or kind == "readinessProbe" else failures + 1
                if failures >= probe.get("failureThreshold", 3):
                    container.stop(self.spec["terminationGracePeriodSeconds"])
            if started and "readinessProbe" not in spec:
                self._set_ready(container.pid > 0)
            time.sleep(0.1)
        return container.exit_code

    def _set_ready(self, is_ready: bool) -> None:
        if is_ready != self.is_ready:
            self.is_ready = is_ready
            self._report("Running")

    def _report(self, phase: str, exit_code: int | None = None) -> None:
        """Write the pod's status."""
        ready = "True" if self.is_ready else "False"
        conditions = [
            {"type": name, "status": ready, "lastTransitionTime": _now()} for name in ("Ready", "ContainersReady")
        ]
        main = self.spec["containers"][0]
        state: Object = {"running": {"startedAt": self.started_at}}
        if phase in FINAL:
            state = {"terminated": {"exitCode": exit_code or 0, "startedAt": self.started_at, "finishedAt": _now()}}
        elif phase == "Pending":
            state = {"waiting": {"reason": "PodInitializing"}}
        container = {
            **{"name": main["name"], "image": main["image"], "imageID": main["image"]},
            **{"ready": self.is_ready, "started": phase == "Running", "restartCount": self.restarts, "state": state},
        }
        status = {
            **{"phase": phase, "conditions": conditions, "containerStatuses": [container]},
            **{"podIP": self.address, "podIPs": [{"ip": self.address}], "startTime": self.started_at},
        }
        with suppress(ApiError):  # it may be gone
            self.node.api.merge(f"{self.path}/status", {"status": status})

    def _volume(self, volume: Object) -> Path:
        """Return a folder with what the volume has."""
        folder = self.folder / "volumes" / volume["name"]
        folder.mkdir(parents=True)
        files: dict[str, bytes] = {}
        if secret := volume.get("secret"):
            found = self.node.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{secret['secretName']}")
            files = {name: base64.b64decode(value) for name, value in found["data"].items()}
        elif "projected" in volume:  # the token that the service account admission adds
            request = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 3607},
            }
            account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self.spec['serviceAccountName']}"
            token = self.node.api.create(f"{account}/token", request)["status"]["token"]
            root = self.node.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/kube-root-ca.crt")["data"]["ca.crt"]
            files = {"token": token.encode(), "ca.crt": root.encode(), "namespace": NAMESPACE.encode()}
        group = self.spec["securityContext"]["fsGroup"]
        for name, content in files.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o440)
            os.chown(folder / name, 0, group)
        os.chown(folder, 0, group)
        folder.chmod(0o2770 if "emptyDir" in volume else 0o750)
        return folder


def _numbered(probe: Object, ports: list[Object]) -> Object:
    """Return a probe whose port is a number, where it is a name."""
    text = json.dumps(probe)
    for port in ports:
        text = text.replace(f'"port": "{port["name"]}"', f'"port": {port["containerPort"]}')
    numbered: Object = json.loads(text)
    return numbered


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
