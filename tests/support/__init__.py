"""Shared code of tests: builders, sample nodes and devices, requests."""
