"""Trees of rules are parsed strictly into one canonical form."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.permissions.documents import rules
from gatehouse.permissions.documents.ends import MAX_EXPIRED, MAX_TTL
from gatehouse.permissions.documents.trees import MAX_LEAVES
from gatehouse.permissions.errors import Malformed, TooMuch
from gatehouse.permissions.model import central
from gatehouse.permissions.model.rules import RESERVED_SEGMENTS, End, Rule, RuleDefinition, RuleEntry, RuleSection
from gatehouse.permissions.model.schema import LOGIN_DEFAULT, SECRET_DEFAULT, ApplicationSchema, Tree

PRIVATE, PUBLIC = RuleSection.PRIVATE, RuleSection.PUBLIC
ON: Tree = {"value": True}


def schema(private: object = None, public: object = None) -> ApplicationSchema:
    return ApplicationSchema(
        application_id=50_001,
        private_data=rules.parse_schema_section(private or {}, PRIVATE, place="p"),
        public_data=rules.parse_schema_section(public or {}, PUBLIC, place="p"),
        updated_at=0,
    )


def section(document: object) -> Tree:
    return rules.parse_schema_section(document, PRIVATE, place="data.private_data")


def schema_with_rules(count: int) -> dict[str, object]:
    return {f"area{number // 100}": {} for number in range(count)} | {
        f"area{block}": {f"rule{number}": dict(ON) for number in range(block * 100, min(count, block * 100 + 100))}
        for block in range((count + 99) // 100)
    }


def path_of(*segments: str) -> object:
    document: object = dict(ON)
    for segment in reversed(segments):
        document = {segment: document}
    return document


# -- the schema ---------------------------------------------------------------------------------------


def test_a_leaf_of_the_schema_gets_its_defaults() -> None:
    assert section({"user": {"kick": {"value": True}}}) == {
        "user": {"kick": {"value": True, "protected": False, "description": ""}}
    }


def test_leaves_are_typed() -> None:
    kick = {"value": True, "protected": True, "description": "Can kick"}
    created = schema({"user": {"kick": kick}}, {"news": {"value": False}})
    assert rules.schema_rules(created.private_data, created.public_data) == {
        Rule(PRIVATE, "user.kick"): RuleDefinition(value=True, protected=True, description="Can kick"),
        Rule(PUBLIC, "news"): RuleDefinition(),
    }


def test_branches_that_hold_nothing_are_left_out() -> None:
    assert section({"user": {"a": {}, "b": {"c": {}}}, "x": ON}) == section({"x": ON})


@pytest.mark.parametrize(
    "segment", ["a.b", "", "é", "e\u0301", "a b", "a/b", "a|b", "a:b", "a\n", "a\0", "x" * 65, "\uff21", "\ud800"]
)
def test_sc_13_dotted_and_foreign_segments_are_refused(segment: str) -> None:
    with pytest.raises(Malformed, match=r"^data\.private_data\.user\..*: must be 1 to 64 of"):
        section({"user": {segment: ON}})
    with pytest.raises(Malformed):
        section({segment: {"kick": ON}})


def test_sc_13_a_dotted_name_beside_its_path_is_refused() -> None:
    with pytest.raises(Malformed, match=r"data\.private_data\.a\.b: "):
        section({"a": {"b": ON}, "a.b": ON})


def test_sc_13_case_twins_stay_apart() -> None:
    created = schema({"user": {"kick": {"value": True}, "Kick": {"value": False}}})
    values = {rule.path: leaf.value for rule, leaf in rules.schema_rules(created.private_data, {}).items()}
    assert values == {"user.kick": True, "user.Kick": False}


@pytest.mark.parametrize("value", ["true", 1, 0, None, [], {}, {"value": True}])
def test_sc_14_a_value_is_true_or_false(value: object) -> None:
    with pytest.raises(Malformed, match=r"^data\.private_data\.user\.kick\.value: must be true or false"):
        section({"user": {"kick": {"value": value}}})


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"user": {"value": True, "kick": ON}}, "user.kick"),
        ({"user": {"value": True, "params": "a"}}, "user.params"),
        ({"user": {"value": True, "protected": 1}}, "user.protected"),
        ({"user": {"value": True, "protected": None}}, "user.protected"),
        ({"user": {"value": True, "description": 5}}, "user.description"),
        ({"user": {"value": True, "description": "a\0"}}, "user.description"),
        ({"user": {"value": True, "description": "x" * 1_025}}, "user.description"),
        ({"user": {"protected": True}}, "user.protected"),
        ({"user": True}, "user"),
        ({"user": None}, "user"),
        ({"user": [ON]}, "user"),
        ({"value": True}, "value"),
        ({"projectAccess": {"p": ON}}, "projectAccess"),
        ({5: ON}, "5"),
    ],
)
def test_sc_14_a_node_is_a_leaf_or_a_branch_and_the_error_names_its_place(document: object, where: str) -> None:
    with pytest.raises(Malformed) as error:
        section(document)
    assert error.value.detail.startswith(f"data.private_data.{where}: ")


@pytest.mark.parametrize("document", [None, [], "x", True, 5])
def test_sc_14_a_section_is_an_object(document: object) -> None:
    with pytest.raises(Malformed, match=r"^data.private_data: must be an object"):
        section(document)


def test_a_path_has_at_most_eight_segments() -> None:
    eight = path_of(*"abcdefgh")
    assert section(eight)
    with pytest.raises(Malformed, match="at most 8 segments"):
        section({"x": eight})
    with pytest.raises(Malformed, match="at most 8 segments"):
        section(path_of(*(["x"] * 50_000)))


@pytest.mark.parametrize("name", sorted(RESERVED_SEGMENTS))
def test_ro_22_a_reserved_name_is_refused_at_the_front_only(name: str) -> None:
    assert section({"a": {name: ON}})
    for tree in ({name: ON}, {name: {"a": ON}}):
        with pytest.raises(Malformed, match=rf"^data\.private_data\.{name}: this name is reserved"):
            section(tree)
        with pytest.raises(Malformed, match=rf"^x\.public_data\.{name}: this name is reserved"):
            rules.parse_meta({"public_data": tree}, place="x")
        with pytest.raises(Malformed, match=rf"^x\.{name}: this name is reserved"):
            rules.parse_entries(tree, RuleSection.PUBLIC, place="x")
    for flat in (f"private_data.{name}.a", f"public_data.{name}", name):
        with pytest.raises(Malformed, match="this name is reserved"):
            rules.parse_meta({"permissions": [{"name": flat, "value": True}]}, place="x")


def test_sc_16_ten_thousand_leaves_are_kept_whole_and_one_more_is_refused() -> None:
    created = section(schema_with_rules(MAX_LEAVES))
    assert len(rules.schema_rules(created, {})) == MAX_LEAVES
    assert section(created) == created
    with pytest.raises(TooMuch, match="at most 10000 rules"):
        section(schema_with_rules(MAX_LEAVES + 1))


def test_sc_16_both_sections_together_have_at_most_ten_thousand() -> None:
    private, public = section(schema_with_rules(MAX_LEAVES)), section({"one_more": ON})
    rules.refuse_duplicate_paths(private, {})
    with pytest.raises(TooMuch, match="together"):
        rules.refuse_duplicate_paths(private, public)


def test_sc_16_the_time_of_reading_grows_with_the_size_only() -> None:
    """A quadratic step would make ten times the leaves a hundred times the work."""
    assert seconds_for(MAX_LEAVES) < 40 * max(seconds_for(MAX_LEAVES // 10), 0.001)


def seconds_for(count: int) -> float:
    """The best of three, because a garbage collection may run in between."""
    document = schema_with_rules(count)
    return min(seconds_once(document) for _ in range(3))


def seconds_once(document: object) -> float:
    started = time.process_time()
    tree = section(document)
    rules.refuse_duplicate_paths(tree, {})
    rules.refuse_collisions(schema(), rules.section_entries(tree, PRIVATE), place="p", central=False)
    return time.process_time() - started


def test_a_path_stands_in_one_section() -> None:
    kick = section({"user": {"kick": ON}})
    rules.refuse_duplicate_paths(kick, section({"user": {"ban": ON}}))
    for other in ({"user": {"kick": ON}}, {"user": ON}, {"user": {"kick": {"hard": ON}}}):
        with pytest.raises(Malformed, match="is in both private_data and public_data"):
            rules.refuse_duplicate_paths(kick, section(other))
        with pytest.raises(Malformed, match="is in both private_data and public_data"):
            rules.refuse_duplicate_paths(section(other), kick)


# -- roles --------------------------------------------------------------------------------------------


def test_the_meta_of_a_role_mirrors_the_schema() -> None:
    meta = {
        "private_data": {"user": {"kick": {"value": True, "params": "a,b"}}},
        "public_data": {"news": {"value": False}},
    }
    assert rules.parse_meta(meta, place="data.meta") == meta
    assert rules.meta_entries(meta) == {
        Rule(PRIVATE, "user.kick"): RuleEntry(value=True, params=("a", "b")),
        Rule(PUBLIC, "news"): RuleEntry(value=False),
    }


def test_empty_entries_are_left_out_of_meta() -> None:
    meta = {
        "private_data": {"kick": {"value": True, "params": "", "protected": True, "description": "copied"}},
        "public_data": {},
    }
    assert rules.parse_meta(meta, place="data.meta") == {"private_data": {"kick": {"value": True}}}
    assert rules.parse_meta({"private_data": None}, place="data.meta") == {}


def test_a_flat_list_is_the_same_as_a_tree() -> None:
    flat = [
        {"name": "user.kick", "value": True, "params": "a"},
        {"name": "private_data.user.ban", "value": False},
        {"name": "public_data.news.write", "value": True},
        {"name": "private", "value": True},
    ]
    assert rules.parse_meta({"permissions": flat}, place="data.meta") == {
        "private_data": {
            "user": {"kick": {"value": True, "params": "a"}, "ban": {"value": False}},
            "private": {"value": True},
        },
        "public_data": {"news": {"write": {"value": True}}},
    }


@pytest.mark.parametrize(
    "flat",
    [
        "user.kick",
        ["user.kick"],
        [{"name": "user.kick"}],
        [{"value": True}],
        [{"name": 5, "value": True}],
        [{"name": "", "value": True}],
        [{"name": "user.", "value": True}],
        [{"name": ".kick", "value": True}],
        [{"name": "user..kick", "value": True}],
        [{"name": "user.kick\n", "value": True}],
        [{"name": "user.kick", "value": 1}],
        [{"name": "user.kick", "value": True, "ttl": 5}],
        [{"name": "user.value", "value": True}],
        [{"name": "value", "value": True}],
        [{"name": "projectAccess.p", "value": True}],
        [{"name": "private_data.projectAccess.p", "value": True}],
        [{"name": "a.b.c.d.e.f.g.h.i", "value": True}],
        [{"name": "user.kick", "value": True}, {"name": "private_data.user.kick", "value": True}],
        [{"name": "user", "value": True}, {"name": "user.kick", "value": True}],
        [{"name": "user.kick", "value": True}, {"name": "user", "value": True}],
        [{"name": "user.kick", "value": True}, {"name": "public_data.user.kick", "value": True}],
    ],
)
def test_a_flat_list_passes_the_same_checks(flat: object) -> None:
    with pytest.raises(Malformed, match=r"^data\.meta"):
        rules.parse_meta({"permissions": flat}, place="data.meta")


@pytest.mark.parametrize(
    "meta",
    [
        [],
        {"secret_data": {}},
        {"user": {"kick": ON}},
        {"permissions": [], "private_data": {}},
        {"private_data": {"kick": {"value": True, "expired": 5}}},
        {"private_data": {"kick": ON}, "public_data": {"kick": ON}},
    ],
)
def test_meta_has_two_sections_and_nothing_else(meta: object) -> None:
    with pytest.raises(Malformed, match=r"^data\.meta"):
        rules.parse_meta(meta, place="data.meta")


@pytest.mark.parametrize("roles", [[], {"a/b": {}}, {"": {}}, {5: {}}, None])
def test_roles_of_a_schema_stand_under_their_names(roles: object) -> None:
    assert rules.read_roles({"Editor": {}}, place="data.roles") == {"Editor": {}}
    with pytest.raises(Malformed, match=r"^data\.roles"):
        rules.read_roles(roles, place="data.roles")


# -- parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x|can_admin:0",
        "a:10",
        "a|b",
        ",",
        ",,",
        "a,",
        ",a",
        "a,,b",
        "a\n",
        "a\x00",
        "a\u202e",
        "\ud800",
        "x" * 65,
        ",".join("a" * 65),
        "x" * 100000,
        5,
        None,
        ["a"],
        True,
    ],
)
def test_ro_08_parameters_that_would_read_back_as_something_else_are_refused(text: object) -> None:
    with pytest.raises(Malformed, match=r"^data.params: "):
        rules.parse_params(text, "data.params")


PARAMS = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"], exclude_characters="|,:"),
        min_size=1,
        max_size=64,
    ),
    max_size=64,
)


@given(PARAMS)
def test_ro_08_parameters_are_read_back_exactly_as_they_were_stored(params: list[str]) -> None:
    read = rules.parse_params(",".join(params), "data.params")
    assert read == tuple(params)
    assert rules.split_params(",".join(read)) == read


@given(st.text())
def test_ro_08_whatever_is_accepted_is_read_back_from_a_list_entry(text: str) -> None:
    try:
        params = rules.parse_params(text, "data.params")
    except Malformed:
        return
    rule, _, rest = f"user.kick|{','.join(params)}:60".partition("|")
    joined, _, left = rest.rpartition(":")
    assert (rule, rules.split_params(joined), left) == ("user.kick", params, "60")


# -- entries of a record ------------------------------------------------------------------------------


def entries(document: object, expired: int = 0) -> Tree:
    return rules.parse_entries(document, PRIVATE, place="data.private_data", expired=expired)


def test_sc_19_the_end_of_the_request_is_that_of_entries_without_one() -> None:
    given_entries = {
        "a": {"value": True},
        "b": {"value": True, "expired": 5},
        "c": {"value": True, "ttl": 6},
        "d": {"value": True, "expired": 0},
        "e": {"value": True, "expired": 7, "ttl": 8},
    }
    assert entries(given_entries, expired=100) == {
        "a": {"value": True, "expired": 100},
        "b": {"value": True, "expired": 5},
        "c": {"value": True, "ttl": 6},
        "d": {"value": True},
        "e": {"value": True, "expired": 7, "ttl": 8},
    }


def test_entries_are_typed() -> None:
    tree = entries({"user": {"kick": {"value": True, "params": "a,b", "expired": 5, "ttl": 6}}})
    assert rules.section_entries(tree, PRIVATE) == {
        Rule(PRIVATE, "user.kick"): RuleEntry(value=True, params=("a", "b"), end=End(expired=5, ttl=6))
    }


@pytest.mark.parametrize("value", [-1, "123", 1.5, True, None, [], 1_900_000_000_000, 2**63])
def test_ro_19_an_end_is_a_number_of_seconds(value: object) -> None:
    with pytest.raises(Malformed, match=r"^data\.private_data\.kick\.expired: must be an integer"):
        entries({"kick": {"value": True, "expired": value}})
    with pytest.raises(Malformed, match=r"^data\.private_data\.kick\.ttl: must be an integer"):
        entries({"kick": {"value": True, "ttl": value}})


def test_ro_19_the_latest_end_is_one() -> None:
    tree = entries({"kick": {"value": True, "expired": MAX_EXPIRED, "ttl": MAX_TTL}})
    assert rules.section_entries(tree, PRIVATE)[Rule(PRIVATE, "kick")].end == End(expired=MAX_EXPIRED, ttl=MAX_TTL)


def test_an_end_that_cannot_be_read_has_passed() -> None:
    parsed = rules.section_entries({"kick": {"value": True, "expired": "never"}}, PRIVATE)
    assert parsed[Rule(PRIVATE, "kick")].end.is_past(2)


SEGMENTS = st.text(
    st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"), min_size=1, max_size=8
).filter(lambda name: name not in ("value", *RESERVED_SEGMENTS))
LEAVES = st.fixed_dictionaries(
    {"value": st.booleans()},
    optional={
        "params": PARAMS.filter(bool).map(",".join),
        "expired": st.integers(1, MAX_EXPIRED),
        "ttl": st.integers(1, MAX_TTL),
    },
)
TREES = st.dictionaries(
    SEGMENTS,
    st.recursive(LEAVES, lambda inner: st.dictionaries(SEGMENTS, inner, min_size=1, max_size=3), max_leaves=8),
    max_size=4,
)


def depth(node: object) -> int:
    assert isinstance(node, dict)
    return 0 if "value" in node else 1 + max((depth(child) for child in node.values()), default=0)


@given(TREES)
def test_sc_14_a_canonical_tree_is_read_back_as_it_is(tree: dict[str, object]) -> None:
    if depth(tree) > 8:
        with pytest.raises(Malformed):
            entries(tree)
    else:
        assert entries(tree) == tree
        assert rebuild_tree(rules.section_entries(entries(tree), PRIVATE)) == tree


def rebuild_tree(rule_entries: dict[Rule, RuleEntry]) -> dict[str, object]:
    tree: dict[str, object] = {}
    for rule, entry in rule_entries.items():
        *way, last = rule.path.split(".")
        node = tree
        for segment in way:
            node = node.setdefault(segment, {})  # type: ignore[assignment]
        leaf = {
            "value": entry.value,
            "params": ",".join(entry.params),
            "expired": entry.end.expired,
            "ttl": entry.end.ttl,
        }
        node[last] = {name: value for name, value in leaf.items() if name == "value" or value}
    return tree


# -- rules and the schema -----------------------------------------------------------------------------

KNOWN = schema({"user": {"kick": {"value": False, "protected": True}, "ban": ON}}, {"news": {"read": ON}})


@pytest.mark.parametrize(
    "rule",
    [
        Rule(PRIVATE, "user.kick"),
        Rule(PUBLIC, "news.read"),
        Rule(PRIVATE, "user.mute"),
        Rule(PUBLIC, "user.mute"),
        Rule(PRIVATE, "news.write"),
        Rule(PRIVATE, "users"),
        Rule(PRIVATE, "user.kick2"),
        Rule(PUBLIC, "other.kick"),
    ],
)
def test_rules_the_schema_does_not_have_are_fine(rule: Rule) -> None:
    rules.refuse_collisions(KNOWN, [rule], place="data", central=False)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(PRIVATE, "user"),
        Rule(PRIVATE, "user.kick.hard"),
        Rule(PRIVATE, "user.kick.very.hard"),
        Rule(PUBLIC, "user.kick"),
        Rule(PUBLIC, "user"),
        Rule(PUBLIC, "user.kick.hard"),
        Rule(PRIVATE, "news.read"),
    ],
)
def test_ro_02_a_rule_that_could_be_taken_for_one_of_the_schema_is_refused(rule: Rule) -> None:
    with pytest.raises(Malformed, match=rf"^data\.{rule}: conflicts"):
        rules.refuse_collisions(KNOWN, [rule], place="data", central=False)


def test_application_1_has_its_own_rules_only() -> None:
    own = central.schema(0)
    for role in central.roles():
        rules.refuse_collisions(own, rules.meta_entries(role.meta), place="data", central=True)
    with pytest.raises(Malformed, match=r"^data\.private_data\.project\.can_fly: unknown rule"):
        rules.refuse_collisions(own, [Rule(PRIVATE, "project.can_fly")], place="data", central=True)
    with pytest.raises(Malformed):
        rules.refuse_collisions(own, [Rule(PUBLIC, "can_administer")], place="data", central=True)


def test_application_1_is_written_in_the_canonical_form() -> None:
    own = central.schema(0)
    assert rules.parse_schema_section(own.private_data, PRIVATE) == own.private_data
    for role in central.roles():
        assert rules.parse_meta(role.meta, place="meta") == role.meta


def test_protected_rules_are_told_apart() -> None:
    queried = [Rule(PRIVATE, "user.ban"), Rule(PRIVATE, "user.kick"), Rule(PRIVATE, "unknown")]
    assert rules.protected_rules_in(KNOWN, queried) == [Rule(PRIVATE, "user.kick")]


# -- login and secret_data ----------------------------------------------------------------------------


def test_sc_03_login_rules_left_out_are_those_of_a_new_application() -> None:
    assert rules.parse_login({}) == LOGIN_DEFAULT
    assert rules.parse_login(LOGIN_DEFAULT) == LOGIN_DEFAULT
    assert rules.parse_login({"can": {"value": False}}) == {
        "can": {"value": False, "protected": False, "description": ""},
        "cannot": LOGIN_DEFAULT["cannot"],
    }


@pytest.mark.parametrize(
    "login",
    [
        [],
        None,
        {"may": ON},
        {"can": True},
        {"can": {}},
        {"can": {"value": "true"}},
        {"can": {"value": None}},
        {"can": {"deeper": ON}},
        {"can": {"value": True, "params": "a"}},
    ],
)
def test_login_rules_are_two_and_strict(login: object) -> None:
    with pytest.raises(Malformed, match=r"^login"):
        rules.parse_login(login)
    with pytest.raises(Malformed, match=r"^login"):
        rules.parse_own_login(login)


def test_sc_19_login_rules_of_a_user_may_end() -> None:
    assert rules.parse_own_login({}) == {}
    given_login = {"can": {"value": True, "ttl": 5}, "cannot": {"value": True}}
    assert rules.parse_own_login(given_login, expired=9) == {
        "can": {"value": True, "ttl": 5},
        "cannot": {"value": True, "expired": 9},
    }
    with pytest.raises(Malformed, match=r"^login\.can\.expired"):
        rules.parse_login({"can": {"value": True, "expired": 9}})


def test_sc_03_system_rules_left_out_are_those_of_a_new_application() -> None:
    assert rules.parse_secret({}) == SECRET_DEFAULT
    assert rules.parse_secret(SECRET_DEFAULT) == SECRET_DEFAULT
    changed = rules.parse_secret({"application": {"canRead": ON}, "meta": {"roles": {"canWrite": {"value": "all"}}}})
    assert changed["application"] == {**SECRET_DEFAULT["application"], "canRead": ON}  # type: ignore[dict-item]
    assert changed["meta"]["roles"] == {"canRead": {"value": "self"}, "canWrite": {"value": "all"}}  # type: ignore[index]
    assert changed["meta"]["secret"] == {"canRead": {"value": "none"}, "canWrite": {"value": "none"}}  # type: ignore[index]


@pytest.mark.parametrize(
    ("secret", "where"),
    [
        ([], ""),
        ({"other": {}}, ".other"),
        ({"application": {"canFly": ON}}, ".application.canFly"),
        ({"application": {"canRead": True}}, ".application.canRead"),
        ({"application": {"canRead": {"value": "all"}}}, ".application.canRead.value"),
        ({"application": {"canRead": {}}}, ".application.canRead.value"),
        ({"meta": {"other": {}}}, ".meta.other"),
        ({"meta": {"roles": {"canRun": {"value": "all"}}}}, ".meta.roles.canRun"),
        ({"meta": {"roles": {"canRead": {"value": True}}}}, ".meta.roles.canRead.value"),
        ({"meta": {"roles": {"canRead": {"value": "All"}}}}, ".meta.roles.canRead.value"),
        ({"meta": {"roles": {"canRead": {"value": ["all"]}}}}, ".meta.roles.canRead.value"),
        ({"meta": {"roles": "all"}}, ".meta.roles"),
    ],
)
def test_system_rules_have_their_names_and_values_and_no_others(secret: object, where: str) -> None:
    for read in (rules.parse_secret, rules.parse_own_secret):
        with pytest.raises(Malformed) as error:
            read(secret)
        assert error.value.detail.startswith(f"secret_data{where}: ")


def test_sc_19_system_rules_of_a_user_may_end_and_those_of_the_schema_not() -> None:
    given_rules = {"application": {"canRead": ON}, "meta": {"roles": {"canRead": {"value": "all", "ttl": 5}}}}
    assert rules.parse_own_secret(given_rules, expired=9) == {
        "application": {"canRead": {"value": True, "expired": 9}},
        "meta": {"roles": {"canRead": {"value": "all", "ttl": 5}}},
    }
    assert rules.parse_own_secret({"application": None, "meta": {}}) == {}
    with pytest.raises(Malformed, match=r"canRead\.ttl"):
        rules.parse_secret(given_rules)
