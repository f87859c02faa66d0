"""For any file and any stored state: after applying it, nothing is left to do."""

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.oauth.model import (
    CLIENT_FIELDS,
    SCOPES,
    ClaimContent,
    ClaimSource,
    Client,
    ClientProfile,
    TokenSettings,
)
from gatehouse.provision.model import Change, Problems, StoredState
from gatehouse.provision.sections import clients, users
from gatehouse.provision.sections.clients import ClientFileEntry
from gatehouse.provision.sections.section import Located
from gatehouse.provision.sections.user_plan import UserFileEntry, active_administrators, plan_users
from tests.support.builders import NOW
from tests.unit.provision.provision_setup import state_after_file

IDS = [str(number) for number in range(1, 4)]  # few, so that records collide
LOGINS = [f"{name}@x.example" for name in "abc"]
WORDS = st.frozensets(st.sampled_from(["red", "green", "blue"]))
ABSENT = st.just(UNSET)
FLAG = st.sampled_from([UNSET, None, True, False])


@st.composite
def states(draw: st.DrawFn) -> StoredState:
    ids = draw(st.lists(st.sampled_from(IDS), unique=True))
    logins = draw(st.permutations(LOGINS))
    accounts = [
        User(
            user_id=user_id,
            login=login,
            nick="N",
            reg_time=draw(st.integers(0, 3)),
            tags=draw(WORDS),
            blocked=draw(st.booleans()),
            password_hash=draw(st.none() | st.just("hash")),
        )
        for user_id, login in zip(ids, logins, strict=False)
    ]
    holders = draw(st.frozensets(st.sampled_from(ids))) if ids else frozenset()
    return StoredState(users=tuple(accounts), administrators=holders, clients=draw(stored_clients()))


@st.composite
def user_entries(draw: st.DrawFn) -> list[Located[UserFileEntry]]:
    records = draw(st.lists(st.builds(
        UserFileEntry,
        user_id=ABSENT | st.sampled_from(IDS),
        login=ABSENT | st.sampled_from([*LOGINS, *map(str.upper, LOGINS)]),
        nick=ABSENT | st.sampled_from(["N", "M"]),
        tags=ABSENT | st.none() | WORDS,
        country=st.sampled_from([UNSET, None, "", "DE"]),
        blocked=FLAG,
        email_verified=FLAG,
        administrator=FLAG,
    ), max_size=4))  # fmt: skip
    return [Located(f"users[{number}]", record) for number, record in enumerate(records)]


HASH = st.sampled_from([UNSET, None, "hash", "other"])


def user_changes(
    entries: list[Located[UserFileEntry]], hashes: list[object], state: StoredState, *, prune: bool
) -> tuple[Change, ...]:
    """The changes; these tests skip files with problems."""
    problems = Problems()
    resolved = users.resolve_users(entries, state, problems)
    assume(not problems.lines)
    wanted = [replace(user, password_hash=hashed) for user, hashed in zip(resolved, hashes, strict=False)]  # type: ignore[arg-type]
    draft = plan_users(wanted, state, now=NOW, prune=prune)
    assume(not draft.problems)
    return draft.changes


@given(states(), user_entries(), st.lists(HASH, min_size=4, max_size=4), st.booleans())
def test_users_are_settled_after_one_application(
    state: StoredState,
    entries: list[Located[UserFileEntry]],
    hashes: list[object],
    prune: bool,  # noqa: FBT001
) -> None:
    changes = user_changes(entries, hashes, state, prune=prune)
    done = state_after_file(state, [change.write for change in changes])
    # An entry that matched its account by a login which it keeps matches it again; one with an id always does.
    problems = Problems()
    resolved = users.resolve_users(entries, done, problems)
    assert problems.lines == []
    wanted = [replace(user, password_hash=hashed) for user, hashed in zip(resolved, hashes, strict=False)]  # type: ignore[arg-type]
    again = plan_users(wanted, done, now=NOW, prune=prune)
    assert (again.changes, again.problems) == ((), ())


@given(states(), st.data(), st.booleans())
def test_someone_can_always_administer_who_could_before(
    state: StoredState,
    data: st.DataObject,
    prune: bool,  # noqa: FBT001
) -> None:
    entries = [
        Located(
            user.user_id, UserFileEntry(user_id=user.user_id, blocked=data.draw(FLAG), administrator=data.draw(FLAG))
        )
        for user in state.users
        if data.draw(st.booleans())
    ]
    changes = user_changes(entries, [UNSET] * len(entries), state, prune=prune)
    done = state_after_file(state, [change.write for change in changes])
    assert active_administrators(done) or not active_administrators(state)


@given(states(), user_entries())
def test_accounts_the_file_does_not_name_are_left_alone(
    state: StoredState, entries: list[Located[UserFileEntry]]
) -> None:
    changes = user_changes(entries, [UNSET] * 4, state, prune=False)
    done = {user.user_id: user for user in state_after_file(state, [change.write for change in changes]).users}
    touched = {change.subject for change in changes}
    assert [user for user in state.users if user.user_id not in touched and done[user.user_id] != user] == []
    assert all(done[user.user_id].reg_time == user.reg_time for user in state.users)


CLAIMS = st.sampled_from([{}, {"groups": ClaimSource(application_id=1, told=ClaimContent.GROUPS)}])
TEXTS = st.sampled_from([("https://a.example/cb",), ("https://b.example/cb", "https://a.example/cb")])


def stored_clients() -> st.SearchStrategy[tuple[Client, ...]]:
    one = st.builds(
        Client,
        client_id=st.sampled_from("abc"),
        name=st.just("N"),
        profile=st.sampled_from(ClientProfile),
        redirect_uris=TEXTS,
        first_party=st.booleans(),
        created_at=st.just(0),
        version=st.just(1),
        secrets=st.just(()),
        origins=st.just(()),
        backchannel_logout_uri=st.sampled_from(["", "https://a.example/out"]),
        client_uri=st.sampled_from(["", "https://a.example/"]),
        policy_uri=st.just(""),
        tos_uri=st.just(""),
        jwks=st.just({}),
        claims=CLAIMS,
        token_settings=st.sampled_from([TokenSettings(), TokenSettings(access_seconds=600)]),
        device_grant=st.just(False),
        game_id_token=st.just(False),
        removed=st.just(False),
        public=st.just(False),
    )
    return st.lists(one, unique_by=lambda client: client.client_id, max_size=3).map(tuple)


@st.composite
def client_entries(draw: st.DrawFn) -> list[Located[ClientFileEntry]]:
    records = draw(st.lists(st.builds(
        ClientFileEntry,
        client_id=st.sampled_from("abcd"),
        client_secret=ABSENT,
        name=st.sampled_from(["N", "M"]),
        profile=st.sampled_from([UNSET, None, *ClientProfile]),
        application_id=st.sampled_from([UNSET, None, 1, 50_001]),
        redirect_hosts=ABSENT | st.none(),
        redirect_uris=TEXTS,
        post_logout_uris=ABSENT | st.none() | TEXTS,
        scopes=st.sampled_from([UNSET, None, ("openid",), SCOPES]),
        origins=st.sampled_from([UNSET, None, ("https://a.example",)]),
        backchannel_logout_uri=st.sampled_from([UNSET, None, "", "https://a.example/out"]),
        client_uri=st.sampled_from([UNSET, None, "", "https://a.example/"]),
        policy_uri=ABSENT | st.none(),
        tos_uri=ABSENT | st.none(),
        jwks=ABSENT | st.none(),
        claims=CLAIMS | st.sampled_from([UNSET, None]),
        token_settings=st.sampled_from([UNSET, None, TokenSettings(), TokenSettings(access_seconds=600)]),
        device_grant=st.sampled_from([UNSET, None, False]),
        game_id_token=st.sampled_from([UNSET, None, False]),
        explain_errors=FLAG,
        first_party=FLAG,
        may_exchange=FLAG,
        require_pkce=FLAG,
        public=st.sampled_from([UNSET, None, False]),
    ), unique_by=lambda entry: entry.client_id, max_size=4))  # fmt: skip
    return [Located(f"clients[{number}]", record) for number, record in enumerate(records)]


def client_changes(entries: list[Located[ClientFileEntry]], state: StoredState, *, prune: bool) -> tuple[Change, ...]:
    problems = Problems()
    resolved = clients.resolve_clients(entries, state, NOW, problems)
    assume(not problems.lines)
    return clients.plan_clients([one.with_secrets(()) for one in resolved], state, prune=prune)


@given(states(), client_entries(), st.booleans())
def test_clients_are_settled_after_one_application(
    state: StoredState,
    entries: list[Located[ClientFileEntry]],
    prune: bool,  # noqa: FBT001
) -> None:
    changes = client_changes(entries, state, prune=prune)
    done = state_after_file(state, [change.write for change in changes])
    assert client_changes(entries, done, prune=prune) == ()
    if prune:
        assert {client.client_id for client in done.clients} == {placed.entry.client_id for placed in entries}


@given(states(), client_entries())
def test_a_field_that_no_record_names_stays_as_it_is(
    state: StoredState, entries: list[Located[ClientFileEntry]]
) -> None:
    before = {client.client_id: client for client in state.clients}
    done = state_after_file(state, [change.write for change in client_changes(entries, state, prune=False)])
    named = {placed.entry.client_id: msgspec.structs.asdict(placed.entry) for placed in entries}
    for client in done.clients:
        if client.client_id in before:
            given_fields = {name for name, value in named.get(client.client_id, {}).items() if value is not UNSET}
            unchanged = {
                field.name: getattr(before[client.client_id], field.name)
                for field in CLIENT_FIELDS
                if field.name not in given_fields
            }
            assert replace(client, **unchanged) == client
