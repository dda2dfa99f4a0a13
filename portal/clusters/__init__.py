"""The Kubernetes clusters that the portal knows, each a row."""
