"""The Kubernetes clusters that the portal knows, one row each."""
