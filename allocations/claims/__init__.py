"""A person's own DRA request: read, checked, counted and built. Pure: no Django, no cluster, no clock."""
