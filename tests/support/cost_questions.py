"""Random questions about costs, and their answers from the intervals alone, a quarter of an hour at a time."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.support.quotas import hour, used

QUARTER = timedelta(minutes=15)
DAYS = 6
OFFERINGS = {
    "l40s/whole": ("l40s", "whole", Fraction(1), Fraction("1.1")),
    "a100/mig-1g.10gb": ("a100", "mig", Fraction(1, 7), Fraction("1.8")),
    "a100/mig-3g.40gb": ("a100", "mig", Fraction(1, 2), Fraction("1.8")),
}
"""Flavor, kind, part of a GPU, and price of a GPU-hour."""
VALUES = {
    "team": ("vision", "language"),
    "project": ("vision-train", "vision-dev", "language-train"),
    "member": ("ada", "grace", "alan", ""),
    "offering": tuple(OFFERINGS),
    "label:app": ("train", "serve", ""),
    "label:example.com/stage": ("dev", ""),
}
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York")
STEPS: Mapping[str, Callable[[datetime], str | None]] = {
    "all": lambda at: None,
    "hour": lambda at: at.strftime("%F %H %z"),
    "day": lambda at: at.strftime("%F"),
    "week": lambda at: at.strftime("%G %V"),
    "month": lambda at: at.strftime("%Y %m"),
}
"""What the local times of one step have in common."""
MATCHES: Mapping[str, Callable[[str, str], bool]] = {
    ":": lambda value, one: value == one,
    "~:": lambda value, one: one[1:3] in value,
    "<~:": lambda value, one: value.startswith(one[:2]),
    "~>:": lambda value, one: value.endswith(one[-2:]),
}
"""Whether a value matches what is asked of another one: the same, or a part of it."""
Values = dict[str, str]
Keeps = Callable[[Values], bool]


@dataclass(frozen=True)
class Interval:
    """An interval: its values by key, GPUs, price and quarters."""

    values: Values
    gpus: Fraction
    price: Fraction
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Question:
    """A question as the query of a URL has it; ``keeps`` is what its filter keeps."""

    query: dict[str, str]
    keys: tuple[str, ...]
    start: datetime
    end: datetime
    keeps: Keeps


def use(random: Random, count: int) -> list[Interval]:
    """Record random intervals in the ledger, and return them."""
    found = []
    for _ in range(count):
        values = {key: random.choice(choices) for key, choices in VALUES.items()}
        values["team"] = values["project"].partition("-")[0]
        flavor, kind, share, price = OFFERINGS[values["offering"]]
        start = hour(0) + random.randrange(DAYS * 96) * QUARTER
        end, quantity = start + random.randrange(1, 200) * QUARTER, random.randrange(1, 4)
        labels = {key.removeprefix("label:"): value for key, value in values.items() if key[:6] == "label:" and value}
        named: dict[str, Any] = {key: value for key, value in values.items() if key[:6] != "label:"}
        used(start, end, quantity, flavor=flavor, kind=kind, gpu_share=share, labels=labels, **named)
        values |= {"flavor": flavor, "kind": kind}
        found.append(Interval(values, quantity * share, price, start, end))
    return found


def question(random: Random) -> Question:
    """Return a random question."""
    zone, step = random.choice(ZONES), random.choice(tuple(STEPS))
    start = hour(0) + random.randrange(-40, DAYS * 96) * QUARTER
    end = start + random.randrange(1, 400) * QUARTER
    keys = tuple(random.sample([*VALUES, "flavor", "kind"], random.randrange(1, 4)))
    text, keeps = ("", lambda held: True) if random.random() < 0.3 else some_filter(random, 2)
    query = {
        "window": f"{start:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ}",
        "timezone": zone,
        "accumulate": step,
        "aggregate": ",".join(keys),
        "filter": text,
    }
    return Question(query, keys, start, end, keeps)


def some_filter(random: Random, depth: int) -> tuple[str, Keeps]:
    """Return a random filter as text, and what it keeps."""
    if depth and random.random() < 0.6:
        parts = [some_filter(random, depth - 1) for _ in range(random.randrange(2, 4))]
        texts, rules = [f"({text})" for text, _ in parts], [rule for _, rule in parts]
        if random.random() < 0.5:
            return "+".join(texts), lambda held: all(rule(held) for rule in rules)
        return "|".join(texts), lambda held: any(rule(held) for rule in rules)
    key = random.choice(tuple(VALUES))
    values = random.sample(VALUES[key], random.randrange(1, 3))
    operator = random.choice(tuple(MATCHES))
    matches = MATCHES[operator]
    asked = [{":": one, "~:": one[1:3], "<~:": one[:2], "~>:": one[-2:]}[operator] for one in values]
    name = f"label[{key.removeprefix('label:')}]" if key.startswith("label:") else key
    is_negated = random.random() < 0.3
    text = f"{name}{'!' * is_negated}{operator}" + ",".join(f'"{one}"' for one in asked)
    return text, lambda held: is_negated != any(matches(held[key], one) for one in values)


def answer(asked: Question, rows: Sequence[Interval]) -> dict[tuple[str | None, str], tuple[Fraction, Fraction]]:
    """Return GPU-hours and cost by step and name."""
    quarters = (asked.end - asked.start) // QUARTER
    steps = {at: step_of(asked, at) for at in (asked.start + number * QUARTER for number in range(quarters))}
    found: dict[tuple[str | None, str], tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))
    for held in filter(lambda one: asked.keeps(one.values), rows):
        name = "/".join(held.values[key] or "__unallocated__" for key in asked.keys)
        at = max(held.start, asked.start)
        while at < min(held.end, asked.end):
            key = steps[at], name
            hours, cost = found[key]
            found[key] = hours + held.gpus / 4, cost + held.gpus / 4 * held.price
            at += QUARTER
    return dict(found)


def step_of(asked: Question, start: datetime) -> str | None:
    """Return the step that begins then, or that the window begins in."""
    return STEPS[asked.query["accumulate"]](start.astimezone(ZoneInfo(asked.query["timezone"])))


def of_rest(api: Any, view: Mapping[str, str], **more: str) -> Any:
    """Return all rows of REST for a view, and its sums."""
    question = {name: value for name, value in view.items() if name not in ("accumulate", "sort")}
    body = page = api.get("/api/v1/costs", question | more).json()
    while page["next"]:
        page = api.get(page["next"]).json()
        body["results"] += page["results"]
    return body
