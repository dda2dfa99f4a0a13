"""Text from people enters CEL as literals only: checked with a third-party CEL parser."""

import ast
import random
import re
from collections.abc import Iterator

import lark
import pytest
from celpy.celparser import CELParser

from allocations.claims import cel
from allocations.claims.model import PRODUCT, Choice, Condition
from allocations.cluster.gpu_selector import of_gpu
from quotas.catalog.cel import text
from quotas.catalog.dra import product_selector, profile_selector
from tests.support.claims import wrong
from tests.support.sizes import size

PARSER = CELParser()
HOSTILE = size(2_000, 10_000)
FRAGMENTS = (
    '"', "'", "\\", "\\\\", '\\"', "\n", "\r", "\t", "\x00", "\x7f", "\u2028", "\u202e", "\ufeff", "\U0001f600", "é",
    '" || true || "', '" == "" || "x" != "', "') || ('", '"""', "'''", 'r"', "b'", "//", "/*", "${", "{{", "%s",
    "\\x22", "\\042", "\\", "]", ")", "}", ".all(x, true)", "device", "has(", "quantity(", "&&", "||", "?", ":", "true",
)  # fmt: skip


def hostile() -> Iterator[str]:
    """Return texts that end literals in some language, and other random characters."""
    chance = random.Random(20260721)
    yield from FRAGMENTS
    for _ in range(HOSTILE - len(FRAGMENTS)):
        if chance.random() < 0.5:
            yield "".join(chance.choice(FRAGMENTS) for _ in range(chance.randint(1, 8)))
        else:
            yield "".join(chr(_character(chance)) for _ in range(chance.randint(1, 64)))


def _character(chance: random.Random) -> int:
    top = chance.choice((0x7F, 0xFF, 0xFFFF, 0x10FFFF))
    code = chance.randint(0, top)
    return code if not 0xD800 <= code <= 0xDFFF else code - 0x800


def built(product: str, profile: str, name: str, value: str) -> list[str]:
    """Return the expressions of a claim that uses each of these texts."""
    conditions = (
        Condition("gpu.nvidia.com/profile", "string", "==", (profile,)),
        Condition(f"gpu.nvidia.com/{name}", "string", "!=", (value,)),
        Condition(f"{name}/memory", "quantity", ">=", (value,)),
        Condition("gpu.nvidia.com/driverVersion", "version", "in", (value, profile)),
        Condition("gpu.nvidia.com/brand", "string", "in", (value, product)),
    )
    return cel.selectors(Choice("", "", "mig", 1, conditions), [product])


def shape(tree: lark.Tree[lark.Token] | lark.Token) -> object:
    """Return the syntax tree with every string literal replaced by the same one."""
    if isinstance(tree, lark.Token):
        return "a string" if tree.type == "STRING_LIT" else (tree.type, str(tree))
    return tree.data, tuple(shape(child) for child in tree.children)


def literals(tree: lark.Tree[lark.Token]) -> list[str]:
    """Return the values of the string literals, read as Python reads them: these escapes mean the same in both."""
    tokens = tree.scan_values(lambda token: isinstance(token, lark.Token) and token.type == "STRING_LIT")
    return [ast.literal_eval(str(token)) for token in tokens]


def trees(expressions: list[str]) -> list[lark.Tree[lark.Token]]:
    return [PARSER.parse(expression) for expression in expressions]


def test_hostile_strings_leave_the_tree_as_it_is():
    plain = list(map(shape, trees(built("product", "profile", "name", "value")[:3])))
    for said in hostile():
        found = trees(built(said, said, said, said)[:3])
        assert list(map(shape, found)) == plain, repr(said)
        assert all(said in literals(tree) for tree in found), repr(said)


def test_hostile_products_profiles_and_gpus_leave_the_selectors_of_offerings_as_they_are():
    def selectors(value: str) -> list[str]:
        return [product_selector(value), profile_selector(value), of_gpu(value)]

    plain = list(map(shape, trees(selectors("plain"))))
    for hostile_text in hostile():
        found = trees(selectors(hostile_text))
        assert list(map(shape, found)) == plain, repr(hostile_text)
        assert all(hostile_text in literals(tree) for tree in found), repr(hostile_text)


@pytest.mark.parametrize("said", FRAGMENTS)
def test_hostile_amounts_versions_and_lists_leave_the_tree_as_it_is(said: str):
    plain = list(map(shape, trees(built("product", "profile", "name", "value"))))
    assert list(map(shape, trees(built(said, said, said, said)))) == plain


def test_an_expression_is_plain_ascii():
    assert all(
        expression.isascii() and expression.isprintable() for said in FRAGMENTS for expression in built(*[said] * 4)
    )


def test_half_a_surrogate_pair_is_no_text():
    with pytest.raises(ValueError, match="surrogate"):
        text("\ud83d")


@pytest.mark.parametrize("said", ["x", *FRAGMENTS])
def test_a_hostile_name_or_profile_never_comes_so_far(said: str):
    request = {"device": "mig", "profile": said, "attributes": [{"name": said, "operator": "==", "value": "x"}]}
    found = wrong({"requests": [request]})
    assert list(found) == ["claim.requests[0].profile", "claim.requests[0].attributes[0].name"]


def test_every_condition_is_guarded():
    names = re.compile(r'device\.(?:attributes|capacity)\["[^"]+"\]\["([^"]+)"\]')
    for expression in built("a", "b", "c", "d"):
        assert expression.startswith(f'"{names.findall(expression)[0]}" in device.')


@pytest.mark.parametrize(
    ("condition", "expression"),
    [
        (Condition(PRODUCT, "string", "==", ("NVIDIA H100",)), '["productName"] == "NVIDIA H100"'),
        (
            Condition("gpu.nvidia.com/memory", "quantity", ">=", ("40Gi",)),
            '["memory"].compareTo(quantity("40Gi")) >= 0',
        ),
        (
            Condition("gpu.nvidia.com/driverVersion", "version", "<", ("600.0.0",)),
            '["driverVersion"].compareTo(semver("600.0.0")) < 0',
        ),
        (Condition("resource.kubernetes.io/numaNode", "int", "in", (0, 1)), '["numaNode"] in [0, 1]'),
        (Condition("gpu.nvidia.com/iommu", "bool", "!=", (True,)), '["iommu"] != true'),
    ],
)
def test_each_type_is_compared_as_its_own(condition: Condition, expression: str):
    built = cel.expression(condition)
    assert built.endswith(expression)
    PARSER.parse(built)
