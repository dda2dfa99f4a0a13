"""Examples of pods and Jobs on an allocation, to copy and to download without a script, each with its commands."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property

import yaml

from allocations.connect.connection import (
    FILE,
    LISTED,
    commands,
    deployment_yaml,
    job_yaml,
    pod_yaml,
    pytorch_yaml,
    use_commands,
)
from allocations.models import Allocation


@dataclass(frozen=True)
class Example:
    """An example; ``url`` has the whole file, ``tools`` create and use what it describes, by what they are for."""

    word: str
    file: str
    yaml: str
    row: Allocation

    @property
    def url(self) -> str:
        return f"data:application/yaml;base64,{b64encode(self.yaml.encode()).decode()}"

    @property
    def tools(self) -> list[tuple[str, str]]:
        return [("kubectl", self.commands), ("CLI", self._cli), ("Python", self._python)]

    @property
    def commands(self) -> str:
        return commands(*self._object, self.file)

    @cached_property
    def _object(self) -> tuple[str, str]:
        made = yaml.safe_load(self.yaml)
        return made["kind"].lower(), made["metadata"]["name"]

    @property
    def _cli(self) -> str:
        row = self.row
        return "\n".join(
            [
                "gpu-portal login",
                "# This kubeconfig renews its token by itself:",
                f"gpu-portal kubeconfig --project {row.project.slug} --file {FILE}",
                f"export KUBECONFIG=$PWD/{FILE}",
                *use_commands(*self._object, self.file),
                f"gpu-portal show {row.name}",
                f"gpu-portal extend {row.name} --hours 2",
                f"gpu-portal release {row.name}",
            ]
        )

    @property
    def _python(self) -> str:
        kind, name = self._object
        space = self.row.project.namespace
        selector = LISTED[kind].format(name).partition("-l ")[2]
        found = f'core.list_namespaced_pod(space, label_selector="{selector}").items[0].metadata.name'
        return "\n".join(
            [
                "# pip install kubernetes",
                "from kubernetes import client, config, utils",
                "from kubernetes.stream import portforward, stream",
                "",
                f'config.load_kube_config("{FILE}")',
                f'core, space = client.CoreV1Api(), "{space}"',
                f'utils.create_from_yaml(client.ApiClient(), "{self.file}", namespace=space)',
                f"pod = {found}" if selector else f'pod = "{name}"',
                "",
                "# Logs, once it runs:",
                "for line in core.read_namespaced_pod_log(pod, space, follow=True, _preload_content=False):",
                '    print(line.decode(), end="")',
                "# A command in it:",
                "run = core.connect_get_namespaced_pod_exec",
                'print(stream(run, pod, space, command=["nvidia-smi", "-L"], stdout=True))',
                "# A socket to its port 8080, if it listens there:",
                'ports = portforward(core.connect_get_namespaced_pod_portforward, pod, space, ports="8080")',
                "socket = ports.socket(8080)",
            ]
        )


def examples(row: Allocation) -> list[Example]:
    return [
        Example("Pod", "pod.yaml", pod_yaml(row), row),
        Example("Job", "job.yaml", job_yaml(row), row),
        Example("PyTorch", "pytorch.yaml", pytorch_yaml(row), row),
        Example("Deployment", "deployment.yaml", deployment_yaml(row), row),
    ]
