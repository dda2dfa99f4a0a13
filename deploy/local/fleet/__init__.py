"""The simulated hardware: nodes and ResourceSlices, published as kubelet and NVIDIA's components do it.

`spec` reads fleet.yaml, `nodes` and `slices` build the objects (pure), `publisher` keeps the cluster so.
"""
