"""Translates the portal's sentences, which speak of REST, into the words of the command line."""

import re

import click

PHRASES = {
    "GET /offerings/{id}/device-schema lists": "the request page in the browser (`gpu-portal open`) lists",
    "(path dra in GET /offerings)": "(BACKEND in `gpu-portal offerings -o wide`)",
    "GET /offerings?kind=claim": "`gpu-portal offerings --kind claim`",
    "GET /offerings": "`gpu-portal offerings`",
    "GET /allocations": "`gpu-portal list`",
    "GET /jobs": "`gpu-portal jobs`",
    "GET /me lists": "`gpu-portal whoami` lists",
    "GET /teams": "`gpu-portal whoami`",
    "GET /api/v1/schema lists what there is.": "The portal may be older than this command (`gpu-portal --version`).",
    "Make a new token at POST /api/v1/tokens or on your page.": (
        "Make a new token on your page (`gpu-portal open`), then run `gpu-portal login`."
    ),
    "Send Authorization: Bearer <token>, or sign in.": "Run `gpu-portal login`.",
    "Wait as long as Retry-After says.": "Try again in a minute.",
    "Use a token with the scope": "Run `gpu-portal login` with a token that has the scope",
    "Use a new key for a new request.": "Use another --idempotency-key for another request.",
    "Give hours or ends_at, not both.": "Give --hours or --ends-at, not both.",
    "leave expires_at out": "leave --days out",
}
"""What the portal says, and what the commands say instead. Longer phrases first."""
OTHER_OPTIONS = {"constraints": "--constraint", "labels": "--label", "scopes": "--scope", "expires_at": "--days"}
"""Options that are not named as the field of the body."""
FIELD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def in_commands(sentence: str) -> str:
    """Return a sentence of the portal in the words of the command line."""
    for said, instead in PHRASES.items():
        sentence = sentence.replace(said, instead)
    return FIELD.sub(lambda found: option_of(found[0]), sentence)


def option_of(field: str) -> str:
    """Return the option of the current command that fills a field of the body, or the field itself."""
    context = click.get_current_context(silent=True)
    options = {name for each in context.command.params for name in each.opts} if context else set()
    head = field.split(".", maxsplit=1)[0]
    option = OTHER_OPTIONS.get(head, f"--{head.replace('_', '-')}")
    return option if option in options else field
