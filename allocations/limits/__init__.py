"""Limits on departments, teams, projects and members: read, change, preview."""
