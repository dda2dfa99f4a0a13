"""What people do with requests for GPUs: ask, preview, extend, release, read."""
