from portal.core.errors import Invalid, Refused, Violation

FULL = Violation("quota_exceeded", "team:l40s/gpu", 4, 4, 1, "vision holds 4 of 4.", "Release one.")
TIGHT = Violation("limit_exceeded", "member:l40s/gpu", 2, 2, 1, "You hold 2 of 2.", "Release one.")


def test_a_refusal_tells_the_first_dimension_flat_and_all_in_a_list():
    assert Refused("quota_exceeded", "It is full.", "Release one.", violations=[FULL, TIGHT]).document() == {
        "type": "urn:gpu-portal:problem:quota_exceeded",
        "title": "Refused",
        "status": 409,
        "detail": "It is full.",
        "reason": "quota_exceeded",
        "hint": "Release one.",
        "dimension": "team:l40s/gpu",
        "limit": 4,
        "used": 4,
        "requested": 1,
        "dimensions": [
            {
                "reason": "quota_exceeded",
                "dimension": "team:l40s/gpu",
                "limit": 4,
                "used": 4,
                "requested": 1,
                "detail": "vision holds 4 of 4.",
                "hint": "Release one.",
            },
            {
                "reason": "limit_exceeded",
                "dimension": "member:l40s/gpu",
                "limit": 2,
                "used": 2,
                "requested": 1,
                "detail": "You hold 2 of 2.",
                "hint": "Release one.",
            },
        ],
        "alternatives": [],
    }


def test_a_refusal_by_policy_has_no_dimension():
    assert "dimension" not in Refused("wrong_phase", "It has ended.").document()


def test_invalid_fields_are_named():
    problem = Invalid({"count": ["Use at least 1."]})
    assert problem.document()["errors"] == {"count": ["Use at least 1."]}
    assert problem.status == 400
