"""REST over HTTP: authentication, pages, ETags, repeated requests, errors and throttling."""
