"""What runs the portal: manifests for an administrator, and the local cluster."""
