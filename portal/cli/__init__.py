"""The `gpu-portal` command: a client of the REST API. It imports nothing of the portal but the fields of a request
(``allocations.domain``) and how YAML is written (``portal.yaml_text``), which need no Django.
"""
