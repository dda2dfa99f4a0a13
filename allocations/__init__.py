"""What was asked, and making it so: requests, their phases, and the reconcilers against the cluster."""
