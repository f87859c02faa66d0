"""The response to a commit about players is lost (faults R-90): what was used is used, and nothing is done twice.

These writes are not repeated by the service: the caller gets 503 and starts again.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from gatehouse.accounts.importing.importer import ImportJob, ImportTotals
from gatehouse.accounts.importing.model import FileRow, ImportEntry, ImportFormat
from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.errors import Unavailable
from gatehouse.kernel.times import DAY
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved
from tests.faults.run_record import sample
from tests.support.browser import LOGIN, PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.game import Game
from tests.support.guests import (
    GUEST,
    NEW,
    Device,
    ask_challenge,
    open_upgrade,
    post_guest,
    register_account,
    register_upgrade,
)
from tests.support.permission_builders import create_application
from tests.support.platforms import run_steam
from tests.support.postgres_proxy import PostgresProxy, service_behind
from tests.support.service import RunningService
from tests.wire.accounts.test_platform_login import post_ticket
from tests.wire.accounts.test_proof_of_work import DIFFICULTY, solve
from tests.wire.accounts.test_providers import a_vendor, come_back, find_user, leave
from tests.wire.accounts.test_terms import TERMS, accepted, log_in, open_link, publish

# Part of the statement whose commit is lost.
MARK_USED: Final = "INSERT INTO once"
TAKE: Final = "UPDATE once SET taken_at"
MERGE: Final = "INSERT INTO user_aliases"
ACCEPT: Final = "INSERT INTO accepted_terms"
ADD_IDENTITY: Final = "INSERT INTO identities"
ERASE: Final = "DELETE FROM identities"
IMPORT: Final = "INSERT INTO user_ids"
REFUSED: Final = {"status": "LOGINERROR"}
SETTINGS: Final = {
    "GATEHOUSE__GUESTS__ENABLED": "true",
    "GATEHOUSE__GUESTS__IDLE_DAYS": "30",
    "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
}

both = pytest.mark.parametrize(
    "early", sample([False, True], False), ids=lambda early: "under way" if early else "committed"
)


@pytest.fixture
async def service(proxy: PostgresProxy, installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with service_behind(proxy, installed_postgres_url, tmp_path, **SETTINGS) as running:
        yield running


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )


@pytest.fixture
async def browser(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


async def count_events(service: RunningService, event: AuditEvent) -> int:
    return sum(record.event == event for record in await service.services.storage.audit.unsealed_records(1_000))


@both
async def test_r_90_challenge_puzzle_and_ticket_are_used_once(
    service: RunningService, proxy: PostgresProxy, *, early: bool
) -> None:
    device = Device()
    sent = device.sign(await ask_challenge(service))
    proxy.cut_commit_of(MARK_USED, early=early)
    assert (await service.client.post(GUEST, json=sent)).status_code == 503
    assert await post_guest(service, **sent) == REFUSED
    proxy.cut_commit_of(ADD_IDENTITY, early=early)
    created = await service.client.post(GUEST, json=device.sign(await ask_challenge(service)))
    assert created.status_code == 503
    assert "created" not in await device.log_in(service)

    protection = {"protection.proof_of_work": "on", "protection.difficulty": DIFFICULTY}
    await service.services.settings_editor.save(protection, ORIGIN)
    proof_of_work = service.services.limits.proof_of_work
    puzzle = await proof_of_work.issue_puzzle(PuzzlePurpose.GUEST)
    assert puzzle is not None
    proxy.cut_commit_of(MARK_USED, early=early)
    for error in (Unavailable, PuzzleUnsolved):
        with pytest.raises(error):
            await proof_of_work.require_solution(PuzzlePurpose.GUEST, puzzle.puzzle, solve(puzzle.puzzle))

    game = (await create_application(service.services.storage, name="Sky Raiders")).application_id
    async with run_steam() as steam:
        await service.services.settings_editor.save(steam.settings(game), ORIGIN)
        ticket = steam.ticket()
        proxy.cut_commit_of(MARK_USED, early=early)
        assert (await post_ticket(service, ticket=ticket, app_id=game)).status_code == 503
        assert (await post_ticket(service, ticket=ticket, app_id=game)).json() == REFUSED
        assert (await post_ticket(service, ticket=steam.ticket(), app_id=game)).json()["created"]
    assert proxy.cuts == 4
    assert await count_events(service, AuditEvent.USER_REGISTERED) == 2


@both
async def test_r_90_answer_of_a_provider_is_used_once(
    service: RunningService, proxy: PostgresProxy, browser: HttpBrowser, *, early: bool
) -> None:
    async with a_vendor(service) as vendor:
        answer = vendor.sign_in(await leave(browser))
        proxy.cut_commit_of(TAKE, early=early)
        assert (await come_back(browser, answer)).status_code == 503
        again = await come_back(browser, answer)
        assert (again.status_code < 500, "/account" in again.headers.get("location", "")) == (True, False)
        assert answer["code"] in vendor.codes, "nothing was redeemed"
        assert await find_user(service, vendor) is None
        proxy.cut_commit_of(ADD_IDENTITY, early=early)
        assert (await come_back(browser, vendor.sign_in(await leave(browser)))).status_code == 503
        assert (await come_back(browser, vendor.sign_in(await leave(browser)))).headers["location"] == "/account"
    assert proxy.cuts == 2
    assert await count_events(service, AuditEvent.USER_REGISTERED) == 1


async def confirm(browser: HttpBrowser, game: Game, login: str) -> int:
    await open_upgrade(browser, game, login)
    page = await browser.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    return page.status_code


@both
async def test_r_90_guest_is_merged_and_upgraded_whole(
    service: RunningService, proxy: PostgresProxy, browser: HttpBrowser, anna: User, *, early: bool
) -> None:
    merged, upgraded = Device(), Device()
    await merged.log_in(service)
    kept = (await upgraded.log_in(service))["user_id"]
    game = await register_upgrade(service, merged)
    proxy.cut_commit_of(MERGE, early=early)
    assert await confirm(browser, game, LOGIN) == 503
    answer = (await game.poll()).json()
    assert (answer["status"], answer["user_id"]) == ("OK", anna.user_id)
    game = await register_upgrade(service, upgraded)
    newcomer = HttpBrowser(service)
    await register_account(service, newcomer)
    proxy.cut_commit_of(MERGE, early=early)
    assert await confirm(newcomer, game, NEW) == 503
    answer = (await game.poll()).json()
    assert (answer["status"], answer["user_id"]) == ("OK", kept)
    await newcomer.client.aclose()
    assert proxy.cuts == 2
    assert [await device.log_in(service) for device in (merged, upgraded)] == [REFUSED, REFUSED]
    for event in (AuditEvent.ACCOUNT_MERGED, AuditEvent.ACCOUNT_UPGRADED):
        assert await count_events(service, event) == 1


@both
async def test_r_90_terms_are_accepted_once(
    service: RunningService, proxy: PostgresProxy, browser: HttpBrowser, anna: User, *, early: bool
) -> None:
    await publish(service, **TERMS)
    await open_link(browser, (await log_in(service))["url"])
    proxy.cut_commit_of(ACCEPT, early=early)
    form = browser.page
    assert (await browser.post("/terms", decision="accept")).status_code == 503
    browser.page = form
    assert (await browser.post("/terms", decision="accept")).status_code == 200
    assert proxy.cuts == 1
    assert (await log_in(service))["status"] == "OK"
    assert await accepted(service, anna) == {"terms": "1"}
    assert await count_events(service, AuditEvent.TERMS_ACCEPTED) == 1


def rows(number: int) -> Iterator[FileRow]:
    return iter([FileRow(n, ImportEntry(login=f"p{n}@studio.example")) for n in range(number)])


async def run_import(service: RunningService) -> ImportTotals:
    job = ImportJob(source=ImportFormat.CSV, import_id="players", origin=ORIGIN)
    return await service.services.accounts.importer.run(rows(600), job, report=lambda _: None)


@both
async def test_r_90_sweep_of_idle_guests_and_import_go_on(
    service: RunningService, proxy: PostgresProxy, *, early: bool
) -> None:
    for _ in range(3):
        await Device().log_in(service)
    await service.clock.advance(31 * DAY)
    proxy.cut_commit_of(ERASE, early=early)
    with pytest.raises(Unavailable):
        await service.services.accounts.guest_expiry.erase_idle(ORIGIN)
    await service.services.accounts.guest_expiry.erase_idle(ORIGIN)
    assert await service.services.storage.accounts.all_users() == []
    assert await count_events(service, AuditEvent.USER_ERASED) == 3

    proxy.cut_commit_of(IMPORT, early=early)
    with pytest.raises(Unavailable):
        await run_import(service)
    totals = await run_import(service)
    assert (totals.imported, totals.known, totals.refused) == (100, 500, 0)
    assert proxy.cuts == 2
    assert len(await service.services.storage.accounts.all_users()) == 600
    assert await count_events(service, AuditEvent.USER_IMPORTED) == 600
