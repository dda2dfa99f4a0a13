"""REST bodies: what is taken and what is answered."""
