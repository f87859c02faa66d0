"""The grammar of ids, names, titles, aliases, tags and the fields of an application."""

import pytest

from gatehouse.kernel.addresses import parse_network
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed

PLACE = "data.x"


@pytest.mark.parametrize(
    ("given", "number"), [(1, 1), ("1", 1), (50_001, 50_001), ("50001", 50_001), (2**63 - 1, 2**63 - 1)]
)
def test_ap_02_an_application_id_is_an_integer_or_its_digits(given: object, number: int) -> None:
    assert grammar.parse_application_id(given) == number


@pytest.mark.parametrize(
    "given",
    [
        True,
        False,
        None,
        0,
        -1,
        1.0,
        "",
        "0",
        "-1",
        "+1",
        "1.0",
        "01",
        "1_0",
        "\uff11",
        "¹",
        " 1",
        "1 ",
        "1\n",
        "0x1",
        "1e3",
        [1],
        {"$ne": 0},
        b"1",
        2**63,
        str(2**63),
        "1" * 5_000,
    ],
)
def test_ap_02_nothing_else_is_an_application_id(given: object) -> None:
    with pytest.raises(Malformed, match=r"^application_id: "):
        grammar.parse_application_id(given)


@pytest.mark.parametrize("title", ["a", "My Project", "A_b 9 C", "_", "x" * 32, "games", "internal 2"])
def test_pr_02_titles_of_the_alphabet_are_kept_as_they_are(title: str) -> None:
    assert grammar.check_title(title, PLACE) == title


@pytest.mark.parametrize(
    "title",
    [
        "abc\n",
        "a\tb",
        "a\0b",
        "a\u00a0b",
        "\u212aey",
        "\u017fet",
        "café",
        "x" * 33,
        "",
        " ",
        "   ",
        " abc",
        "abc ",
        "a  b",
        "a-b",
        "a.b",
        "a/b",
        7,
        None,
        ["abc"],
    ],
)
def test_pr_02_and_gr_07_other_titles_are_refused(title: object) -> None:
    with pytest.raises(Malformed, match=r"^data.x: "):
        grammar.check_title(title, PLACE)
    with pytest.raises(Malformed, match=r"^data.x: "):
        grammar.check_group_title(title, PLACE)


@pytest.mark.parametrize("title", ["Internal", "INTERNAL", "internal", "GAME", "game"])
def test_pr_03_a_reserved_id_is_refused_however_it_is_written(title: str) -> None:
    with pytest.raises(Malformed, match="reserved"):
        grammar.check_title(title, PLACE)
    with pytest.raises(Malformed):
        grammar.check_alias(title, PLACE)


def test_a_group_may_be_called_game() -> None:
    assert grammar.check_group_title("Game", PLACE) == "Game"


def test_pr_04_titles_that_look_alike_have_one_id() -> None:
    titles = ("My Project", "my_project", "MY PROJECT", "My_Project")
    assert {grammar.project_id_of(title) for title in titles} == {"my_project"}


def test_aliases_are_unique_and_at_most_ten() -> None:
    ten = [f"alias_{number}" for number in range(10)]
    assert grammar.check_aliases(ten, PLACE) == tuple(ten)
    with pytest.raises(Malformed, match="at most 10"):
        grammar.check_aliases([*ten, "more"], PLACE)
    with pytest.raises(Malformed, match=r"data\.x\[1\]: mg is listed twice"):
        grammar.check_aliases(["mg", "mg"], PLACE)


@pytest.mark.parametrize("alias", ["", "A", "a b", "a-b", "a" * 33, "a\n", "ä", 1, None])
def test_pr_12_an_alias_or_project_id_has_one_spelling(alias: object) -> None:
    with pytest.raises(Malformed):
        grammar.check_alias(alias, PLACE)
    with pytest.raises(Malformed):
        grammar.check_project_id(alias, PLACE)


@pytest.mark.parametrize("name", ["default", "Default", "a-b_C 9", "x" * 64])
def test_role_names_of_the_alphabet_are_kept_as_they_are(name: str) -> None:
    assert grammar.check_role_name(name, PLACE) == name


@pytest.mark.parametrize("name", ["", " a", "a ", "a  b", "a.b", "a/b", "a|b", "a:b", "a,b", "x" * 65, "ä", "a\n", 5])
def test_other_role_names_are_refused(name: object) -> None:
    with pytest.raises(Malformed):
        grammar.check_role_name(name, PLACE)


@pytest.mark.parametrize("limit", [0, 5, 2**31 - 1])
def test_ro_17_a_user_limit_is_a_number(limit: int) -> None:
    assert grammar.check_user_limit(limit, PLACE) == limit


@pytest.mark.parametrize("limit", [-1, True, "5", 1.0, 2**63, None])
def test_ro_17_other_user_limits_are_refused(limit: object) -> None:
    with pytest.raises(Malformed):
        grammar.check_user_limit(limit, PLACE)


def test_gr_03_a_hundred_users_and_no_more_anyone_who_is_named_twice_counts_once() -> None:
    hundred = [str(1_000 + number) for number in range(100)]
    assert grammar.parse_user_ids([*hundred, *hundred], PLACE) == tuple(hundred)
    with pytest.raises(Malformed, match="at most 100"):
        grammar.parse_user_ids([*hundred, "5"], PLACE)


@pytest.mark.parametrize("users", ["1001", {"1001": 1}, [1001], [None], ["0"], ["01"], ["a" * 24], ["1\n"], [""]])
def test_gr_09_users_are_a_list_of_ids(users: object) -> None:
    with pytest.raises(Malformed, match=r"^data.x"):
        grammar.parse_user_ids(users, PLACE)


@pytest.mark.parametrize("name", ["<b>Shop</b>", "Café 9", "x" * 128])
def test_ap_14_a_name_is_one_plain_line(name: str) -> None:
    assert grammar.check_name(name, PLACE) == name


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\nb", "a\0", "a\u202eb", "a\u200bb", "\ud800", "x" * 129, 5])
def test_ap_14_deceptive_names_are_refused(name: object) -> None:
    with pytest.raises(Malformed):
        grammar.check_name(name, PLACE)


def test_ap_14_a_description_may_have_lines_and_nothing_hidden() -> None:
    assert grammar.check_description("one\ntwo\n", PLACE) == "one\ntwo\n"
    for text in ("a\r\nb", "a\u2028b", "\u202e", "\0", "\udfff", "x" * 1_025):
        with pytest.raises(Malformed):
            grammar.check_description(text, PLACE)


@pytest.mark.parametrize("comment", ["x" * 257, "x" * 1_000_000, "a\x07", "a\nb", None])
def test_ak_08_a_comment_is_short_and_plain(comment: object) -> None:
    with pytest.raises(Malformed):
        grammar.check_comment(comment, PLACE)
    assert grammar.check_comment("<i>ci</i>", PLACE) == "<i>ci</i>"


def test_domains_are_compared_in_lower_case_and_stand_once() -> None:
    assert grammar.parse_allowed_domains(["Studio.Example", "studio.example", "b.example"], PLACE) == (
        "studio.example",
        "b.example",
    )


@pytest.mark.parametrize(
    "domain", ["", "@a.example", "*.example", "a..b", "a.example.", "-a.example", "\u212aey.example", "ä.example", 5]
)
def test_invalid_domain_is_refused(domain: object) -> None:
    with pytest.raises(Malformed, match=r"^data\.x\[0\]: must be a domain"):
        grammar.parse_allowed_domains([domain], PLACE)


EXACT = {
    "name": "Az09 _." + "x" * 25,
    "description": "x" * 1_024,
    "doc": "http://docs.example/page#part",
    "url": "https://a.example/" + "x" * 2_030,
    "env": "prod",
    "tags": [f"t:{number}_" + "x" * 60 for number in range(10)],
    "config_schema": {"type": "object"},
}


def test_ap_05_exactly_the_limits_are_accepted() -> None:
    assert grammar.check_service_meta(EXACT, PLACE) == EXACT


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("name", "x" * 33),
        ("name", "a\nb"),
        ("name", "a\n"),
        ("name", "a-b"),
        ("name", "   "),
        ("name", 5),
        ("description", "x" * 1_025),
        ("doc", "ftp://a.example"),
        ("doc", "javascript:alert(1)"),
        ("url", "https://a.example/" + "x" * 2_031),
        ("url", 5),
        ("env", "a\nb"),
        ("env", "x" * 65),
        ("tags", [f"t{number}" for number in range(11)]),
        ("tags", ["x" * 65]),
        ("tags", ["a-b"]),
        ("tags", ["a", "a"]),
        ("tags", [""]),
        ("tags", "a"),
        ("config_schema", []),
        ("config_schema", "{}"),
    ],
)
def test_ap_05_beyond_the_limits_all_of_it_is_refused(member: str, value: object) -> None:
    with pytest.raises(Malformed, match=rf"^data\.x\.{member}"):
        grammar.check_service_meta({**EXACT, member: value}, PLACE)


def test_service_metadata_has_no_other_members_and_null_is_none() -> None:
    with pytest.raises(Malformed, match=r"^data\.x\.private_key: unknown field"):
        grammar.check_service_meta({"private_key": "x"}, PLACE)
    assert grammar.check_service_meta({"name": None, "doc": ""}, PLACE) == {"doc": ""}


def test_settings_are_read_back_as_they_were_given() -> None:
    settings = {
        "gdpr": {
            "char_sources": ["https://a.example/characters"],
            "data_sources": [{"fetch": "https://a.example/f?x=1", "remove": "https://8.8.8.8/r"}],
        },
        "restricted_domains": ["studio.example"],
        "game": {"enabled": True, "code_match": False},
    }
    assert grammar.check_application_settings(settings, PLACE) == settings
    assert grammar.check_application_settings({}, PLACE) == {}


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ([], "data.x"),
        ({"other": 1}, "data.x.other"),
        ({"gdpr": {"other": 1}}, "data.x.gdpr.other"),
        ({"gdpr": {"char_sources": "https://a.example"}}, "data.x.gdpr.char_sources"),
        ({"gdpr": {"char_sources": [5]}}, "data.x.gdpr.char_sources[0]"),
        ({"gdpr": {"char_sources": ["https://a.example"] * 21}}, "data.x.gdpr.char_sources"),
        ({"gdpr": {"data_sources": [{"fetch": "https://a.example"}]}}, "data.x.gdpr.data_sources[0].remove"),
        ({"gdpr": {"data_sources": ["https://a.example"]}}, "data.x.gdpr.data_sources[0]"),
        ({"game": True}, "data.x.game"),
        ({"game": {"enabled": 1}}, "data.x.game.enabled"),
        ({"game": {"on": True}}, "data.x.game.on"),
        ({"restricted_domains": "a.example"}, "data.x.restricted_domains"),
        ({"restricted_domains": ["a.example", "@"]}, "data.x.restricted_domains[1]"),
    ],
)
def test_an_error_in_settings_names_its_place(settings: object, where: str) -> None:
    with pytest.raises(Malformed) as error:
        grammar.check_application_settings(settings, PLACE)
    assert error.value.detail.startswith(f"{where}: ")


@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/latest",
        "https://127.0.0.1/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::1]/",
        "https://10.0.0.5/",
        "https://[fd00::1]/",
        "https://2130706433/",
        "https://0/",
        "https://0x7f000001/",
        "https://127.1/",
        "https://localhost/",
        "https://LOCALHOST/",
        "https://a.localhost/",
        "https://metadata.google.internal/",
        "https://intranet/",
        "http://a.example/",
        "file:///etc/passwd",
        "gopher://a.example/",
        "https://user@a.example/",
        "https://a.example/#part",
        "//a.example/",
        None,
    ],
)
def test_ap_08_addresses_inside_are_refused_at_save(url: object) -> None:
    with pytest.raises(Malformed, match=r"^data.x: "):
        grammar.check_outbound_url(url, PLACE)


def test_ap_08_an_installation_may_allow_addresses_of_its_own() -> None:
    allowed = (parse_network("10.0.0.0/8"),)
    for url in ("http://10.0.0.5:8080/", "https://intranet/", "https://a.example/"):
        assert grammar.check_outbound_url(url, PLACE, allowed) == url
    with pytest.raises(Malformed):
        grammar.check_outbound_url("http://127.0.0.1/", PLACE, allowed)
