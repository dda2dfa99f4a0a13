"""GPU catalog, limits and quotas, usage, and costs."""
