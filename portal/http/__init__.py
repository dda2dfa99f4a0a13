"""Shared by all HTTP requests: middleware, client addresses and limits on them."""
