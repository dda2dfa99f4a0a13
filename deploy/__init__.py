"""Deployment of the portal: cluster manifests for an administrator, and the local cluster."""
