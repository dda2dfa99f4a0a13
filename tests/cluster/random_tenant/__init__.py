"""A tenant who tries everything at random: operations from a seed, and what must hold whatever was tried.

generator.py chooses operations, manifests.py and changes.py say what they send, operations.py performs them,
invariants.py judges, trial.py puts it together.
"""
