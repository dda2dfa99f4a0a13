"""The REST interface under /api/v1: authentication, problems, paging, idempotency, schema, routes."""
