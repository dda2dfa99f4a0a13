"""A tenant with random operations from a seed, and the invariants that must hold after them.

generator.py chooses operations, manifests.py and changes.py build their content, operations.py performs them,
invariants.py checks, trial.py runs it all.
"""
