"""Names on the cluster: always valid, never shared by two allocations."""

import re

import pytest

from allocations.cluster import names

SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
LONGEST_NAME = "a" * names.ALLOCATION_MAX
LAST_SLICE = 1023


def made(allocation: str) -> list[str]:
    claims = [names.claim(allocation), *(names.claim_of_slice(allocation, n) for n in (0, LAST_SLICE))]
    return [*claims, *(names.holder(claim) for claim in claims), names.lease(allocation), names.example(allocation)]


@pytest.mark.parametrize("allocation", ["a", "train-1", LONGEST_NAME])
def test_every_name_is_a_dns_subdomain_that_a_label_can_carry(allocation):
    assert all(SUBDOMAIN.match(name) and len(name) <= 63 for name in made(allocation))


def test_no_username_has_the_service_account_of_another():
    """One that is shortened with a digest, and one that looks like what that makes."""
    made_of = names.person("J.Doe").removeprefix("person-")
    again = names.person(made_of).removeprefix("person-")
    usernames = ["J.Doe", "j.doe", "j-doe", "ada", made_of, again]
    accounts = {names.person(username) for username in usernames}
    assert len(accounts) == len(usernames)
    assert all(SUBDOMAIN.match(account) and len(account) <= 63 for account in accounts)
    assert names.person("ada") == "person-ada"


@pytest.mark.parametrize("other", ["train-0", "train-holder", "train-0-holder", "train-lease", "train0"])
def test_claims_of_slices_have_no_name_of_another_allocation(other):
    own = {names.claim_of_slice("train", n) for n in (0, LAST_SLICE)}
    own |= {names.holder(claim) for claim in own}
    assert not own & set(made(other))
    assert not any(names.is_allocation_name(name) for name in own)
