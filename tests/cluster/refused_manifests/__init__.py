"""Manifests as people bring them, what they are told, and what runs in their place."""
