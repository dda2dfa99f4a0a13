"""All settings, read from the environment; production differs from development by its environment only.

Names of variables equal names of settings. Secrets may come as `<NAME>_FILE` (see `portal.env`).
"""

from pathlib import Path
from typing import Any

from celery.schedules import crontab
from django.core.management.utils import get_random_secret_key

from portal import database, env
from portal.core import logs

BASE_DIR = Path(__file__).resolve().parent.parent

# --- process ----------------------------------------------------------------------------------------------
DEBUG = env.boolean("DEBUG", False)  # pages show errors in full; never in production
# A checkout on one's own machine: over plain HTTP, and with the app `demo`.
GPU_PORTAL_LOCAL = env.boolean("GPU_PORTAL_LOCAL", False)
# Signs sessions and messages; long, random, and the same for all processes.
SECRET_KEY = env.text("SECRET_KEY", get_random_secret_key()) if DEBUG else env.required("SECRET_KEY")
ALLOWED_HOSTS = env.strings("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])  # names by which it is reached
CSRF_TRUSTED_ORIGINS = env.strings("CSRF_TRUSTED_ORIGINS", [])  # https://gpu.example.com and the like
PORTAL_URL = env.text("PORTAL_URL", "http://127.0.0.1:8000")  # as people reach it, for links in messages
ALIVE_FILE = env.text("ALIVE_FILE")  # worker, beat and watcher touch it while they work; probes of containers read it
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"

# --- stores -----------------------------------------------------------------------------------------------
DATABASES = {"default": database.from_url(env.required("DATABASE_URL"))}  # PostgreSQL, as the role of the application
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")  # messages to workers, and counters of limits

# --- cluster ----------------------------------------------------------------------------------------------
KUBECONFIG = env.text("KUBECONFIG")  # only server, CA and token are taken from it; empty means in-cluster
CLUSTER_NAME = env.text("CLUSTER_NAME", "local")  # names the cluster in rows and answers; it stays
KUBERNETES_PUBLIC_URL = env.text("KUBERNETES_PUBLIC_URL")  # API server in people's kubeconfigs, if not the portal's
KUBECONFIG_TTL_S = env.integer("KUBECONFIG_TTL_S", 3600)  # life of the token in a person's kubeconfig

# --- etcd -------------------------------------------------------------------------------------------------
PROJECT_STORE_MIB = env.integer("PROJECT_STORE_MIB", 320)  # what a project's objects may take: numbers × sizes
# etcd's own --quota-backend-bytes, which the API server does not tell. etcd's default; it suggests 8 GiB at most.
ETCD_QUOTA_BYTES = env.integer("ETCD_QUOTA_BYTES", 2 * 1024**3)
STORE_READ_S = env.integer("STORE_READ_S", 60)  # how often the size of etcd's database is read

# --- deadlines, in seconds unless the name says otherwise -------------------------------------------------
START_DEADLINE_S = env.integer("START_DEADLINE_S", 120)  # admitted, not held; below Kueue's waitForPodsReady
START_BACKOFF_S = env.integer("START_BACKOFF_S", 30)  # after a start that found no device; doubles each time
GRACE_S = env.integer("GRACE_S", 120)  # between the notice and the end of tenants' pods
SWEEP_S = env.integer("SWEEP_S", 10)  # how often what is due is looked for, whatever became of the messages
LEASE_S = env.integer("LEASE_S", 15)  # a worker that took a target and fell silent loses it; two at once do no harm
RETRY_FIRST_S = env.integer("RETRY_FIRST_S", 1)  # pause before the first retry; doubles each time
RETRY_MAX_S = env.integer("RETRY_MAX_S", 15)  # all is right within 30 s of a fault's end
CHARGE_OVERTIME = env.boolean("CHARGE_OVERTIME", True)  # what is held past its end because the portal was down
DEFAULT_HOURS = env.integer("DEFAULT_HOURS", 8)  # of a request that names neither hours nor an end
GIVE_UP_AFTER_HOURS = env.integer("GIVE_UP_AFTER_HOURS", 7 * 24)  # how long an allocation waits to be held, if not said
LIVE_PER_MEMBER = env.integer("LIVE_PER_MEMBER", 100)  # live allocations of one person in a project, of its 250
SCHEDULED_PER_MEMBER = env.integer("SCHEDULED_PER_MEMBER", 50)  # scheduled ones of one person in a project
SCHEDULED_PER_PROJECT = env.integer("SCHEDULED_PER_PROJECT", 200)  # scheduled allocations of a project
HEARTBEAT_S = env.integer("HEARTBEAT_S", 15)  # how often a worker reports that it runs
STALE_S = env.integer("STALE_S", 60)  # a worker or watcher silent for longer is reported by /readyz

# --- metrics ----------------------------------------------------------------------------------------------
METRICS_TOKEN = env.text("METRICS_TOKEN")  # the bearer token that /metrics asks for; without one it is not there

# --- events -----------------------------------------------------------------------------------------------
EVENTS_KEPT_DAYS = env.integer("EVENTS_KEPT_DAYS", 30)  # events alone; the records that they refer to stay

# --- audit ------------------------------------------------------------------------------------------------
AUDIT_SEAL_S = env.integer("AUDIT_SEAL_S", 60)  # how often new entries are chained
AUDIT_HEADS_FILE = Path(file) if (file := env.text("AUDIT_HEADS_FILE")) else None  # a day's head of the chain a line

# --- applications -----------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "simple_history",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "portal.core",
    "portal.events",
    "portal.workqueue",
    "portal.audit",
    "portal.clusters",
    "portal.tenants",
    "portal.api",
    "quotas.catalog",
    "quotas.limits",
    "quotas.metering",
    "quotas.costs",
    "allocations",
    "portal.operations",
    "frontend",
    *(["demo"] if GPU_PORTAL_LOCAL else []),
]
MIDDLEWARE = [
    "portal.http.middleware.keep_nothing",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.http.middleware.request_id",
    "portal.http.early_refusals.refuse_early",
    "portal.http.person_limits.limit_client",
    "portal.http.own_writes.note_own_writes",
    "portal.http.compression.compress_for_tokens",
    "portal.http.rate_limit_fields.rate_limit_fields",
    "portal.http.middleware.record_channel",
    "portal.http.middleware.check_body",
    "portal.http.middleware.AnswerBusy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.http.middleware.log_user",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    [("django.template.loaders.cached.Loader", ["frontend.template_loader.Loader"])],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- people -----------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "tenants.User"
PASSWORD_HASHERS = ["portal.tenants.password_hashing.BoundedArgon2PasswordHasher"]
# Per web process; as many more wait. Keep twice this below the threads of a process, so that it serves pages too.
PASSWORD_HASHES_AT_ONCE = env.integer("PASSWORD_HASHES_AT_ONCE", 1)
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
] + [{"NAME": "portal.tenants.password_changes.EndsTokens"}]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
INVITATION_DAYS = env.integer("INVITATION_DAYS", 14)  # how long an invitation to a team can be accepted
LOGINS_PER_MINUTE = env.integer("LOGINS_PER_MINUTE", 10)  # per name and address, before a password is checked
LOGIN_FAILURES_PER_MINUTE = env.integer("LOGIN_FAILURES_PER_MINUTE", 30)  # per address, whatever the names
WRONG_TOKENS_PER_MINUTE = env.integer("WRONG_TOKENS_PER_MINUTE", 60)  # per address: unknown, expired, revoked

# --- transport and browser --------------------------------------------------------------------------------
HTTPS = env.boolean("HTTPS", not (DEBUG or GPU_PORTAL_LOCAL))  # redirects to https, and secures the cookies
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$", r"^metrics$"]  # probes come to the pod by plain HTTP
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
# How many proxies stand before the portal, each of which sets X-Forwarded-Proto and appends to X-Forwarded-For. With 0
# neither header is believed.
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0)
# How long a web process that is told to stop answers what still arrives, since load balancers learn of it late.
DRAIN_S = env.integer("DRAIN_S", 0 if GPU_PORTAL_LOCAL else 5)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
FORCE_SCRIPT_NAME = ""  # the portal is at the root of its host, whatever a header SCRIPT_NAME says
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
    },
}
BODY_LIMIT_BYTES = 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_LIMIT_BYTES

# --- words, time, static files ----------------------------------------------------------------------------
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "static/"
# Static files with digests in their names, from `manage.py collectstatic`; browsers keep them for a year.
STATIC_HASHED = env.boolean("STATIC_HASHED", not (DEBUG or GPU_PORTAL_LOCAL))
STATIC_ROOT = BASE_DIR / "staticfiles" if STATIC_HASHED else None  # filled by `manage.py collectstatic`
WHITENOISE_USE_FINDERS = not STATIC_HASHED
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "frontend.static_storage.BundledStaticFilesStorage"
        if STATIC_HASHED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# --- docs -------------------------------------------------------------------------------------------------
DOCS_ROOT = BASE_DIR / "docs" / "build" / "html"  # filled by `make docs`

# --- REST -------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.http.auth.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["portal.api.http.auth.MethodScope"],
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.http.throttling.PersonThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.http.strict.Parser", "portal.api.http.strict.MergePatchParser"],
    "URL_FORMAT_OVERRIDE": None,  # routes have parameters called `format`
    "DEFAULT_SCHEMA_CLASS": "portal.api.schemas.operation_schema.OperationSchema",
    "EXCEPTION_HANDLER": "portal.api.http.problems.exception_handler",
    "COERCE_DECIMAL_TO_STRING": True,
    "UNICODE_JSON": False,  # a lone surrogate, which JSON can say, is told back as it came
}
FLEET_MAX_AGE_S = env.integer("FLEET_MAX_AGE_S", 1)  # of what is free, on pages and in lists; never where it decides
API_REQUESTS_PER_MINUTE = env.integer("API_REQUESTS_PER_MINUTE", 600)  # per person
PAGE_REQUESTS_PER_MINUTE = env.integer("PAGE_REQUESTS_PER_MINUTE", 600)  # per person, parts of pages included
PROCESSOR_SECONDS_PER_MINUTE = env.integer("PROCESSOR_SECONDS_PER_MINUTE", 6)  # per person, REST and pages together
# Per address, of requests of whoever is not signed in. People of one office share an address, and its sign-in page.
ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE = env.integer("ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE", 6)
# Per person, in each web process; eight times as many more wait. Keep nine times this below the threads of a process.
PERSON_REQUESTS_AT_ONCE = env.integer("PERSON_REQUESTS_AT_ONCE", 1)
SPECTACULAR_SETTINGS = {
    "TITLE": "GPU portal",
    "DESCRIPTION": "Ask for GPU slices, see what they hold and what they cost.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVERS": [{"url": "/", "description": "The portal that this schema was read from."}],
    "COMPONENT_SPLIT_PATCH": False,  # PUT and PATCH take the same
    "COMPONENT_NO_READ_ONLY_REQUIRED": True,  # what they take besides may be left out
    "GET_LIB_DOC_EXCLUDES": "portal.api.schemas.operation_schema.without_description",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,  # most choices say themselves what they are
    "ENUM_NAME_OVERRIDES": {
        "Phase": "portal.api.schemas.allocation_output.PHASES",
        "Outcome": "portal.api.schemas.allocation_output.OUTCOMES",
        "JobState": "portal.api.views.jobs.STATES",
        "HolderKind": "portal.api.schemas.limit_fields.HOLDER_KINDS",
        "QuotaHolderKind": "portal.api.schemas.limit_fields.QUOTA_HOLDER_KINDS",
        "QueueEntryKind": "portal.api.views.queues.KINDS",
        "QueueEntryState": "portal.api.views.queues.STATES",
        "QueueOrder": "portal.api.views.queues.ORDERS",
        "SavingKind": "portal.api.schemas.savings_output.KINDS",
        "Role": "portal.tenants.models.Role",
        "FlavorState": "portal.api.views.flavors.STATES",
        "TokenState": "portal.api.views.me.STATES",
        "OwnRole": "portal.api.views.me.ROLES",
        "SliceKind": "quotas.catalog.models.Kind",
        "WarningReason": "portal.api.schemas.allocation_output.WARNING_REASONS",
        "ReleaseProblemReason": "portal.api.schemas.bulk_release.PROBLEM_REASONS",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.api.schemas.operation_schema.state_blank_choices",
        "portal.api.schemas.operation_schema.close_objects",
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- Celery: why each differs from its default is said beside it ----------------
VISIBILITY_TIMEOUT_S = 180  # above the hard time limit, or a late acknowledgement is delivered again
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": VISIBILITY_TIMEOUT_S,
    "socket_connect_timeout": 2,
    "socket_timeout": 20,  # above the blocking pop's own timeout
    "socket_keepalive": True,
    "health_check_interval": 10,
    "retry_on_timeout": True,
}
CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS = {"visibility_timeout": VISIBILITY_TIMEOUT_S}
CELERY_VISIBILITY_TIMEOUT = VISIBILITY_TIMEOUT_S
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # the default of 100 gives up for good
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_CONSUMER = "portal.celery:SwiftConsumer"
CELERY_BEAT_SCHEDULER = "portal.celery:Scheduler"
CELERY_TASK_IGNORE_RESULT = True  # rows are the truth
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True  # else the message of a killed child is acknowledged
CELERY_TASK_SOFT_TIME_LIMIT = 45
CELERY_TASK_TIME_LIMIT = 60
WORKER_STUCK_S = env.integer("WORKER_STUCK_S", CELERY_TASK_TIME_LIMIT + 15)  # portal/workqueue/liveness.py
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A task that is repeated changes nothing, while ending its process just as the consumer connects anew may leave the
# pool without a process ("Timed out waiting for UP message").
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 30
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_DB_REUSE_MAX = (
    10_000  # tasks per database connection: the default connects anew for each, twice what a reconcile costs
)
CELERY_TIMEZONE = "UTC"
# Every entry expires before its successor is sent, so that a worker that comes back finds no pile of them.
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "core.sweep", "schedule": SWEEP_S, "options": {"expires": SWEEP_S}},
    "heartbeat": {"task": "core.heartbeat", "schedule": HEARTBEAT_S, "options": {"expires": HEARTBEAT_S}},
    "read store": {
        "task": "allocations.read_cluster_store",
        "schedule": STORE_READ_S,
        "options": {"expires": STORE_READ_S},
    },
    "seal audit": {"task": "core.seal_audit", "schedule": AUDIT_SEAL_S, "options": {"expires": AUDIT_SEAL_S}},
    "export audit heads": {"task": "core.export_audit_heads", "schedule": crontab(hour=0, minute=5)},
    # After the watcher has had time to pass the hour.
    "prove balance": {"task": "allocations.prove_balance", "schedule": crontab(minute=5), "options": {"expires": 3600}},
    "roll up": {"task": "allocations.roll_up", "schedule": crontab(minute="1-59/5"), "options": {"expires": 300}},
    "purge events": {"task": "events.purge", "schedule": 3600, "options": {"expires": 3600}},
    "purge replies": {"task": "api.purge_replies", "schedule": 3600, "options": {"expires": 3600}},
}

# --- logs -------------------------------------------------------------------------------------------------
LOGGING = logs.configure(
    level=env.text("LOG_LEVEL", "INFO"),  # DEBUG, INFO, WARNING or ERROR
    json=env.boolean("LOG_JSON", not (DEBUG or GPU_PORTAL_LOCAL)),  # one JSON object a line
)
