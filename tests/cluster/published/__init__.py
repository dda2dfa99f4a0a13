"""NVIDIA's DRA demo specs and Kueue's job examples: what a tenant is told of each, and what does the same here."""
