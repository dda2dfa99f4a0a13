"""Limits and quotas of holders, and their projection to Kueue."""
