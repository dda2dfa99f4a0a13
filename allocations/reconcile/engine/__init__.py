"""From a difference to writes: plan, apply, and the dispatch of targets to controllers."""
