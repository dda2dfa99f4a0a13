"""The tables of test_attacks: attacks, permitted actions, and the project used for both."""
