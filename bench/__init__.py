"""How fast the portal is beside a bare client that writes the same objects on the same cluster."""
