"""Benchmarks of the portal against a bare client that writes the same objects to the same cluster."""
