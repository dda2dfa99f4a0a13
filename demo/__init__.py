"""What a demo has and an installation has not: its people, prices and presets, and a past that is simulated.

Nothing of the product imports it.
"""
