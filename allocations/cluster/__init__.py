"""The one place that talks to Kubernetes: client, reflector, names and pure manifest builders."""
