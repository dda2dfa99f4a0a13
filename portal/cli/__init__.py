"""The `gpu-portal` command: a client of the REST API, and nothing else. Of the portal it imports only which
fields a request has (``allocations.domain``), which needs no Django."""
