"""A real control plane on this machine, without root or containers."""
