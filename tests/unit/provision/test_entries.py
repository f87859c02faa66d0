import pytest

from gatehouse.oauth.model import ClientProfile
from gatehouse.provision.model import Unfit
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import read_entries


def problems(document: dict[str, object]) -> tuple[str, ...]:
    with pytest.raises(Unfit) as error:
        read_entries(document, SECTIONS)
    return error.value.problems


def test_sections_come_in_the_order_in_which_they_are_made() -> None:
    entries = read_entries({"clients": [], "users": []}, SECTIONS)
    assert [entry.section.name for entry in entries] == ["users", "clients"]
    assert [entry.section.name for entry in read_entries({"clients": []}, SECTIONS)] == ["clients"]


def test_records_become_typed_entries_that_know_their_place() -> None:
    (users, clients) = read_entries(
        {
            "users": [{"login": "a@x.example"}, {"tags": ["b", "b"]}],
            "clients": [{"client_id": "w", "profile": "oidc"}],
        },
        SECTIONS,
    )
    assert [placed.place for placed in users.entries] == ["users[0]", "users[1]"]
    assert users.entries[1].entry.tags == {"b"}
    assert clients.entries[0].entry.profile is ClientProfile.OIDC


def test_everything_that_is_wrong_is_told_at_once_with_its_place() -> None:
    document = {
        "users": [
            {"login": "a@x.example", "nik": "A", "blocked": "yes"},
            "anna",
            {"user_id": 1001, "tags": ["a", 7], "password": 12345678901},
        ],
        "clients": {"web": {}},
        "client": [],
        "zzz": [],
    }
    assert problems(document) == (
        "client: unknown section, did you mean clients?",
        "zzz: unknown section",
        "users[0].nik: unknown field, did you mean nick?",
        "users[0].blocked: Expected `bool | null`, got `str`",
        "users[1]: must be a record with named fields",
        "users[2].user_id: Expected `str`, got `int`, put it in quotes",
        "users[2].tags[1]: Expected `str`, got `int`, put it in quotes",
        "users[2].password: must be text in quotes, {env: NAME}, {file: PATH} or {sealed: TEXT}",
        "clients: must be a list of records",
    )


def test_a_section_without_records_is_a_mistake_not_an_order_to_remove_all() -> None:
    assert problems({"users": None}) == ("users: must be a list of records",)


def test_required_fields_may_not_be_null() -> None:
    assert problems({"users": [{"login": None, "nick": None, "user_id": None}]}) == (
        "users[0].nick: Expected `str`, got `null`",
        "users[0].user_id: Expected `str`, got `null`",
    )


def test_a_client_needs_its_id() -> None:
    assert problems({"clients": [{"name": "Web"}]}) == ("clients[0]: Object missing required field `client_id`",)


@pytest.mark.parametrize("reference", [{}, {"env": "A", "file": "b"}, {"env": 3}, {"vault": "x"}, ["a"], 7])
def test_a_secret_is_text_or_one_reference(reference: object) -> None:
    (problem,) = problems({"users": [{"password": reference}]})
    assert problem.startswith("users[0].password: must be text in quotes, {env: NAME}")


def test_a_secret_is_in_no_repr() -> None:
    (entry,) = read_entries({"users": [{"password": "Hunter2-swordfish"}]}, SECTIONS)
    assert "Hunter2" not in repr(entry)


def test_a_problem_stays_one_honest_line() -> None:
    assert problems({"us\u202eers\n": []}) == ("us\\u202eers\\n: unknown section, did you mean users?",)
