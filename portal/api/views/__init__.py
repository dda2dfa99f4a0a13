"""REST views, a module for each resource, with its addresses."""
