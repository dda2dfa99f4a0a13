"""Examples of pods and Jobs on an allocation, to copy and to download without a script, each with its commands."""

from base64 import b64encode
from dataclasses import dataclass

import yaml

from allocations.connect.connection import commands, deployment_yaml, job_yaml, pod_yaml, pytorch_yaml
from allocations.models import Allocation


@dataclass(frozen=True)
class Example:
    """An example; ``url`` has the whole file, ``commands`` create and use what it describes."""

    word: str
    file: str
    yaml: str

    @property
    def url(self) -> str:
        return f"data:application/yaml;base64,{b64encode(self.yaml.encode()).decode()}"

    @property
    def commands(self) -> str:
        made = yaml.safe_load(self.yaml)
        return commands(made["kind"].lower(), made["metadata"]["name"], self.file)


def examples(row: Allocation) -> list[Example]:
    return [
        Example("Pod", "pod.yaml", pod_yaml(row)),
        Example("Job", "job.yaml", job_yaml(row)),
        Example("PyTorch", "pytorch.yaml", pytorch_yaml(row)),
        Example("Deployment", "deployment.yaml", deployment_yaml(row)),
    ]
