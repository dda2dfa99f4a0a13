"""How the processes of the portal start, and how one of the web takes requests before the application sees them."""
