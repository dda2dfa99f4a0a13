"""Observe, plan, apply: the level-triggered loop over allocations, projects and the platform."""
