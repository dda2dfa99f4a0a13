"""Names of NVIDIA's DRA driver, of its DeviceClasses and of a node label. Pure.

Source: dra-driver-nvidia-gpu, deployments/helm; gpu-feature-discovery.
"""

DRA_DRIVER = "gpu.nvidia.com"
WHOLE_GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"
CLIQUE_LABEL = "nvidia.com/gpu.clique"
"""The NVLink domain and clique of a node."""
