import pytest

from gatehouse.client.permissions import Permissions, Resource, parse_permissions

LISTED = [
    "see",
    "limit|a,b",
    "path|x/y",
    "games/kick",
    "games/limit|c",
    "games/applications/50001/ban",
    "games/applications/50001/limit|d",
    "games/services/7/srv.can_manage_service",
    "games/groups/0a/group.can_manage_group",
]
SHOP = Resource("applications", "50001")


@pytest.fixture
def parsed_permissions() -> Permissions:
    return parse_permissions(LISTED)


def test_a_rule_counts_where_it_is_held(parsed_permissions: Permissions) -> None:
    assert parsed_permissions.allows("see")
    assert parsed_permissions.allows("kick", "games")
    assert parsed_permissions.allows("ban", "games", SHOP)
    assert parsed_permissions.allows("srv.can_manage_service", "games", Resource("services", "7"))
    assert parsed_permissions.allows("group.can_manage_group", "games", Resource("groups", "0a"))


def test_a_rule_of_a_project_counts_on_its_resources(parsed_permissions: Permissions) -> None:
    assert parsed_permissions.allows("kick", "games", SHOP)
    assert parsed_permissions.allows("kick", "games", Resource("groups", "anything"))
    assert not parsed_permissions.allows("kick", "other", SHOP)


def test_a_rule_of_the_root_counts_nowhere_below_and_one_of_a_resource_nowhere_else(
    parsed_permissions: Permissions,
) -> None:
    assert not parsed_permissions.allows("see", "games")
    assert not parsed_permissions.allows("see", "games", SHOP)
    assert not parsed_permissions.allows("see", "")
    assert not parsed_permissions.allows("ban", "games")
    assert not parsed_permissions.allows("ban")
    assert not parsed_permissions.allows("ban", "games", Resource("services", "50001"))


@pytest.mark.parametrize(
    "rule", ["games/kick", "", "see|", "limit|a", "limit|a,b", "games/applications/50001/ban", "SEE", "see "]
)
def test_text_that_only_looks_like_a_held_rule_is_none(parsed_permissions: Permissions, rule: str) -> None:
    assert not parsed_permissions.allows(rule)


def test_a_project_cannot_be_written_so_that_it_reaches_a_resource(parsed_permissions: Permissions) -> None:
    assert not parsed_permissions.allows("ban", "games/applications/50001")


def test_params_are_those_of_the_narrowest_place(parsed_permissions: Permissions) -> None:
    assert parsed_permissions.params("limit") == ("a", "b")
    assert parsed_permissions.params("limit", "games") == ("c",)
    assert parsed_permissions.params("limit", "games", SHOP) == ("d",)
    assert parsed_permissions.params("limit", "games", Resource("groups", "x")) == ("c",)
    assert parsed_permissions.params("see") == parsed_permissions.params("unknown") == ()
    assert parsed_permissions.params("path") == ("x/y",)


def test_a_form_that_is_not_known_gives_no_right() -> None:
    assert parse_permissions(["games/houses/1/kick", "a/b/kick", "a/applications/b/c/kick"]).entries == {}


def test_a_resource_without_its_project_is_a_mistake(parsed_permissions: Permissions) -> None:
    with pytest.raises(ValueError, match="project"):
        parsed_permissions.allows("ban", resource=SHOP)
