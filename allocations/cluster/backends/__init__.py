"""The ways to hold slices, one module each: Dynamic Resource Allocation and device plugin. Pure."""
