"""Builds the manifests that the portal applies: each function returns all fields that the portal owns. Pure."""
