"""Attacks on registration, confirmation and recovery (checklist section 4)."""

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import httpx2
import pyotp
import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.accounts.users import update_user
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages, token_in_link
from tests.support.service import RunningService, running_service

ANNA = "anna@studio.example"
BOB = "bob@studio.example"
NO_ONE = "none@studio.example"
NEW = "a quite different phrase"
OURS = AuditOrigin(actor="test")
HALF_AN_HOUR = 1_800
ALWAYS_NEW = ("x-request-id", "date")
RATES = {"GATEHOUSE__RATES__ENABLED": "false"}  # these tests flood the mail queue, not the rate limit


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path, environment=RATES) as running:
        yield running


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await create(service, ANNA)


async def create(service: RunningService, login: str) -> User:
    administration = service.services.accounts.administration
    return await administration.create(login=login, nick="Someone", password=PASSWORD, origin=OURS)


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def ask(browser_client: HttpBrowser, path: str, login: str) -> httpx2.Response:
    """Register, request a reset or a new message, each from a freshly loaded page."""
    await browser_client.get("/register")
    new = {"nick": "Someone", "password": NEW} if path == "/register" else {}
    return await browser_client.post(path, login=login, **new)


async def reset_link(service: RunningService, browser_client: HttpBrowser, login: str = ANNA) -> str:
    await ask(browser_client, "/forgot", login)
    return await link_in_new_message(service)


async def choose(browser_client: HttpBrowser, link: str, password: str = NEW, **more: str) -> httpx2.Response:
    await browser_client.get("/forgot")
    return await browser_client.post("/reset", token=token_in_link(link), password=password, **more)


def comparable_response(response: httpx2.Response) -> tuple[object, ...]:
    """Everything an attacker can compare, without their input and what differs on every load."""
    text = re.sub(r"\b\w+@studio\.example", "", response.text)
    text = re.sub(r'name="csrf" value="\w+"', "", text)
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in ALWAYS_NEW]
    return response.status_code, text, headers


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("path", ["/register", "/forgot", "/verify-email/again"])
async def test_lg_05_known_and_unknown_addresses_get_one_answer(browser_client: HttpBrowser, path: str) -> None:
    response, unknown = await ask(browser_client, path, ANNA), await ask(browser_client, path, NO_ONE)
    assert comparable_response(response) == comparable_response(unknown)
    assert response.status_code == 200


async def test_lg_05_a_first_visit_gets_the_same_cookies_for_known_and_unknown(
    service: RunningService, anna: User
) -> None:
    seen = []
    for login in (anna.login or "", NO_ONE):
        someone = HttpBrowser(service)
        await ask(someone, "/forgot", login)
        seen.append(sorted(someone.cookies))
        await someone.client.aclose()
    assert seen == [["gh_browser"], ["gh_browser"]]


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("login", [ANNA, NO_ONE])
async def test_lg_05_registering_hashes_one_password_for_known_and_unknown(
    service: RunningService, browser_client: HttpBrowser, login: str
) -> None:
    await ask(browser_client, "/register", NO_ONE.replace("none", "warm"))  # the decoy hash is computed once
    worked = count_hash_jobs(service)
    await ask(browser_client, "/register", login)
    assert len(list(worked)) == 1


def count_hash_jobs(service: RunningService) -> Iterator[object]:
    """The number of hash computations inside the block."""
    passwords, done = service.services.accounts.passwords, []
    run = passwords._run

    async def run_and_count(work: object) -> object:
        done.append(work)
        return await run(work)  # type: ignore[arg-type]

    passwords._run = run_and_count  # type: ignore[method-assign, assignment]
    return iter(done)


async def test_lg_15_a_reset_link_works_once(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    link = await reset_link(service, browser_client)
    assert (await choose(browser_client, link)).status_code == 303
    assert (await choose(browser_client, link, "yet another phrase")).status_code == 403
    assert (await browser_client.sign_in(ANNA, NEW)).status_code == 303
    assert (await read_user(service, anna)).version == 2


async def test_lg_15_of_many_at_once_one_uses_it(service: RunningService, anna: User) -> None:
    people_at_once = [HttpBrowser(service) for _ in range(6)]
    link = await reset_link(service, people_at_once[0])
    responses = await asyncio.gather(
        *(choose(person_browser, link, f"{NEW} {number}") for number, person_browser in enumerate(people_at_once))
    )
    assert sorted(response.status_code for response in responses) == [303, 403, 403, 403, 403, 403]
    assert (await read_user(service, anna)).version == 2
    for person_browser in people_at_once:
        await person_browser.client.aclose()


@pytest.mark.usefixtures("anna")
async def test_lg_15_of_two_links_only_the_newer_works_and_using_it_ends_both(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    older, newer = await reset_link(service, browser_client), await reset_link(service, browser_client)
    assert (await choose(browser_client, older)).status_code == 403
    assert (await choose(browser_client, newer)).status_code == 303
    assert (await choose(browser_client, older)).status_code == 403


async def test_lg_15_a_link_is_good_for_its_own_user_only(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    bob = await create(service, BOB)
    link = await reset_link(service, browser_client, BOB)
    for field in ({"login": ANNA}, {"user_id": anna.user_id}, {"email_verified": "true"}):
        assert (await choose(browser_client, link, **field)).status_code == 400
    assert (await choose(browser_client, link)).status_code == 303
    assert await read_user(service, anna) == anna
    assert (await read_user(service, bob)).password_hash != bob.password_hash


@pytest.mark.usefixtures("anna")
async def test_lg_15_it_is_dead_after_half_an_hour(service: RunningService, browser_client: HttpBrowser) -> None:
    link = await reset_link(service, browser_client)
    await service.clock.advance(HALF_AN_HOUR)
    assert (await choose(browser_client, link)).status_code == 403


async def test_lg_15_it_is_dead_after_a_change_of_address(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    link = await reset_link(service, browser_client)
    moved = replace(anna, login="anna@elsewhere.example")
    await service.services.storage.runner.write(partial(update_user, moved))
    assert (await choose(browser_client, link)).status_code == 403
    assert (await read_user(service, anna)).password_hash == anna.password_hash


async def test_lg_15_a_second_factor_is_still_asked_for(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    totp = service.services.factors.totp
    enrolment = await totp.begin_enrollment(anna)
    app = pyotp.TOTP(enrolment.secret)
    await totp.confirm_enrollment(anna, app.generate_otp(service.clock.now() // 30), origin=OURS)
    await new_messages(service)
    assert (await choose(browser_client, await reset_link(service, browser_client))).status_code == 303
    assert "gh_session" not in browser_client.cookies
    response = await browser_client.sign_in(ANNA, NEW)
    assert response.headers["location"].startswith("/sign-in/factor")
    assert "gh_session" not in browser_client.cookies


async def test_lg_15_every_session_and_token_ends_with_the_old_password(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    signed_in = HttpBrowser(service)
    await signed_in.sign_in(ANNA)
    assert (await signed_in.get("/")).status_code == 303
    await choose(browser_client, await reset_link(service, browser_client))
    assert (await signed_in.get("/")).status_code == 200
    assert (await read_user(service, anna)).rev > anna.rev  # which ends older user JWTs (R2)
    await signed_in.client.aclose()


@pytest.mark.parametrize("login", [ANNA, NO_ONE])
@pytest.mark.usefixtures("anna")
async def test_lg_16_a_flood_sends_five_letters_and_every_answer_is_the_same(
    service: RunningService, browser_client: HttpBrowser, login: str
) -> None:
    spellings = (login, login.upper(), f" {login} ", login.capitalize())
    answers = [await ask(browser_client, "/forgot", spellings[n % 4]) for n in range(12)]
    assert len({comparable_response(answer)[0] for answer in answers}) == 1
    assert comparable_response(answers[0]) == comparable_response(answers[8])
    messages = await new_messages(service)
    assert len(messages) == (5 if login == ANNA else 0)
    await service.clock.advance(HALF_AN_HOUR)
    await ask(browser_client, "/forgot", login)
    assert len(await new_messages(service)) == (1 if login == ANNA else 0)


@pytest.mark.usefixtures("anna")
async def test_lg_16_the_last_letter_of_a_flood_still_works(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    links = [await reset_link(service, browser_client) for _ in range(5)]
    await ask(browser_client, "/forgot", ANNA)
    assert (await choose(browser_client, links[-1])).status_code == 303


@pytest.mark.usefixtures("anna")
async def test_lg_16_every_door_to_a_mailbox_shares_one_count(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    for _ in range(4):
        for path in ("/forgot", "/register", "/verify-email/again"):
            assert (await ask(browser_client, path, ANNA)).status_code == 200
    assert [message.to for message in await new_messages(service)] == [ANNA] * 5


TAIL = "-and-then-some-more-to-get-past-the-place-where-other-hashes-stop-read"
LG_17 = {
    "byte 73": (f"{TAIL:x<72}a", f"{TAIL:x<72}b"),
    "64 characters": ("kV8!xq0Z" * 8, "kV8!xq0Z" * 7 + "kV8!xq0z"),
    "1,024 characters": ("kV8!xq0Z" * 128, "kV8!xq0Z" * 127 + "kV8!xq0z"),
    "leading space": (f" {NEW}", NEW),
    "trailing space": (f"{NEW} ", NEW),
    "emoji": ("🦊🐙🦀🐢🦉🐝🐌🦋🐞🦗", "🦊🐙🦀🐢🦉🐝🐌🦋🐞🦂"),
}


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize(("password", "other"), LG_17.values(), ids=LG_17.keys())
async def test_lg_17_passwords_count_to_their_last_byte_and_are_kept_as_typed(
    service: RunningService, browser_client: HttpBrowser, password: str, other: str
) -> None:
    assert (await choose(browser_client, await reset_link(service, browser_client), password)).status_code == 303
    assert (await browser_client.sign_in(ANNA, other)).status_code == 403
    assert (await browser_client.sign_in(ANNA, password)).status_code == 303


async def test_lg_17_a_nul_ends_no_password(service: RunningService, browser_client: HttpBrowser, anna: User) -> None:
    link = await reset_link(service, browser_client)
    assert (
        await choose(browser_client, link, "abcdefghijk\0x and more")
    ).status_code == 400  # refused centrally (S-19)
    assert await read_user(service, anna) == anna
    password_hash = await service.services.accounts.passwords.hash("abc\0x")
    assert await service.services.accounts.passwords.matches("abc\0x", password_hash)
    assert not await service.services.accounts.passwords.matches("abc\0y", password_hash)


@pytest.mark.parametrize(("size", "status"), [(1_025, 400), (100_000, 400), (2**20, 413)])
@pytest.mark.usefixtures("anna")
async def test_lg_17_an_oversized_password_is_refused_unhashed(
    service: RunningService, browser_client: HttpBrowser, size: int, status: int
) -> None:
    link = await reset_link(service, browser_client)
    worked = count_hash_jobs(service)
    await browser_client.get("/forgot")
    response = await browser_client.post("/reset", token=token_in_link(link), password="x" * size)
    assert response.status_code == status
    assert list(worked) == []


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize(("at_set", "at_check"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
async def test_lg_18_both_spellings_of_a_password_are_one(
    service: RunningService, browser_client: HttpBrowser, at_set: str, at_check: str
) -> None:
    password = "fünf grüne Elefanten"
    chosen, typed = (unicodedata.normalize(form, password) for form in (at_set, at_check))  # type: ignore[arg-type]
    assert (await choose(browser_client, await reset_link(service, browser_client), chosen)).status_code == 303
    assert (await browser_client.sign_in(ANNA, typed)).status_code == 303


@pytest.mark.parametrize("spelling", [ANNA, "ANNA@studio.example", "Anna@STUDIO.EXAMPLE", f" {ANNA} "])
async def test_lg_19_no_one_registers_a_spelling_of_someone_elses_address(
    service: RunningService, browser_client: HttpBrowser, anna: User, spelling: str
) -> None:
    await ask(browser_client, "/register", spelling)
    assert [user.user_id for user in await service.services.storage.accounts.all_users()] == [anna.user_id]
    assert await read_user(service, anna) == anna
    assert (await browser_client.sign_in(ANNA, NEW)).status_code == 403


@pytest.mark.parametrize(
    "spelling", [f"{ANNA}.", "anna@@studio.example", "anna @studio.example", f"{ANNA}\0", "anna@"]
)
async def test_lg_19_what_only_looks_like_the_address_is_no_address(
    service: RunningService, browser_client: HttpBrowser, anna: User, spelling: str
) -> None:
    for path in ("/register", "/forgot", "/verify-email/again"):
        assert (await ask(browser_client, path, spelling)).status_code == 400
    assert [user.user_id for user in await service.services.storage.accounts.all_users()] == [anna.user_id]
    assert await new_messages(service) == []


@pytest.mark.parametrize("field", ["email_verified", "tags", "user_id", "administrator", "level"])
async def test_lg_19_no_body_says_that_an_address_is_verified(
    service: RunningService, browser_client: HttpBrowser, field: str
) -> None:
    await browser_client.get("/register")
    form = {"login": BOB, "nick": "Bob", "password": NEW, field: "true"}
    assert (await browser_client.post("/register", **form)).status_code == 400
    assert await service.services.storage.accounts.user_by_login(BOB) is None


async def test_lg_19_the_flag_is_false_until_the_mailed_proof(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await ask(browser_client, "/register", BOB)
    link = await link_in_new_message(service)
    await browser_client.sign_in(BOB, NEW)
    user = await service.services.storage.accounts.user_by_login(BOB)
    assert user is not None
    assert not user.email_verified
    assert "email_verified" not in user.tag_text
    await browser_client.get(link)
    await browser_client.post("/verify-email")
    assert (await read_user(service, user)).email_verified
