"""The filter grammar of costs."""

import pytest

from portal.core.errors import Invalid
from quotas.costs.filters import parse


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", {}),
        ('team:"vision"', {"team": {"vision"}}),
        ("team:vision", {"team": {"vision"}}),
        ('team:"vision","language"+kind:"whole"', {"team": {"vision", "language"}, "kind": {"whole"}}),
        ('offering:"a100/mig-1g.10gb+me"', {"offering": {"a100/mig-1g.10gb+me"}}),
        ('node:""', {"node": {""}}),
    ],
)
def test_filters(text, kept):
    assert parse(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "team",
        "team:",
        'team!:"x"',
        'pod:"x"',
        'team:"x"+',
        'team:"x"+team:"y"',
        'team:"x',
        '+team:"x"',
        'team:"x"|kind:"y"',
    ],
)
def test_what_is_no_filter_is_answered_with_what_works(text):
    with pytest.raises(Invalid) as caught:
        parse(text)
    assert "Keys: department, team" in caught.value.errors["filter"][0]
