"""Access to an allocation: a kubeconfig, shell commands, and an example pod."""
