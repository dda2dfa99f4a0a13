"""What a demo has and an installation has not: a past that is simulated. Nothing of the product imports it."""
