"""Real starts of fresh clones, as a new user has them."""
