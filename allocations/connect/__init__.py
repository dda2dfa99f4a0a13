"""How people use what they hold: kubeconfig, and a sample pod."""
