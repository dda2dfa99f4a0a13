"""Tenants: departments, teams, projects, members and tokens, and the permission table."""
