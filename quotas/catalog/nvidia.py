"""Names of NVIDIA's DRA driver and of its DeviceClasses. Pure. Source: dra-driver-nvidia-gpu, deployments/helm."""

DRA_DRIVER = "gpu.nvidia.com"
WHOLE_GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"
