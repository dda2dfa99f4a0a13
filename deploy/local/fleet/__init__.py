"""The simulated hardware: nodes and ResourceSlices, published as kubelet and NVIDIA's components publish them.

`spec` reads fleet.yaml. Pure: `nodes`, `labels` and `gfd` build a node; `slices`, `slots`, `partitions`,
`fixed_devices` and `capacities` build what a DRA driver publishes; `mig_manager` and `mig_configs` react to a MIG
label. `publisher` keeps the cluster in that state, `state` stores the changes that commands request.
"""
