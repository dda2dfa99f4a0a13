"""Builds example manifests beside the example pod: a Job, a Job that runs PyTorch, and a Deployment."""

from allocations.connect import sample_pod
from allocations.domain.objects import Manifest, ResolvedSpec

PYTORCH = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
DEVICES = "import torch; print(torch.cuda.device_count(), 'devices:', torch.cuda.get_device_name())"


def job(spec: ResolvedSpec) -> Manifest:
    """Return a Job of one pod that uses the allocation. It needs no queue label: the quota is the allocation's."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{spec.name}-job", "namespace": spec.namespace},
        "spec": {"backoffLimit": 0, "template": _template(spec)},
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


def deployment(spec: ResolvedSpec) -> Manifest:
    """Return a Deployment of one pod. An update ends it before the next (Recreate): both would not find slices."""
    template, name = _template(spec), f"{spec.name}-serve"
    template["metadata"]["labels"] = {"app": name, **template["metadata"]["labels"]}
    template["spec"]["restartPolicy"] = "Always"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": spec.namespace},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def _template(spec: ResolvedSpec) -> Manifest:
    pod = sample_pod.build(spec)
    metadata = {key: value for key, value in pod["metadata"].items() if key in ("labels", "annotations")}
    return {"metadata": metadata, "spec": pod["spec"]}
