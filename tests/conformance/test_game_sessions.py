"""Contract tests of GameSessionStore in gamesessions/store.py."""

import asyncio

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.session_model import LoginTokenRecord
from gatehouse.audit.model import Refusal
from gatehouse.gamesessions.model import CloseStatus, GameSession, GameSessionState, PollId, PollMark, SignInStage
from gatehouse.storage.database import Storage
from tests.conformance.test_game_presence import wait_until_listening
from tests.support.builders import NOW, ORIGIN, RECORDER, a_confirmation, a_game_session, a_record, a_user
from tests.support.echo import wait_until

KEPT = 1_000


def a_login(user: User, token: bytes = b"token") -> LoginTokenRecord:
    return LoginTokenRecord(
        user_id=user.user_id,
        rev=user.rev,
        application_id=0,
        token=token,
        token_ends_at=NOW + 3_600,
        stoken=None,
        stoken_ends_at=0,
        auth=SignInMethod.LOGIN,
        address="192.0.2.7",
        now=NOW,
    )


def a_refusal() -> Refusal:
    return RECORDER.refusal("game_session.ended", ORIGIN, reason="why", subject="g1")


def a_mark(number: int = 1, at: int = NOW, gsid: str = "g1") -> PollMark:
    return PollMark(gsid=gsid, number=number, polled_at=at, ends_at=at + 120)


def a_turn(number: int = 1, node: str = "here") -> PollId:
    return PollId(number=number, node=node)


@pytest.fixture
async def anna(storage: Storage) -> User:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await storage.game_sessions.register_session(a_game_session())
    return user


async def confirm_session(storage: Storage, user: User, gsid: str = "g1") -> bool:
    entry = a_record(subject=user.user_id)
    return await storage.game_sessions.confirm_session(a_confirmation(gsid, user), NOW, entry)


async def find_session(storage: Storage, gsid: str = "g1", now: int = NOW) -> GameSession:
    session = await storage.game_sessions.find_session(gsid, now)
    assert session is not None
    return session


@pytest.mark.usefixtures("anna")
async def test_a_session_is_found_as_it_was_registered_while_it_lasts(storage: Storage) -> None:
    assert await find_session(storage, now=NOW + 119) == a_game_session()
    assert await storage.game_sessions.find_session("g1", NOW + 120) is None
    assert await storage.game_sessions.find_session("g2", NOW) is None


@pytest.mark.usefixtures("anna")
async def test_marks_only_move_on_and_number_polls_of_the_holder_alone(storage: Storage) -> None:
    await storage.game_sessions.record_polls([a_mark(3, NOW + 50)], "here")
    await storage.game_sessions.record_polls([a_mark(2, NOW + 10)], "here")
    await storage.game_sessions.record_polls([a_mark(9, NOW + 60)], "there")
    session = await find_session(storage)
    assert (session.polls, session.holder, session.polled_at, session.ends_at) == (3, "here", NOW + 60, NOW + 180)


@pytest.mark.usefixtures("anna")
async def test_a_claim_is_numbered_after_all_that_is_known_and_told_when_asked(storage: Storage) -> None:
    store, received = storage.game_sessions, list[str]()
    numbers = [
        await store.claim_session(a_mark(4), "there", tell=False),
        await store.claim_session(a_mark(2, NOW + 50), "here", tell=False),
        await store.claim_session(a_mark(2), "there", tell=False),
    ]
    session = await find_session(storage)
    assert numbers == [4, 5, 6]
    assert (session.polls, session.holder, session.polled_at, session.ends_at) == (6, "there", NOW + 50, NOW + 170)
    end = store.listen_for_changes(received.append)
    await wait_until_listening(storage, received)
    assert await store.claim_session(a_mark(1, gsid="gone"), "here", tell=True) == 1
    await wait_until(lambda: "gone" in received)
    end()


async def test_marks_of_many_sessions_in_any_order_do_not_block_each_other(storage: Storage) -> None:
    names = [f"g{n}" for n in range(20)]
    for name in names:
        await storage.game_sessions.register_session(a_game_session(name))
    there = [a_mark(1, gsid=name) for name in names]
    await asyncio.gather(
        *(
            storage.game_sessions.record_polls(order, "here")
            for order in (there, there[::-1], there[10:] + there[:10])
        )
    )
    assert {(await find_session(storage, name)).polls for name in names} == {1}


@pytest.mark.usefixtures("anna")
async def test_the_stages_are_told_once_each(storage: Storage) -> None:
    received: list[str] = []
    end = storage.game_sessions.listen_for_changes(received.append)
    await wait_until_listening(storage, received)
    await storage.game_sessions.register_session(a_game_session("last"))
    stages = [(await find_session(storage)).stage]
    for signing_in in (False, False, True, True):
        await storage.game_sessions.record_progress("g1", NOW, signing_in=signing_in)
        stages.append((await find_session(storage)).stage)
    assert stages == [
        SignInStage.WAITING,
        SignInStage.OPENED,
        SignInStage.OPENED,
        SignInStage.SIGNING_IN,
        SignInStage.SIGNING_IN,
    ]
    await storage.game_sessions.record_progress("last", NOW, signing_in=False)
    await wait_until(lambda: "last" in received)  # PostgreSQL notifies with a delay, and in order
    end()
    assert 0 < received.count("g1") <= 2  # those that wait to be sent are sent once


async def test_only_the_first_confirmation_of_a_game_session_succeeds(storage: Storage, anna: User) -> None:
    outcomes = await asyncio.gather(*(confirm_session(storage, anna) for _ in range(5)))
    assert sorted(outcomes) == [False] * 4 + [True]
    session = await find_session(storage)
    assert (session.state, session.user_id, session.confirmed_at) == (GameSessionState.CONFIRMED, anna.user_id, NOW)


async def test_confirmation_fails_after_the_account_was_revoked(storage: Storage, anna: User) -> None:
    assert not await confirm_session(storage, replace(anna, rev=anna.rev + 1))
    assert (await find_session(storage)).state is GameSessionState.PENDING


async def test_a_confirmed_session_is_taken_once_with_its_tokens_and_record(storage: Storage, anna: User) -> None:
    assert not await storage.game_sessions.take_answer("g1", a_turn(1), NOW, a_login(anna), a_record())
    await confirm_session(storage, anna)
    takes = [
        storage.game_sessions.take_answer(
            "g1", a_turn(1), NOW, a_login(anna, bytes([n])), a_record(subject=f"take {n}")
        )
        for n in range(5)
    ]
    outcomes = await asyncio.gather(*takes)
    assert sorted(outcomes) == [False] * 4 + [True]
    winner = outcomes.index(True)
    live = [await storage.logins.live_login_token(bytes([n]), NOW) is not None for n in range(5)]
    assert live == [n == winner for n in range(5)]
    assert (await find_session(storage)).state is GameSessionState.DELIVERED


async def test_an_older_poll_than_the_newest_known_takes_nothing_nor_any_of_a_node_that_is_not_the_holder(
    storage: Storage, anna: User
) -> None:
    store = storage.game_sessions
    await confirm_session(storage, anna)
    assert await store.claim_session(a_mark(7), "there", tell=False) == 7
    await store.record_polls([a_mark(9)], "here")  # numbered before the claim and stored after it
    for older in (a_turn(6, "there"), a_turn(7), a_turn(9)):
        assert not await store.take_answer("g1", older, NOW, a_login(anna), a_record())
    assert await store.take_answer("g1", a_turn(7, "there"), NOW, a_login(anna), a_record())


async def test_a_block_between_confirmation_and_taking_leaves_nothing_to_take(storage: Storage, anna: User) -> None:
    await confirm_session(storage, anna)
    await storage.accounts.set_blocked(anna.user_id, a_record(), blocked=True, now=NOW)
    assert not await storage.game_sessions.take_answer("g1", a_turn(1), NOW, a_login(anna), a_record())
    assert (await find_session(storage)).state is GameSessionState.CONFIRMED


async def test_failed_game_session_keeps_its_first_failure_record(storage: Storage, anna: User) -> None:
    first, second = a_refusal(), a_refusal()
    assert await storage.game_sessions.fail_session("g1", NOW, first, KEPT)
    assert not await storage.game_sessions.fail_session("g1", NOW, second, KEPT)
    assert not await confirm_session(storage, anna)
    session = await find_session(storage)
    assert (session.state, session.failure, session.stage) == (
        GameSessionState.FAILED,
        first.record_id,
        SignInStage.CANCELLED,
    )
    assert await storage.audit.find_record(first.record_id) == first
    assert await storage.audit.find_record(second.record_id) is None


async def test_closing_before_the_delivery_ends_it_and_after_it_only_notes_the_word(
    storage: Storage, anna: User
) -> None:
    store = storage.game_sessions
    await store.register_session(a_game_session("g2"))
    early, late = a_refusal(), a_refusal()
    assert await store.close_session("g2", NOW, CloseStatus.ERROR, early, KEPT)
    assert (await find_session(storage, "g2")).failure == early.record_id
    await confirm_session(storage, anna)
    assert await store.take_answer("g1", a_turn(1), NOW, a_login(anna), a_record())
    for closing in (CloseStatus.ERROR, CloseStatus.SUCCESS):
        assert await store.close_session("g1", NOW + 5, closing, late, KEPT)
    session = await find_session(storage)
    assert (session.state, session.closed, session.closed_at) == (GameSessionState.DELIVERED, "Success", NOW + 5)
    assert await storage.audit.find_record(late.record_id) is None
    assert not await store.close_session("g3", NOW, CloseStatus.ERROR, late, KEPT)


async def test_waiting_sessions_are_counted_and_ended_ones_swept(storage: Storage, anna: User) -> None:
    store = storage.game_sessions
    for n in range(2, 5):
        await store.register_session(a_game_session(f"g{n}", ends_at=NOW + n))
    await store.fail_session("g4", NOW, a_refusal(), KEPT)
    assert await store.count_pending(NOW, 9) == 3
    assert await store.count_pending(NOW, 2) == 2
    assert await store.count_pending(NOW + 2, 9) == 2
    await storage.sweep(NOW + 60)
    assert await store.find_session("g2", 0) is None
    assert await store.find_session("g1", 0) is not None
    assert anna
