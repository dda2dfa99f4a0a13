"""Everything that knows Kubernetes: client, watcher, names, projectors, manifests, backends and preflight checks."""
