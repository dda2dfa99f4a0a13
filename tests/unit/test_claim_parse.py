"""Valid claims, and the messages about invalid ones."""

from typing import Any

import pytest

from allocations.claims import device_schema, spec
from tests.support.claims import claim, fleet, schema, wrong

WHOLE = {"name": "gpu", "device": "gpu", "count": 2}


def test_the_device_schema_is_what_devices_publish_with_types():
    found = schema("h100")
    assert found.attributes["gpu.nvidia.com/cudaComputeCapability"].type == "version"
    assert found.attributes["gpu.nvidia.com/architecture"].values == ("Hopper",)
    assert found.attributes["resource.kubernetes.io/numaNode"].type == "int"
    assert found.attributes["gpu.nvidia.com/profile"].devices == ("mig",)
    assert found.capacities["gpu.nvidia.com/memory"].type == "quantity"
    assert "1g.10gb" in found.profiles
    assert max(len(word.values) for word in found.attributes.values()) <= device_schema.MAX_VALUES
    named = {word["name"] for word in found.document()["attributes"]}
    assert {"productName", "resource.kubernetes.io/pcieRoot"} <= named


def test_builds_a_claim_of_two_gpus_below_one_root():
    asked = claim(
        WHOLE | {"capacities": [{"name": "memory", "operator": ">=", "value": "40Gi"}]},
        constraints=[{"match_attribute": "resource.kubernetes.io/pcieRoot", "requests": ["gpu"]}],
    )
    product = (
        '"productName" in device.attributes["gpu.nvidia.com"] && device.attributes["gpu.nvidia.com"]["productName"]'
    )
    memory = '"memory" in device.capacity["gpu.nvidia.com"] && device.capacity["gpu.nvidia.com"]["memory"]'
    assert spec.build(asked, schema().products) == {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu.nvidia.com",
                        "allocationMode": "ExactCount",
                        "count": 2,
                        "selectors": [
                            {"cel": {"expression": f'{product} == "NVIDIA H100 80GB HBM3"'}},
                            {"cel": {"expression": f'{memory}.compareTo(quantity("40Gi")) >= 0'}},
                        ],
                    },
                }
            ],
            "constraints": [{"requests": ["gpu"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}],
        }
    }


def test_builds_alternatives_tolerations_all_and_sharing():
    asked = claim(
        {
            "name": "best",
            "alternatives": [
                {"name": "slice", "device": "mig", "profile": "3g.40gb"},
                {"device": "gpu", "tolerations": [{"key": "gpu.nvidia.com/xid", "effect": "NoExecute", "seconds": 60}]},
            ],
        },
        {"device": "gpu", "count": "all"},
        config=[{"requests": ["best/slice"], "sharing": {"strategy": "MPS", "active_thread_percentage": 50}}],
    )
    first, second = spec.build(asked, ["p"])["devices"]["requests"]
    assert [each["name"] for each in first["firstAvailable"]] == ["slice", "choice-1"]
    assert first["firstAvailable"][1]["tolerations"] == [
        {"key": "gpu.nvidia.com/xid", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    ]
    assert (second["name"], second["exactly"]["allocationMode"]) == ("slice-1", "All")
    (config,) = spec.build(asked, ["p"])["devices"]["config"]
    assert config["requests"] == ["best/slice"]
    assert config["opaque"]["parameters"]["kind"] == "MigDeviceConfig"


def test_takes_a_part_of_what_serves_several_claims():
    asked = claim({"device": "gpu", "capacity": {"shares": "2"}}, kind="l40s-shares")
    (request,) = spec.build(asked, ["p"])["devices"]["requests"]
    assert request["exactly"]["capacity"] == {"requests": {"shares": "2"}}


def condition(**fields: object) -> dict[str, object]:
    return {"name": "productName", "operator": "==", "value": "x"} | fields


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "claim"),
        ({}, "claim.requests"),
        ({"requests": {}}, "claim.requests"),
        ({"requests": []}, "claim.requests"),
        ({"requests": ["x"]}, "claim.requests[0]"),
        ({"requests": [WHOLE], "nodes": 1}, "claim.nodes"),
        ({"requests": [WHOLE] * 33}, "claim.requests"),
        ({"requests": [WHOLE, WHOLE]}, "claim.requests[1].name"),
        ({"requests": [WHOLE | {"name": "No"}]}, "claim.requests[0].name"),
        ({"requests": [WHOLE | {"device": "vfio"}]}, "claim.requests[0].device"),
        ({"requests": [WHOLE | {"count": 0}]}, "claim.requests[0].count"),
        ({"requests": [WHOLE | {"count": True}]}, "claim.requests[0].count"),
        ({"requests": [WHOLE | {"count": "2"}]}, "claim.requests[0].count"),
        ({"requests": [WHOLE | {"count": 20}, {"count": 20}]}, "claim.requests"),
        ({"requests": [WHOLE | {"profile": "1g.10gb"}]}, "claim.requests[0].profile"),
        ({"requests": [{"device": "mig", "profile": "9g.10gb"}]}, "claim.requests[0].profile"),
        ({"requests": [WHOLE | {"attributes": [condition(name="produc")]}]}, "claim.requests[0].attributes[0].name"),
        ({"requests": [WHOLE | {"attributes": [condition(value=1)]}]}, "claim.requests[0].attributes[0].value"),
        ({"requests": [WHOLE | {"attributes": [condition(value="x\x00")]}]}, "claim.requests[0].attributes[0].value"),
        ({"requests": [WHOLE | {"attributes": [condition(value="\ud800")]}]}, "claim.requests[0].attributes[0].value"),
        ({"requests": [WHOLE | {"attributes": [condition(operator=">")]}]}, "claim.requests[0].attributes[0].operator"),
        ({"requests": [WHOLE | {"attributes": [condition(operator="in")]}]}, "claim.requests[0].attributes[0].value"),
        (
            {"requests": [WHOLE | {"attributes": [condition(name="driverVersion", value="580")]}]},
            "claim.requests[0].attributes[0].value",
        ),
        (
            {"requests": [WHOLE | {"capacities": [{"name": "memory", "operator": ">=", "value": "40 Gi"}]}]},
            "claim.requests[0].capacities[0].value",
        ),
        ({"requests": [WHOLE | {"capacity": {"memory": "1Gi"}}]}, "claim.requests[0].capacity[memory]"),
        (
            {"requests": [WHOLE | {"tolerations": [{"value": "x", "operator": "Exists"}]}]},
            "claim.requests[0].tolerations[0].value",
        ),
        *(
            ({"requests": [WHOLE | {"tolerations": [{"key": key}]}]}, "claim.requests[0].tolerations[0].key")
            for key in ("example.com/a/b", "a" * 64, "-a", "/a", f"{'a' * 254}/b")
        ),
        *(
            (
                {"requests": [WHOLE | {"tolerations": [{"key": "k", "value": value}]}]},
                "claim.requests[0].tolerations[0].value",
            )
            for value in ("a/b", "v" * 64)
        ),
        (
            {"requests": [WHOLE], "config": [{"requests": ["a", "a"], "sharing": {"strategy": "TimeSlicing"}}]},
            "claim.config[0].requests[1]",
        ),
        (
            {
                "requests": [WHOLE],
                "config": [
                    {"sharing": {"strategy": "MPS", "per_device_pinned_memory_limit": {"1" * 5000: "1Gi"}}},
                ],
            },
            f"claim.config[0].sharing.per_device_pinned_memory_limit[{'1' * 64}]",
        ),
        ({"requests": [WHOLE | {"alternatives": []}]}, "claim.requests[0].alternatives"),
        ({"requests": [WHOLE], "constraints": [{}]}, "claim.constraints[0]"),
        ({"requests": [WHOLE], "constraints": [{"match_attribute": "x"}]}, "claim.constraints[0].match_attribute"),
        (
            {"requests": [WHOLE], "constraints": [{"match_attribute": "uuid", "requests": ["other"]}]},
            "claim.constraints[0].requests[0]",
        ),
        ({"requests": [WHOLE], "config": [{"sharing": {"strategy": "x"}}]}, "claim.config[0].sharing.strategy"),
        (
            {"requests": [WHOLE, {"device": "mig"}], "config": [{"sharing": {"strategy": "MPS"}}]},
            "claim.config[0].requests",
        ),
    ],
)  # fmt: skip
def test_tells_what_is_wrong_by_its_path(document: object, field: str):
    assert field in wrong(document)


def test_tells_all_that_is_wrong_at_once_and_what_was_meant():
    asked = {"device": "gpu", "count": -1, "attributes": [condition(name="productNam")]}
    found = wrong({"requests": [asked], "constraints": [{"match_attribute": "pcieRoot"}]})
    assert len(found) == 3
    assert "Did you mean productName?" in found["claim.requests[0].attributes[0].name"][0]


def test_any_json_is_answered():
    values: list[Any] = [None, True, 1, 1.5, "x", [], {}, [[]], [{}], {"requests": [[]]}, {"requests": [{"count": []}]}]
    for value in values:
        for name in ("requests", "constraints", "config"):
            assert wrong({"requests": [WHOLE], name: value}) or value in (None, []) or name == "requests"
        for name in ("device", "count", "attributes", "capacity", "tolerations", "cel", "alternatives", "admin_access"):
            wrong({"requests": [WHOLE | {name: value}]})


def test_devices_of_the_fleet_are_read_whole():
    assert len(fleet("h100").devices) > 2 * 8 * 20
    assert fleet("h100").counters


def test_a_claim_has_a_bounded_number_of_alternatives_in_all():
    eight = {"alternatives": [{"device": "gpu"} for _ in range(8)]}
    assert wrong({"requests": [eight] * 8}) == {}
    assert list(wrong({"requests": [eight] * 9})) == ["claim.requests"]
