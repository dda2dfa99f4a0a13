"""Who works where: departments, teams, projects, members, tokens, and the one permission table."""
