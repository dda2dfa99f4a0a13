"""What GPUs there are, what is held of them, and what fits."""
