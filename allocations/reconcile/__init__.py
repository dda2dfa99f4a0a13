"""Controllers that reconcile allocations, projects and the platform with the cluster, level-triggered."""
