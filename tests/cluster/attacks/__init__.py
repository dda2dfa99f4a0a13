"""The tables of test_attacks: what is tried, what honest people do, and the project that both meet."""
