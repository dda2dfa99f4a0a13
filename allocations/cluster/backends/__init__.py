"""How slices are held, one module for each way: DRA and device plugin. Pure."""
