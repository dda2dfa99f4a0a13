"""Whether a cluster is ready for the portal: facts collected from it, and checks of them."""
