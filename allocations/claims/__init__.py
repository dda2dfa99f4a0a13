"""Custom DRA claims: parses, validates, counts and builds them. Pure."""
