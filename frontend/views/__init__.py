"""One module per page. Views read through selectors, change through services, and lay nothing out."""
