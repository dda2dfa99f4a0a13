"""Write operations on projects and their organization: create, adopt, move, archive."""
