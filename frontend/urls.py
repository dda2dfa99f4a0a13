"""The routes of the pages, which the modules of `views` name. Dialogs have addresses of their own too."""

from frontend import views
from portal.core.modules import modules_of

urlpatterns = [route for module in modules_of(views) for route in module.urlpatterns]
