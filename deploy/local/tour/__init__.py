"""The scripted tour of a running demo: through REST as a team's member, and with the kubeconfig that REST gives."""
