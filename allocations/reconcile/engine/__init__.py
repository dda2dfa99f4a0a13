"""The reconcile engine: plan, apply, and the dispatch of targets to controllers."""
