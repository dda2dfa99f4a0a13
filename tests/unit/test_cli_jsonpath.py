"""`-o jsonpath=` of the gpu-portal command: the templates that users of kubectl write."""

from random import Random

import pytest

from portal.cli.jsonpath_template import parse
from tests.support.sizes import size

ROW = {"id": "0192", "count": 2, "queue": None, "devices": [{"node": "h100-0"}, {"node": "h100-1"}]}
ROW["labels"] = {"example.com/stage": "prod"}
LIST = {"results": [{"name": "train", "phase": "active"}, {"name": "old", "phase": "ended"}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.id}", "0192"),
        ("{.count}", "2"),
        (".id", "0192"),
        ("{$.id}", "0192"),
        ("{.queue}", ""),
        ("{.queue.position}", ""),
        ("{.nothing}", ""),
        ("{.devices[0].node}", "h100-0"),
        ("{.devices[-1:].node}", "h100-1"),
        ("{.devices[*].node}", "h100-0 h100-1"),
        ("{.devices[0]}", '{"node": "h100-0"}'),
        ("{['id']}", "0192"),
        ("{..node}", "h100-0 h100-1"),
        ('id: {.id}{"\\n"}', "id: 0192\n"),
        ("{'{'}{.id}{'}'}", "{0192}"),
        (r"{.labels.example\.com/stage}", "prod"),
        (r"{.labels['example.com/stage']}", "prod"),
    ],
)
def test_an_expression_is_replaced_by_what_it_finds(template, text):
    assert parse(template).render(ROW) == text


def test_a_filter_keeps_rows():
    assert parse('{.results[?(@.phase=="active")].name}').render(LIST) == "train"


def test_a_range_is_repeated_for_each_row():
    template = '{range .results[*]}{.name}{"\\t"}{@.phase}{"\\n"}{end}'
    assert parse(template).render(LIST) == "train\tactive\nold\tended\n"


def test_ranges_are_nested():
    nested = {"teams": [{"slug": "a", "people": ["x", "y"]}, {"slug": "b", "people": ["z"]}]}
    template = "{range .teams[*]}{.slug}:{range .people[*]} {@}{end};{end}"
    assert parse(template).render(nested) == "a: x y;b: z;"


@pytest.mark.parametrize(
    "template", ["{.id", "{.results[?}", "{range .results[*]}{.name}", "{end}", "{.a b}", r"{'\x'}"]
)
def test_a_template_that_cannot_be_read_is_told_without_an_answer(template):
    with pytest.raises(ValueError, match=r"."):
        parse(template)


PARTS = (
    *(".a", ".b", "[0]", "[*]", "..", "[?", "(", ")", "@", " == ", "<", "=~", "/(/", "/a/", "'x'", "]", "[", ":"),
    *("{", "}", "{range .a[*]}", "{end}", "length", "match", "$", "&&", "!", "#", "-1", "[::0]", "1e400", "\\."),
    *("keys", "in", ",", "|", "9" * 20, "é", '{"\\n"}', '{"\\x"}', "{'a', 'b'}", "{'a'1is}", "\x00", "undefined"),
)
ANSWERS = (ROW, LIST, {"a": [1, "x", None, {"a": 1, "b": [1, 2]}], "b": {"a": "q"}})


def test_a_template_is_refused_when_it_is_read_or_can_be_filled():
    """Not when the answer is printed: what was asked for has happened then."""
    random, filled = Random(7), 0
    for _ in range(size(5_000, 300_000)):
        text = f"{{.a{''.join(random.choices(PARTS, k=random.randint(0, 4)))}}}"
        try:
            template = parse(text)
        except ValueError:
            continue
        assert all(isinstance(template.render(answer), str) for answer in ANSWERS), text
        filled += 1
    assert filled > size(100, 6_000)
