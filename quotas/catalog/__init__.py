"""Clusters, flavors, pools, offerings: what there is."""
