"""Structured log lines, one event each, with request id and person from the context; JSON, or plain text."""

import logging
from http import HTTPStatus
from typing import Any

import structlog

SHARED = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def busy_is_a_warning(record: logging.LogRecord) -> bool:
    """Log a 503 as a warning: Django logs every 5xx as an error. A logging filter."""
    if getattr(record, "status_code", None) == HTTPStatus.SERVICE_UNAVAILABLE:
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return True


def configure(*, level: str, json: bool) -> dict[str, Any]:
    """Configure structlog and return Django's `LOGGING`, so that lines of both have one form."""
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderers: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if json
        else [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
            },
        },
        "filters": {"busy": {"()": lambda: busy_is_a_warning}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.request": {"filters": ["busy"]},
            "django.server": {"handlers": [], "propagate": True},
            "kombu": {"level": "WARNING"},
        },
    }
