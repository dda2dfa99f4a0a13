"""Builds example manifests beside the example pod: a Job, and a Job that runs PyTorch."""

from allocations.connect import sample_pod
from allocations.domain.objects import Manifest, ResolvedSpec

PYTORCH = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
DEVICES = "import torch; print(torch.cuda.device_count(), 'devices:', torch.cuda.get_device_name())"


def job(spec: ResolvedSpec) -> Manifest:
    """Return a Job of one pod that uses the allocation. It needs no queue label: the quota is the allocation's."""
    pod = sample_pod.build(spec)
    metadata = {key: value for key, value in pod["metadata"].items() if key in ("labels", "annotations")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{spec.name}-job", "namespace": spec.namespace},
        "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": pod["spec"]}},
    }


def pytorch(spec: ResolvedSpec) -> Manifest:
    """Return a Job that prints the devices that PyTorch finds."""
    made = job(spec)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container |= {
        "image": PYTORCH,
        "command": ["python", "-c", DEVICES],
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 (the pod's own)
    }
    made["metadata"]["name"] = f"{spec.name}-pytorch"
    return made
