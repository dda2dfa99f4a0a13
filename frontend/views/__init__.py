"""One module per page, with its addresses and the page of the docs that explains it (`frontend.docs_pages`). Views read
through selectors, change through services, and lay nothing out.
"""
