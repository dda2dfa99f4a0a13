"""The capacity of the fleet: its devices, their use, and what fits."""
