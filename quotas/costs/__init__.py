"""Prices and the rating of usage."""
