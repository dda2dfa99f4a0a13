"""Shared code of tests on a real control plane."""
