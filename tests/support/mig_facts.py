"""Sample GPUs that are divided on demand, as their driver publishes them."""

from quotas.catalog.discovery import DeviceFact
from quotas.catalog.layouts import device_label
from quotas.catalog.mig_tables import TABLES, Geometry

H100 = TABLES["H100-80GB"]
PRODUCT = "NVIDIA H100 80GB HBM3"


def cut_gpu(node: str, index: int = 0, geometry: Geometry = H100) -> tuple[DeviceFact, ...]:
    """Return the devices of a GPU: the whole GPU, and every profile at every placement."""
    uuid, name = f"GPU-{node}-{index}", f"gpu-{index}"
    common = {"productName": PRODUCT, "resource.kubernetes.io/pcieRoot": f"pci{index // 2}"}
    whole = {"type": "gpu", "uuid": uuid, **common}
    return (
        DeviceFact(name, whole, {"memory": "81152Mi"}, _counters(name, range(geometry.memory))),
        *(
            DeviceFact(
                device(name, profile.name, start, geometry),
                {"type": "mig", "profile": profile.name, "parentUUID": uuid, **common},
                {"memory": f"{profile.memory_mib}Mi", "multiprocessors": str(profile.multiprocessors)},
                _counters(name, range(start, start + profile.size)),
            )
            for profile in geometry.profiles
            for start in profile.starts
        ),
    )


def device(gpu: str, profile: str, start: int, geometry: Geometry = H100) -> str:
    one = geometry.profile(profile)
    return f"{gpu}-mig-{device_label(one.name)}-{one.gi_id}-{start}"


def _counters(gpu: str, slices: range) -> dict[str, dict[str, str]]:
    return {f"{gpu}-counter-set": {f"memory-slice-{index}": "1" for index in slices}}
