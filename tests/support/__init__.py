"""What tests share: builders, facts of nodes and devices, and requests."""
