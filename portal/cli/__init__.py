"""The `gpu-portal` command: a client of the REST API. It imports nothing of the portal except the fields of a request
(``allocations.domain``), which need no Django.
"""
