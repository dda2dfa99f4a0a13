"""A plausible past of the demo, drawn at random from a seed, and written to the ledger before what is recorded.

``world`` reads fleet, teams and quotas; ``generator`` draws what happened; ``writer`` adds it to the ledger,
rolls it up and proves its balance.
"""
