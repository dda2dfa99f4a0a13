"""The states of an allocation, and what it should have on the cluster now."""
