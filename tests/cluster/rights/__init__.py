"""What tenants may write: the permissions of their role and the fields they can write, each with its guard."""
