"""Limits on departments, teams, projects and members, as people change them."""
