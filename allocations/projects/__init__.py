"""Projects on the cluster: adopted, moved to another team, archived."""
