"""Django's PostgreSQL backend, but for the check of a connection before a request."""
