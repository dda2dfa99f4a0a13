"""The `gpu-portal` command: a client of the REST API, and nothing else. It imports no part of the portal."""
