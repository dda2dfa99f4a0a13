"""REST views, a module for each resource."""
