"""Requests for GPUs: preview, request, extend, release, and read."""
