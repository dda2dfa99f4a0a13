"""Shared code of tests under faults: load, a witness of holds, and checks."""
