"""What keeps `helm uninstall` from going on."""

import pytest
from django.core.management import CommandError, call_command

from tests.support.fleet import allocate, fleet
from tests.support.pages import ended

pytestmark = pytest.mark.django_db


@pytest.fixture
def allocation(team, project, member):
    fleet(team)
    return allocate(member, project)


def test_nothing_is_held_in_an_empty_portal(capsys):
    call_command("uninstall_check")
    assert capsys.readouterr().out == "Nothing is held and nothing waits.\n"


def test_a_live_allocation_is_named_with_what_to_do(allocation):
    with pytest.raises(CommandError, match=rf"allocation {allocation.project.slug}/{allocation.name}\n.*[Rr]elease"):
        call_command("uninstall_check")


def test_an_allocation_that_has_ended_is_none(allocation):
    ended(allocation)
    call_command("uninstall_check")
