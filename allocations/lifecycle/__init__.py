"""The lifecycle of an allocation: its transitions, its spec, and its desired state in the cluster."""
