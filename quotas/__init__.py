"""What GPUs there are, who may have how much, who had it, and what it cost."""
