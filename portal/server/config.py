"""Settings of gunicorn for a web process: `gunicorn portal.wsgi --config=python:portal.server.config`.

https://docs.gunicorn.org/en/stable/settings.html says what each means.
"""

worker_class = "portal.server.worker.Worker"
workers = 2
threads = 16
keepalive = 75  # longer than the proxy keeps idle connections (nginx: 60 s), or it uses one that is being closed
worker_connections = 500  # of each worker; below what a process may open
control_socket_disable = True  # it would be one for all portals of a user
