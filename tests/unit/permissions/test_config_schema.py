"""config_schema is stored, bounded, and never executed."""

from collections.abc import Callable

import pytest

from gatehouse.permissions.documents.grammar import (
    MAX_CONFIG_SCHEMA_CHARACTERS,
    MAX_CONFIG_SCHEMA_DEPTH,
    MAX_CONFIG_SCHEMA_VALUES,
    check_config_schema,
)
from gatehouse.permissions.errors import Malformed


def nest_document(levels: int, around: Callable[[object], object]) -> object:
    document: object = {}
    for _ in range(levels - 1):
        document = around(document)
    return document


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.example/x"},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"properties": {"$ref": {"type": "string"}}},
        {"pattern": "(a+)+$"},
        {"default": [1, -1.5, True, None, "ä"]},
        nest_document(MAX_CONFIG_SCHEMA_DEPTH, lambda inner: {"not": inner}),
    ],
)
def test_ap_09_an_ordinary_schema_is_kept_as_it_is(schema: object) -> None:
    assert check_config_schema(schema, "data") == schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://evil.example/schema"},
        {"properties": {"a": {"$ref": "other.json#/a"}}},
        {"allOf": [{"$dynamicRef": "http://127.0.0.1/"}]},
        {"$recursiveRef": "file:///etc/passwd"},
    ],
)
def test_ap_09_a_reference_that_leads_elsewhere_is_refused(schema: object) -> None:
    with pytest.raises(Malformed, match="refers outside the schema"):
        check_config_schema(schema, "data")


def test_ap_09_depth_values_and_text_are_bounded() -> None:
    with pytest.raises(Malformed, match="nested more than"):
        check_config_schema(nest_document(MAX_CONFIG_SCHEMA_DEPTH + 1, lambda inner: {"not": inner}), "data")
    with pytest.raises(Malformed, match="nested more than"):
        check_config_schema({"a": nest_document(10_000, lambda inner: [inner])}, "data")
    assert check_config_schema({"enum": [0] * (MAX_CONFIG_SCHEMA_VALUES - 2)}, "data")
    with pytest.raises(Malformed, match="values"):
        check_config_schema({"enum": [0] * (MAX_CONFIG_SCHEMA_VALUES - 1)}, "data")
    assert check_config_schema({"a": "x" * (MAX_CONFIG_SCHEMA_CHARACTERS - 1)}, "data")
    with pytest.raises(Malformed, match="characters"):
        check_config_schema({"ab": "x" * (MAX_CONFIG_SCHEMA_CHARACTERS - 1)}, "data")


def test_ap_09_a_file_that_refers_to_itself_is_bounded_too() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(Malformed, match="nested more than"):
        check_config_schema({"a": loop}, "data")


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**63, "a\0", "\ud800", b"x", {1: 2}, {"a\0": 1}, {"\udfff": 1}, {1, 2}]
)
def test_sc_15_what_json_or_a_database_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(Malformed):
        check_config_schema({"default": value}, "data")


@pytest.mark.parametrize("document", [None, [], "{}", 1, True])
def test_a_schema_is_an_object(document: object) -> None:
    with pytest.raises(Malformed, match=r"^data: must be an object"):
        check_config_schema(document, "data")
