"""The section `users`: the meaning of a record, and which differences are changes."""

from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import AccountKind, User
from gatehouse.provision.model import AddUser, ChangeUser, Problems, ReadScope, RemoveUser, StoredState, Unfit
from gatehouse.provision.sections.section import Located
from gatehouse.provision.sections.user_plan import UserFileEntry
from gatehouse.provision.sections.users import resolve_users
from tests.support.builders import NOW, a_user
from tests.unit.provision.provision_setup import PASSWORDS, plan_lines, provision_setup

ANNA = {"login": "anna@studio.example", "nick": "Anna"}
STRONG = "correct-horse-battery"


def with_anna(**fields: Any) -> StoredState:
    user = a_user(**{"user_id": "1001", "login": "anna@studio.example", "nick": "Anna", **fields})
    return StoredState(users=(user,))


async def problems_of(state: StoredState | None = None, **arguments: object) -> list[str]:
    setup, store = provision_setup(state)
    with pytest.raises(Unfit) as error:
        await setup.apply(**arguments)
    assert store.stored == (state or StoredState())
    assert store.records == []
    return list(error.value.problems)


async def the_user(**fields: object) -> User:
    """The account that a record creates."""
    setup, store = provision_setup()
    await setup.apply(users=[{**ANNA, **fields}])
    (user,) = store.stored.users
    return user


async def change_of_user(state: StoredState, **fields: object) -> ChangeUser | None:
    """What a record about user 1001 changes."""
    setup, _ = provision_setup(state)
    changes = (await setup.plan(users=[{"user_id": "1001", **fields}])).changes
    acts = [change.write for change in changes if isinstance(change.write, ChangeUser)]
    assert len(acts) == len(changes)
    return acts[0] if acts else None


async def test_a_record_makes_an_account_with_all_it_says() -> None:
    setup, store = provision_setup()
    plan = await setup.apply(
        users=[
            {
                **ANNA,
                "user_id": "1001",
                "password": STRONG,
                "totp_secret": "jbsw y3dp ehpk 3pxp",
                "lang": "no",
                "country": "NO",
                "name": "Anna Berg",
                "username": "Anna.Berg",
                "zoneinfo": "Europe/Oslo",
                "tags": ["staff"],
                "purchases": ["sky raiders"],
                "email_verified": True,
                "phone_verified": True,
                "blocked": True,
                "administrator": True,
            }
        ]
    )
    (user,) = store.stored.users
    assert plan_lines(plan) == ["add user anna@studio.example"]
    assert await PASSWORDS.matches(STRONG, user.password_hash or "")
    assert setup.masters.open(user.sealed_totp or b"", purpose="totp:1001") == b"JBSWY3DPEHPK3PXP"
    assert store.stored.administrators == {"1001"}
    assert replace(user, password_hash=None, sealed_totp=None) == User(
        user_id="1001",
        login="anna@studio.example",
        nick="Anna",
        reg_time=NOW,
        lang="no",
        country="NO",
        name="Anna Berg",
        username="anna.berg",
        zoneinfo="Europe/Oslo",
        tags=frozenset({"staff"}),
        purchases=frozenset({"sky raiders"}),
        email_verified=True,
        phone_verified=True,
        blocked=True,
    )


async def test_the_least_a_new_account_needs_is_a_login_and_a_nick() -> None:
    user = await the_user()
    assert (user.password_hash, user.lang, user.tags, len(user.user_id)) == (None, "en", frozenset(), 10)
    assert await problems_of(users=[{"user_id": "7"}]) == [
        "users[0]: a new user needs a login",
        "users[0]: a new user needs a nick",
    ]
    assert await problems_of(users=[{"nick": "Anna"}]) == ["users[0]: needs a user_id or a login"]


async def test_an_account_is_found_by_its_login_in_any_spelling_and_takes_the_one_given() -> None:
    setup, store = provision_setup(with_anna())
    assert plan_lines(await setup.apply(users=[{"login": "ANNA@Studio.Example"}])) == [
        "change user anna@studio.example login"
    ]
    assert [user.login for user in store.stored.users] == ["ANNA@Studio.Example"]
    assert plan_lines(await setup.apply(users=[{"login": "ANNA@Studio.Example"}])) == []


async def test_an_account_is_found_by_its_id_before_its_login() -> None:
    change = await change_of_user(with_anna(), login="new@studio.example")
    assert change is not None
    assert (change.user.user_id, change.user.login) == ("1001", "new@studio.example")


async def test_an_absent_field_keeps_null_clears_and_a_value_replaces_whole() -> None:
    state = with_anna(
        tags=frozenset({"a", "b"}), purchases=frozenset({"x"}), country="DE", lang="de", email_verified=True
    )
    change = await change_of_user(state, tags=["c"], purchases=None, country=None)
    assert change is not None
    assert change.user == replace(
        state.users[0], tags=frozenset({"c"}), purchases=frozenset(), country="", lang="de", email_verified=True
    )
    assert await change_of_user(state) is None
    assert await change_of_user(state, tags=["b", "a"], country="DE", email_verified=True) is None


async def test_a_password_that_is_the_one_already_is_no_change() -> None:
    state = with_anna(password_hash=await PASSWORDS.hash(STRONG))
    assert await change_of_user(state, password=STRONG) is None
    other = await change_of_user(state, password=f"{STRONG}2")
    assert other is not None
    assert await PASSWORDS.matches(f"{STRONG}2", other.user.password_hash or "")
    cleared = await change_of_user(state, password=None)
    assert cleared is not None
    assert cleared.user.password_hash is None


async def test_a_password_may_come_from_the_environment() -> None:
    setup, store = provision_setup()
    await setup.apply(users=[{**ANNA, "password": {"env": "PW"}}], environment={"PW": STRONG})
    assert await PASSWORDS.matches(STRONG, store.stored.users[0].password_hash or "")


async def test_a_file_may_bring_more_people_than_are_hashed_at_a_time() -> None:
    setup, store = provision_setup()
    many_users = [{"login": f"{n}@x.example", "nick": str(n), "password": f"{STRONG}{n}"} for n in range(100)]
    await setup.apply(users=many_users)
    assert len({user.password_hash for user in store.stored.users}) == 100


async def test_a_weak_password_needs_to_be_allowed_unless_it_is_there_already() -> None:
    weak = [{**ANNA, "password": "short"}]
    (problem,) = await problems_of(users=weak)
    assert problem.startswith("users[0].password: the password must have at least 10 characters; use --allow-weak")
    setup, store = provision_setup()
    await setup.apply(users=weak, allow_weak=True)
    assert await PASSWORDS.matches("short", store.stored.users[0].password_hash or "")
    assert plan_lines(await setup.apply(users=weak)) == []
    (problem,) = await problems_of(users=[{**ANNA, "password": "x" * 1_025}], allow_weak=True)
    assert problem == "users[0].password: the password is longer than 1024 bytes"


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        ("JBSWY3DPEHPK3PX1", "must be base32"),
        ("JBSWY3DP", "must have 10 to 64 bytes"),
        ("ÄBSWY3DPEHPK3PXP", "must be base32"),
    ],
)
async def test_a_totp_secret_is_base32_of_some_length(secret: str, says: str) -> None:
    (problem,) = await problems_of(users=[{**ANNA, "totp_secret": secret}])
    assert problem.startswith(f"users[0].totp_secret: {says}")


async def test_a_totp_secret_in_another_spelling_is_no_change() -> None:
    setup, store = provision_setup()
    await setup.apply(users=[{**ANNA, "totp_secret": "JBSWY3DPEHPK3PXP"}])
    assert plan_lines(await setup.apply(users=[{**ANNA, "totp_secret": "jbsw y3dp ehpk 3pxp"}])) == []
    await setup.apply(users=[{**ANNA, "totp_secret": None}])
    assert store.stored.users[0].sealed_totp is None


@pytest.mark.parametrize(
    ("fields", "ends"),
    [
        ({"blocked": True}, True),
        ({"password": STRONG}, True),
        ({"totp_secret": "JBSWY3DPEHPK3PXP"}, True),
        ({"nick": "Annie"}, False),
        ({"tags": ["x"]}, False),
    ],
)
async def test_tokens_end_when_a_credential_changes_or_the_account_is_blocked(
    fields: dict[str, object],
    ends: bool,  # noqa: FBT001
) -> None:
    change = await change_of_user(with_anna(), **fields)
    assert change is not None
    assert change.ends_tokens is ends


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"login": "anna"}, ".login: not an email address"),
        ({"login": "not-a-mail@x"}, ".login: not an email address"),
        ({"nick": "An\u202ena"}, ".nick: the nick must be"),
        ({"user_id": "007"}, ".user_id: must be 1 to 19 digits"),
        ({"user_id": "1" * 20}, ".user_id: must be 1 to 19 digits"),
        ({"lang": "english"}, ".lang: must be a language tag"),
        ({"country": "de"}, ".country: must be two capital letters"),
        ({"tags": ["email_verified"]}, ".tags: email_verified: managed automatically"),
        ({"tags": ["a,b"]}, ".tags: a tag cannot contain a comma"),
        ({"tags": [" a"]}, ".tags: each entry must be 1 to 64 visible characters"),
        ({"tags": [str(n) for n in range(101)]}, ".tags: at most 100 entries"),
        ({"purchases": ["a\nb"]}, ".purchases: each entry must be"),
    ],
)
async def test_a_value_that_no_account_may_have_is_refused(fields: dict[str, object], says: str) -> None:
    (problem,) = await problems_of(users=[{**ANNA, **fields}])
    assert problem.startswith(f"users[0]{says}")


async def test_a_login_whose_domain_has_no_dot_is_refused_to_new_people_only() -> None:
    """An installation may have such logins from before: its export is applied elsewhere, with a warning."""
    setup, store = provision_setup()
    warned = ("users[0].login: root@intranet has a domain without a dot, so it may get no email",)
    exported = [{"user_id": "7", "login": "root@intranet", "nick": "Root"}]
    assert (await setup.apply(users=exported)).warnings == warned
    assert [user.login for user in store.stored.users] == ["root@intranet"]
    for again in (exported, [{"login": "ROOT@intranet", "nick": "R"}], [{"login": "root@intranet"}]):
        plan = await setup.plan(users=again)
        assert plan.warnings == (() if again[0]["login"] == "root@intranet" else (warned[0].replace("root", "ROOT"),))
    assert await problems_of(users=[{"login": "new@intranet", "nick": "New"}]) == [
        "users[0].login: not an email address"
    ]


async def test_every_invalid_record_is_reported_and_none_is_stored() -> None:
    good = {"login": "good@studio.example", "nick": "Good"}
    assert await problems_of(users=[good, {**ANNA, "country": "x"}, {"login": "b", "nick": ""}]) == [
        "users[1].country: must be two capital letters such as DE",
        "users[2].nick: the nick must be 1 to 64 visible characters on one line",
        "users[2].login: not an email address",
    ]


async def test_two_records_about_one_account_are_refused() -> None:
    assert await problems_of(users=[ANNA, {"login": "Anna@studio.example", "nick": "B"}]) == [
        "users[1]: is the same account as users[0]"
    ]
    assert await problems_of(with_anna(), users=[{"user_id": "1001"}, ANNA]) == [
        "users[1]: is the same account as users[0]"
    ]


async def test_a_login_that_belongs_to_someone_else_is_refused() -> None:
    bob = a_user(user_id="1002", login="bob@studio.example")
    state = StoredState(users=(*with_anna().users, bob))
    assert await problems_of(state, users=[{"user_id": "1001", "login": "BOB@studio.example"}]) == [
        "users[0].login: belongs to user 1002"
    ]
    assert await problems_of(state, users=[{"user_id": "5", "login": "bob@studio.example", "nick": "B"}]) == [
        "users[0].login: belongs to user 1002"
    ]
    swap = [{"user_id": "1001", "login": "bob@studio.example"}, {"user_id": "1002", "login": "anna@studio.example"}]
    assert len(await problems_of(state, users=swap)) == 2


async def test_a_login_is_free_once_its_owner_is_pruned() -> None:
    setup, store = provision_setup(with_anna())
    plan = await setup.apply(users=[{**ANNA, "user_id": "5"}], prune=True)
    assert plan_lines(plan) == ["remove user anna@studio.example", "add user anna@studio.example"]
    assert [user.user_id for user in store.stored.users] == ["5"]


async def test_an_id_is_never_given_again() -> None:
    state = StoredState(retired_user_ids=frozenset({"1001"}))
    (problem,) = await problems_of(state, users=[{**ANNA, "user_id": "1001"}])
    assert problem.startswith("users[0].user_id: 1001 belonged to a removed account")


async def test_lg_30_user_name_of_another_account_is_refused() -> None:
    state = replace(with_anna(username="anna"), username_owners={"anna": "1001", "berg": ""})
    for users in ([{**ANNA, "username": "berg"}], [{"login": "b@x.example", "nick": "B", "username": "ANNA"}]):
        (problem,) = await problems_of(state, users=users)
        assert problem == "users[0].username: belongs to another account, or did before"
    twins = [{"login": f"{name}@x.example", "nick": name, "username": "twin"} for name in "ab"]
    assert await problems_of(users=twins) == ["users[1].username: belongs to another account, or did before"]
    change = await change_of_user(state, username="new", name="Anna Berg")
    assert change is not None
    assert (change.user.username, change.user.username_at, change.user.updated_at) == ("new", NOW, NOW)


def test_ids_the_file_names_are_reserved_before_any_is_made_up() -> None:
    entries = [
        Located("a", UserFileEntry(login="a@x.example")),
        Located("b", UserFileEntry(user_id="1", login="b@x.example")),
    ]
    made_up = iter(["1", "2", "3", "4"])
    resolved = resolve_users(
        entries, StoredState(users=(a_user(user_id="2"),)), Problems(), new_id=lambda: next(made_up)
    )
    assert [user.user_id for user in resolved] == ["3", "1"]


async def test_service_accounts_are_neither_changed_nor_pruned_nor_exported_here() -> None:
    state = StoredState(users=(a_user(user_id="9", login=None, kind=AccountKind.SERVICE),))
    assert await problems_of(state, users=[{"user_id": "9"}]) == ["users[0].user_id: 9 is a service account"]
    setup, _ = provision_setup(state)
    assert plan_lines(await setup.plan(users=[], prune=True)) == []
    assert (await setup.export())["users"] == []


async def test_only_accounts_named_in_the_file_are_read_unless_pruning() -> None:
    setup, store = provision_setup()
    await setup.plan(
        users=[{"login": "Anna@X.example", "nick": "A"}, {"user_id": "7", "login": "b@x.example", "nick": "B"}]
    )
    await setup.plan(users=[], prune=True)
    assert store.scopes == [
        ReadScope(user_ids=frozenset({"7"}), login_keys=frozenset({"anna@x.example", "b@x.example"})),
        ReadScope(all_users=True),
    ]


def admins(*ids: str, blocked: frozenset[str] = frozenset(), reg_time: int = NOW) -> StoredState:
    users = [a_user(user_id=id_, blocked=id_ in blocked, reg_time=reg_time - int(id_)) for id_ in ids]
    return StoredState(users=tuple(users), administrators=frozenset(ids))


async def test_the_role_is_given_kept_and_taken() -> None:
    change = await change_of_user(with_anna(), administrator=True)
    assert change is not None
    assert change.administrator is True
    state = replace(
        admins("7"), users=(*admins("7").users, *with_anna().users), administrators=frozenset({"7", "1001"})
    )
    assert await change_of_user(state, administrator=True) is None
    assert await change_of_user(state, nick="Anna") is None
    taken = await change_of_user(state, administrator=None)
    assert taken is not None
    assert taken.administrator is False


@pytest.mark.parametrize("fields", [{"administrator": False}, {"administrator": None}, {"blocked": True}])
async def test_the_last_administrator_stays_one(fields: dict[str, object]) -> None:
    says = "users[0]: is the last administrator and must stay one, unblocked"
    assert await problems_of(admins("1"), users=[{"user_id": "1", **fields}]) == [says]
    # A second administrator who is blocked does not count.
    assert await problems_of(admins("1", "2", blocked=frozenset("2")), users=[{"user_id": "1", **fields}]) == [says]


async def test_the_role_may_be_handed_over_in_one_file() -> None:
    setup, store = provision_setup(admins("1"))
    await setup.apply(
        users=[{"user_id": "1", "administrator": False}, {**ANNA, "user_id": "2", "administrator": True}]
    )
    assert store.stored.administrators == {"2"}


async def test_two_who_give_it_up_together_are_refused() -> None:
    both = [{"user_id": "1", "blocked": True}, {"user_id": "2", "administrator": False}]
    assert len(await problems_of(admins("1", "2"), users=both)) == 2


async def test_pruning_removes_everyone_the_file_does_not_name() -> None:
    setup, store = provision_setup(StoredState(users=(a_user(user_id="1", login="a@x.example"), a_user(user_id="2"))))
    plan = await setup.apply(users=[{"user_id": "2"}], prune=True)
    assert plan_lines(plan) == ["remove user a@x.example"]
    assert isinstance(plan.changes[0].write, RemoveUser)
    assert store.stored.retired_user_ids == {"1"}


async def test_pruning_touches_named_sections_only() -> None:
    setup, _ = provision_setup(with_anna())
    assert plan_lines(await setup.plan(clients=[], prune=True)) == []


async def test_pruning_spares_the_one_who_has_administered_longest_and_says_so() -> None:
    setup, store = provision_setup(
        admins("1", "2", "3", blocked=frozenset("3"))
    )  # the third came first, and is blocked
    plan = await setup.apply(users=[ANNA], prune=True)
    assert store.stored.administrators == {"2"}
    assert plan.spared == (f"user {store.stored.users[0].login} is kept as the last administrator",)
    assert plan_lines(await setup.apply(users=[ANNA], prune=True)) == []


async def test_pruning_removes_an_administrator_when_another_one_is_left() -> None:
    setup, store = provision_setup(admins("1", "2"))
    plan = await setup.apply(users=[{"user_id": "1"}], prune=True)
    assert (store.stored.administrators, plan.spared) == ({"1"}, ())


async def test_a_plan_shows_no_secret() -> None:
    setup, _ = provision_setup()
    plan = await setup.plan(users=[{**ANNA, "password": STRONG, "totp_secret": "JBSWY3DPEHPK3PXP"}])
    assert STRONG not in repr(plan)
    assert "JBSWY3DP" not in repr(plan)
    assert isinstance(plan.changes[0].write, AddUser)
