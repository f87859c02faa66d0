"""A user's record on the wire and as typed by a person."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.permissions.documents import records
from gatehouse.permissions.documents.ends import MAX_EXPIRED
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model import central
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import (
    ROOT,
    End,
    ResourceKind,
    Scope,
    application_scope,
    group_scope,
    service_scope,
)

GROUP = "0123456789abcdef01234567"
ON = {"value": True}


def assignments(document: object, expired: int = 0) -> tuple[Assignment, ...]:
    return records.parse_assignments(document, place="data.roles", expired=expired)


def access(document: object, expired: int = 0) -> records.Scopes:
    return records.parse_project_access(document, place="data.projectAccess", expired=expired)


def test_a_role_is_given_by_name_or_with_an_end() -> None:
    assert assignments(
        ["Editor", {"name": "admin"}, {"name": "b", "expired": 5}, {"name": "c", "expired": 5, "ttl": 6}]
    ) == (
        Assignment(role="editor"),
        Assignment(role="admin"),
        Assignment(role="b", end=End(expired=5)),
        Assignment(role="c", end=End(expired=5, ttl=6)),
    )


def test_ro_19_the_end_of_the_request_is_that_of_roles_without_one() -> None:
    given_roles = [
        "a",
        {"name": "b"},
        {"name": "c", "ttl": 6},
        {"name": "d", "expired": 0},
        {"name": "e", "expired": 7},
    ]
    ends = [assignment.end for assignment in assignments(given_roles, expired=100)]
    assert ends == [End(expired=100), End(expired=100), End(ttl=6), End(), End(expired=7)]


@pytest.mark.parametrize("value", [-1, "123", 1.5, True, None, 1_900_000_000_000, 2**63])
def test_ro_19_an_end_is_a_number_of_seconds_and_the_error_names_its_place(value: object) -> None:
    for member in ("expired", "ttl"):
        with pytest.raises(Malformed, match=rf"^data\.roles\[1\]\.{member}: must be an integer"):
            assignments(["a", {"name": "b", member: value}])


@pytest.mark.parametrize(
    "document",
    [
        "editor",
        {"name": "editor"},
        None,
        [5],
        [None],
        [["a"]],
        [{}],
        [{"expired": 5}],
        [{"name": 5}],
        [""],
        ["a/b"],
        [{"name": "a", "value": True}],
        ["a", "A"],
        ["a", {"name": "a", "ttl": 5}],
        [f"r{n}" for n in range(1001)],
    ],
)
def test_malformed_role_list_is_refused(document: object) -> None:
    with pytest.raises(Malformed, match=r"^data\.roles"):
        assignments(document)


WHOLE = {
    "games": {
        "roles": ["editor", {"name": "admin", "expired": 5}],
        "private_data": {"user": {"kick": {"value": True, "params": "a", "ttl": 9}}},
        "public_data": {"news": ON},
        "applications": {"50001": {"roles": ["dev"]}, "50002": {"private_data": {"x": ON}}},
        "services": {"50001": {"roles": ["ops"]}},
        "groups": {GROUP: {"roles": ["lead"]}},
    },
    "other": {"roles": ["editor"]},
}


def test_project_access_becomes_scopes() -> None:
    scopes = access(WHOLE)
    assert set(scopes) == {
        Scope("games"),
        application_scope("games", 50_001),
        application_scope("games", 50_002),
        service_scope("games", 50_001),
        group_scope("games", GROUP),
        Scope("other"),
    }
    assert scopes[Scope("games")] == ScopeHoldings(
        roles=(Assignment(role="editor"), Assignment(role="admin", end=End(expired=5))),
        private_data={"user": {"kick": {"value": True, "params": "a", "ttl": 9}}},
        public_data={"news": ON},
    )
    assert scopes[service_scope("games", 50_001)] == ScopeHoldings(roles=(Assignment(role="ops"),))


def test_scopes_in_which_nothing_is_held_are_left_out() -> None:
    empty = {
        "games": {"roles": [], "private_data": {"a": {}}, "applications": {"1": {}}, "groups": None},
        "other": {},
    }
    assert access(empty) == {}


def test_sc_19_the_end_of_the_request_reaches_every_scope() -> None:
    scopes = access({"games": {"roles": ["a"], "services": {"7": {"public_data": {"x": ON}}}}}, expired=100)
    assert scopes[Scope("games")].roles == (Assignment(role="a", end=End(expired=100)),)
    assert scopes[service_scope("games", 7)].public_data == {"x": {"value": True, "expired": 100}}


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], ""),
        ({"Games": {}}, ".Games"),
        ({"a b": {}}, ".a b"),
        ({"games": []}, ".games"),
        ({"games": None}, ".games"),
        ({"games": {"login": {}}}, ".games.login"),
        ({"games": {"secret_data": {}}}, ".games.secret_data"),
        ({"games": {"roles": "a"}}, ".games.roles"),
        ({"games": {"private_data": {"projectAccess": {}}}}, ".games.private_data.projectAccess"),
        ({"games": {"applications": {"01": {}}}}, ".games.applications.01"),
        ({"games": {"applications": {"x": {}}}}, ".games.applications.x"),
        ({"games": {"services": {"0": {}}}}, ".games.services.0"),
        ({"games": {"groups": {GROUP.upper(): {}}}}, f".games.groups.{GROUP.upper()}"),
        ({"games": {"groups": {GROUP: {"groups": {}}}}}, f".games.groups.{GROUP}.groups"),
        ({"games": {"applications": {"1": {"private_data": {"x": 1}}}}}, ".games.applications.1.private_data.x"),
        ({"games": {"private_data": {"x": ON}, "public_data": {"x": ON}}}, ".games"),
    ],
)
def test_an_error_in_project_access_names_its_place(document: object, where: str) -> None:
    with pytest.raises(Malformed) as error:
        access(document)
    assert error.value.detail.startswith(f"data.projectAccess{where}: ")


def test_private_data_is_parted_into_root_and_projects() -> None:
    def parse_private(document: object) -> object:
        return records.parse_private_data(document, place="data.private_data", expired=0)

    assert parse_private({"x": ON}) == ({"x": ON}, {})
    assert parse_private({"x": ON, "projectAccess": WHOLE}) == ({"x": ON}, access(WHOLE))
    assert parse_private({"projectAccess": None}) == ({}, {})
    with pytest.raises(Malformed, match=r"^data\.private_data\.projectAccess\.A: "):
        parse_private({"projectAccess": {"A": {}}})


def test_a_record_is_shown_as_it_is_stored() -> None:
    root = ScopeHoldings(
        roles=(Assignment(role="editor"), Assignment(role="gone", end=End(expired=5, ttl=6))),
        private_data={"x": {"value": True, "expired": 3}},
    )
    record = UserRecord(
        application_id=50_001,
        user_id="1001",
        login={"cannot": {"value": True}},
        secret_data={"application": {"canRead": {"value": True}}},
        scopes={ROOT: root, **access(WHOLE)},
        version=4,
    )
    document = records.record_document(record, {"editor": "Editor"})
    games = WHOLE["games"]
    assert document == {
        "login": {"cannot": {"value": True}},
        "private_data": {
            "x": {"value": True, "expired": 3},
            "projectAccess": {
                "games": {**games, "roles": ["Editor", {"name": "admin", "expired": 5}]},
                "other": {"roles": ["Editor"]},
            },
        },
        "public_data": {},
        "roles": ["Editor", {"name": "gone", "expired": 5, "ttl": 6}],
        "secret_data": {"application": {"canRead": {"value": True}}},
    }


def test_an_empty_record_has_all_sections_and_no_projects() -> None:
    assert records.record_document(UserRecord(application_id=1, user_id="1"), {}) == {
        "login": {},
        "private_data": {},
        "public_data": {},
        "roles": [],
        "secret_data": {},
    }


def test_project_document_contains_only_that_project_with_its_role_names() -> None:
    roles = {role.key: role for role in central.roles()}
    model = ApplicationModel(application=central.application(0), schema=central.schema(0), roles=roles)
    scopes = access({"games": {"roles": ["Project_Owner"]}, "other": {"roles": ["group_manager"]}})
    record = UserRecord(application_id=1, user_id="1", scopes=scopes)
    assert records.project_document(record, "games", model) == {"roles": ["project_owner"]}
    assert records.project_document(record, "nowhere", model) == {}


ENDS = st.builds(End, expired=st.integers(0, MAX_EXPIRED), ttl=st.integers(0, 1_000))
ROLE_LISTS = st.lists(
    st.builds(Assignment, role=st.text(st.sampled_from("abyz09_-"), min_size=1, max_size=8), end=ENDS),
    unique_by=lambda assignment: assignment.role,
    max_size=4,
).map(tuple)
SECTIONS = st.dictionaries(
    st.sampled_from(["a", "b", "ab", "c-1", "D_2"]),
    st.fixed_dictionaries({"value": st.booleans()}, optional={"ttl": st.integers(1, 9)}),
    max_size=3,
)
HELD = st.builds(ScopeHoldings, roles=ROLE_LISTS, private_data=SECTIONS).filter(lambda held: not held.is_empty)
APPLICATIONS = st.integers(1, 2**63 - 1).map(str)
GROUPS = st.integers(0, 16**24 - 1).map("{:024x}".format)
SCOPES = st.one_of(
    st.builds(Scope, st.sampled_from(["games", "my_project"])),
    st.builds(
        Scope,
        st.sampled_from(["games", "my_project"]),
        st.sampled_from([ResourceKind.APPLICATION, ResourceKind.SERVICE]),
        APPLICATIONS,
    ),
    st.builds(Scope, st.sampled_from(["games", "my_project"]), st.just(ResourceKind.GROUP), GROUPS),
)


@given(st.dictionaries(SCOPES, HELD, max_size=5))
def test_sc_16_what_is_shown_of_projects_is_read_back_equal(scopes: dict[Scope, ScopeHoldings]) -> None:
    assert access(records.project_access_document(scopes, {})) == scopes
