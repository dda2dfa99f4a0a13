"""The scripted tour of a running demo: over REST as a team member, and with the kubeconfig that REST returns."""
