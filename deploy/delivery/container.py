"""A container of a pod, run by runc from the unpacked image: its own command, environment, mounts and user.

Written by the OCI runtime specification 1.0.2: https://github.com/opencontainers/runtime-spec
"""

import http.client
import json
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from deploy.delivery import network

Object = dict[str, Any]
NAMESPACES = ("pid", "mount", "network", "ipc", "uts")


@dataclass(frozen=True)
class Image:
    """An image's root file system and its configuration (`config` of the OCI image specification)."""

    root: Path
    config: Object


class Container:
    """A container that runs from its creation on. ``volumes`` are folders by the names of the pod's volumes."""

    def __init__(
        self, id_: str, image: Image, spec: Object, volumes: dict[str, Path], bundle: Path, ports: list[int]
    ) -> None:
        self.id, self.bundle = id_, bundle
        bundle.mkdir(parents=True)
        (bundle / "config.json").write_text(json.dumps(runtime_spec(image, spec, volumes), indent=1))
        with (bundle.parent / f"{bundle.name}.log").open("ab") as log:
            command = ["runc", "run", f"--bundle={bundle}", f"--pid-file={bundle / 'pid'}", id_]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._ports, self._listening = ports, list[socket.socket]()

    @property
    def exit_code(self) -> int | None:
        """The exit status of its command, or None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """The pid of its command; 0 until there is one. From then on the machine's ports are reached from within."""
        file = self.bundle / "pid"
        pid = int(file.read_text() or 0) if file.exists() else 0
        if pid and self._ports:
            ports, self._ports = self._ports, []
            for port in ports:
                self._listening.append(network.listen(pid, port))
                network.forward(self._listening[-1], partial(socket.create_connection, ("127.0.0.1", port)))
        return pid

    def passes(self, probe: Object) -> bool:
        """Return whether a probe succeeds: `exec`, or `httpGet` of a port by number."""
        if not self.pid:
            return False
        timeout_s = probe.get("timeoutSeconds", 1)
        if execute := probe.get("exec"):
            command = ["runc", "exec", self.id, *execute["command"]]
            with suppress(subprocess.TimeoutExpired):
                return not subprocess.run(command, capture_output=True, timeout=timeout_s, check=False).returncode
            return False
        get = probe["httpGet"]
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", timeout=timeout_s)
            connection.sock = network.connect(self.pid, get["port"])
            connection.sock.settimeout(timeout_s)
            headers = {header["name"]: header["value"] for header in get.get("httpHeaders", ())}
            connection.request("GET", get["path"], headers=headers)
            return connection.getresponse().status < 400
        return False

    def execute(self, *command: str, env: dict[str, str] | None = None) -> str:
        """Return what a command within the container prints, as `kubectl exec` does; raise CalledProcessError."""
        variables = [f"--env={name}={value}" for name, value in (env or {}).items()]
        words = ["runc", "exec", *variables, self.id, *command]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def stop(self, grace_s: float) -> None:
        """End it by SIGTERM, and after ``grace_s`` by SIGKILL."""
        for signal, wait_s in (("TERM", grace_s), ("KILL", 10.0)):
            subprocess.run(["runc", "kill", self.id, signal], capture_output=True, check=False)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
                break
        self.close()

    def close(self) -> None:
        for listening in self._listening:
            listening.close()


def runtime_spec(image: Image, spec: Object, volumes: dict[str, Path]) -> Object:
    """Return runc's configuration of a container of a pod."""
    security = spec["securityContext"]
    command: list[str] = spec["command"] if "command" in spec else image.config["Entrypoint"]
    arguments: list[str] = spec["args"] if "args" in spec else [] if "command" in spec else image.config["Cmd"]
    env = dict(word.split("=", 1) for word in image.config["Env"]) | {one["name"]: one["value"] for one in spec["env"]}
    mounts: list[Object] = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},  # noqa: S108
        *(
            {
                "destination": mount["mountPath"].replace("/var/run/", "/run/"),  # a link in the image
                "type": "bind",
                "source": str(volumes[mount["name"]]),
                "options": ["rbind", "ro" if mount.get("readOnly") else "rw"],
            }
            for mount in spec["volumeMounts"]
        ),
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": security["runAsUser"], "gid": security["runAsGroup"]},
            "args": [*command, *arguments],
            "env": [f"{name}={value}" for name, value in env.items()],
            "cwd": image.config["WorkingDir"],
            "noNewPrivileges": not security["allowPrivilegeEscalation"],
            "capabilities": {},
        },
        "root": {"path": str(image.root), "readonly": security["readOnlyRootFilesystem"]},
        "hostname": spec["name"],
        "mounts": mounts,
        "linux": {"namespaces": [{"type": name} for name in NAMESPACES]},
    }
