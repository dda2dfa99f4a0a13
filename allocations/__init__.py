"""Allocations: requests, their phases, and the controllers that reconcile them with the cluster."""
