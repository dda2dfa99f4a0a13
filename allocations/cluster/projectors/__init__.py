"""Facts about Kubernetes objects, one module for each subject. Pure.

A projector returns the few fields of a raw object that the portal reads, or None for an object that does not concern
it, such as most pods of a cluster.
"""
