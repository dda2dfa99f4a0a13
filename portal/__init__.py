"""The portal's process: settings, URLs, the Celery application, and code shared by all apps.

It imports nothing: the `gpu-portal` command is a part of it, and starts in half the time without Celery.
"""
