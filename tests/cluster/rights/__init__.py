"""What tenants may write: the rights of their role and the fields of what they write, each with what guards it."""
