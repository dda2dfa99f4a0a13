"""The simulated hardware: nodes and ResourceSlices, published as kubelet and NVIDIA's components do it.

`spec` reads fleet.yaml. Pure: `nodes`, `labels`, `gfd` build a node; `slices`, `cards`, `partitions`, `fixed_devices`,
`capacities` what a DRA driver publishes; `mig_manager`, `mig_configs` answer a MIG label. `publisher` keeps the
cluster so, `state` holds what commands ask of it.
"""
