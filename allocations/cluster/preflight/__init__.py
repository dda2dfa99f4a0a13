"""Checks whether a cluster is ready for the portal: collects facts from it, and examines them."""
