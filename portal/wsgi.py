"""The WSGI application that web servers import."""

import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from portal.core import threads
from portal.http.content_type import take_utf8_only
from portal.http.cookies import drop_escaped

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
threads.take_turns_often()

application = drop_escaped(take_utf8_only(get_wsgi_application()))
import_module(settings.ROOT_URLCONF)  # and so all views: else the first request of each process waits for that
import_module("portal.api.views.schema").make()
threads.keep_what_is_loaded()
