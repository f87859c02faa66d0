"""Sign-in with a ticket of a game platform (R10, checklist PL-01 to PL-09)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.permissions.model.rules import ROOT
from tests.support.builders import ORIGIN, a_record
from tests.support.permission_builders import create_application
from tests.support.platforms import PUBLISHER_KEY, STEAM_APP, SteamWebApi, run_steam
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.stub_server import http_response
from tests.support.studio import Studio, a_studio, create_administrator, set_user_roles
from tests.support.vendors import STEAM_ID
from tests.wire.accounts.test_login import ALWAYS, with_totp

PATH = "/proxy/api/platformLogin"


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    allow = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=allow) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
def game(studio: Studio) -> int:
    """The ID of an application."""
    return studio.shop.application_id


@pytest.fixture
async def steam(service: RunningService, game: int) -> AsyncIterator[SteamWebApi]:
    async with run_steam() as running:
        await service.services.settings_editor.save(running.settings(game), ORIGIN)
        yield running


async def post_ticket(service: RunningService, **fields: Any) -> httpx2.Response:
    return await service.client.post(PATH, json={"platform": "steam", "factor": "the device", **fields})


async def log_in(service: RunningService, **fields: Any) -> dict[str, Any]:
    response = await post_ticket(service, **fields)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def find_player(service: RunningService, steam: SteamWebApi, steam_id: str = STEAM_ID) -> User | None:
    return await service.services.storage.profile.user_by_identity(f"{steam.base}/openid", steam_id)


async def configure(service: RunningService, **settings: object) -> None:
    await service.services.settings_editor.save(
        {f"providers.steam.{name}": value for name, value in settings.items()}, ORIGIN
    )


async def test_first_ticket_creates_the_account_and_the_second_finds_it(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    service.client.headers["Accept-Language"] = "de-AT,en;q=0.5"
    first = await log_in(service, ticket=steam.ticket(), app_id=game)
    assert set(first) == ALWAYS | {"jwt", "factor", "created"}
    assert (first["status"], first["auth"], first["created"], first["lang"]) == ("OK", "platform", True, "de")
    assert first["tags"] == "linked_steam"
    second = await log_in(service, ticket=steam.ticket(), app_id=game)
    assert (second["status"], second["user_id"]) == ("OK", first["user_id"])
    assert "created" not in second
    user = await find_player(service, steam)
    assert user is not None
    assert (user.user_id, user.login, user.password_hash, user.nick) == (first["user_id"], None, None, "Steam 7930")


async def test_form_is_the_same_as_json_and_no_cookie_is_set(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    fields = {"platform": "steam", "ticket": steam.ticket(), "app_id": str(game), "nojwt": "1"}
    response = await service.client.post(PATH, data=fields)
    assert response.json()["status"] == "OK"
    assert "set-cookie" not in response.headers
    foreign = await service.client.post(PATH, data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403


async def test_pl_01_ticket_works_once_in_any_spelling(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    ticket = steam.ticket()
    answers = await asyncio.gather(*(log_in(service, ticket=ticket, app_id=game) for _ in range(4)))
    assert sorted(answer["status"] for answer in answers) == ["LOGINERROR"] * 3 + ["OK"]
    for spelling in (ticket, ticket.upper(), f"{ticket}00", f"{ticket}01", ticket.ljust(2 * 2_560, "f")):
        assert await log_in(service, ticket=spelling, app_id=game) == {"status": "LOGINERROR"}
    await service.clock.advance(86_400)
    assert await log_in(service, ticket=ticket, app_id=game) == {"status": "LOGINERROR"}


async def test_ticket_in_a_buffer_of_the_web_api_signs_in(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    """GetAuthTicketForWebApi fills 2,560 bytes, and some SDKs leave garbage after the ticket."""
    padded = steam.ticket().ljust(2 * 2_560, "a")
    assert (await log_in(service, ticket=padded, app_id=game))["status"] == "OK"
    largest = steam.largest_ticket()
    assert (len(largest), (await log_in(service, ticket=largest, app_id=game))["status"]) == (2 * 2_560, "OK")


async def test_pl_02_two_first_tickets_at_once_make_one_account(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    tickets = [steam.ticket() for _ in range(5)]
    answers = await asyncio.gather(*(log_in(service, ticket=one, app_id=game) for one in tickets))
    assert {answer["status"] for answer in answers} == {"OK"}
    assert len({answer["user_id"] for answer in answers}) == 1
    assert [answer.get("created") for answer in answers].count(True) == 1


@pytest.mark.parametrize("other", [{"app_id": "570"}, {"identity": "another service"}], ids=["app", "identity"])
async def test_pl_03_ticket_for_another_app_or_service_is_refused(
    service: RunningService, steam: SteamWebApi, game: int, other: Mapping[str, str]
) -> None:
    assert await log_in(service, ticket=steam.ticket(**other), app_id=game) == {"status": "LOGINERROR"}
    assert await find_player(service, steam) is None


async def test_pl_03_canceled_and_malformed_tickets_are_refused(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    ticket = steam.ticket()
    steam.cancel(ticket)
    for bad in (ticket, "not hexadecimal", "ab", f"{ticket}&appid=570"):
        assert await log_in(service, ticket=bad, app_id=game) == {"status": "LOGINERROR"}
    for bad in ("", "a" * 9_000):
        response = await post_ticket(service, ticket=bad, app_id=game)
        assert (response.status_code, "ticket: must have" in response.text) == (400, True)


async def test_second_app_of_an_application_signs_in_too(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    await configure(service, tickets=[f"{game}:{STEAM_APP}", f"{game}:570"])
    answer = await log_in(service, ticket=steam.ticket(app_id="570"), app_id=game)
    assert answer["status"] == "OK"
    user = await find_player(service, steam)
    assert user is not None
    assert user.provided_purchases == {"steam:570"}


async def test_pl_04_application_takes_only_the_tickets_that_its_administrator_listed(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    ticket = steam.ticket()
    other = await create_application(service.services.storage, name="Other game")
    for fields in (
        {"app_id": other.application_id},
        {"app_id": 0},
        {"app_id": game, "platform": "psn"},
    ):
        response = await post_ticket(service, ticket=ticket, **fields)
        assert (response.status_code, "takes no tickets" in response.text) == (400, True)
    assert not steam.server.received
    await configure(service, enabled=False)
    assert (await post_ticket(service, ticket=ticket, app_id=game)).status_code == 400


async def test_pl_05_steam_away_is_503_and_uses_and_creates_nothing(
    service: RunningService, steam: SteamWebApi, game: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket = steam.ticket()
    steam.is_down = True
    response = await post_ticket(service, ticket=ticket, app_id=game)
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    steam.is_down = False
    await configure(service, publisher_key="another key")
    assert (await post_ticket(service, ticket=ticket, app_id=game)).status_code == 503
    await configure(service, publisher_key=PUBLISHER_KEY)
    assert await find_player(service, steam) is None
    assert (await log_in(service, ticket=ticket, app_id=game))["status"] == "OK"
    written = "".join(capsys.readouterr())
    assert "provider sign-in failed" in written
    assert ticket not in written
    assert PUBLISHER_KEY not in written


NONSENSE: tuple[bytes, ...] = (
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    http_response(b"<h1>Steam is down for maintenance</h1>"),
    http_response(b"[]"),
    http_response(b'{"response":{}}'),
    http_response(b'{"response":{"params":{"result":"OK","steamid":"1"}}}'),
    http_response(b'{"response":{"params":{"result":"Failure"}}}'),
    http_response(b"", "302 Found", Location="https://attacker.example/"),
    http_response(b" " * 300_000),
)


async def test_pl_05_nonsense_from_steam_is_503_and_creates_nothing(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    ticket = steam.ticket()
    for answer in NONSENSE:
        steam.server.respond = partial(give, answer)
        response = await post_ticket(service, ticket=ticket, app_id=game)
        assert response.status_code == 503, answer[:100]
    steam.server.respond = steam.respond
    assert await find_player(service, steam) is None
    assert (await log_in(service, ticket=ticket, app_id=game))["status"] == "OK"


def give(answer: bytes, _request: object) -> bytes:
    return answer


async def test_pl_06_second_factor_is_asked_for(service: RunningService, steam: SteamWebApi, game: int) -> None:
    await log_in(service, ticket=steam.ticket(), app_id=game)
    user = await find_player(service, steam)
    assert user is not None
    app = await with_totp(service, user)
    asked = await log_in(service, ticket=steam.ticket(), app_id=game)
    assert (asked["status"], "token" in asked, "totp" in asked["methods"]) == ("2STEP", False, True)
    wrong = await log_in(service, request_id=asked["request_id"], otp="000000")
    assert wrong == {"status": "2STEPERROR"}
    done = await log_in(service, request_id=asked["request_id"], otp=app.at(service.clock.now()))
    assert (done["status"], done["auth"], done["user_id"]) == ("OK", "2step", user.user_id)


async def test_pl_07_accounts_with_a_protected_role_are_denied_with_a_second_factor_too(
    studio: Studio, steam: SteamWebApi, game: int
) -> None:
    service = studio.service
    await create_administrator(studio)
    await log_in(service, ticket=steam.ticket(), app_id=game)
    user = await find_player(service, steam)
    assert user is not None
    app = await with_totp(service, user)
    asked = await log_in(service, ticket=steam.ticket(), app_id=game)
    await set_user_roles(studio, user.user_id, {ROOT: ["administrator"]}, application_id=CENTRAL_APPLICATION)
    otp = app.at(service.clock.now())
    assert await log_in(service, request_id=asked["request_id"], otp=otp) == {"status": "DENIED"}
    assert await log_in(service, ticket=steam.ticket(), app_id=game, otp=otp) == {"status": "DENIED"}
    await set_user_roles(studio, user.user_id, {}, application_id=CENTRAL_APPLICATION)
    assert (await log_in(service, ticket=steam.ticket(), app_id=game))["status"] == "2STEP"


async def test_pl_08_ban_shows_only_after_the_ticket_was_right(studio: Studio, steam: SteamWebApi, game: int) -> None:
    service = studio.service
    user_id = (await log_in(service, ticket=steam.ticket(), app_id=game))["user_id"]
    banned = {"action": "save", "user_id": user_id, "application_id": game, "data": {"public_text": "Cheating"}}
    await studio.expect_ok("user/ban", banned, (await create_administrator(studio)).headers)
    denied = {"status": "DENIED", "reason": "banned", "public_text": "Cheating", "until": 0}
    assert await log_in(service, ticket=steam.ticket(), app_id=game) == denied
    assert await log_in(service, ticket=steam.ticket(app_id="570"), app_id=game) == {"status": "LOGINERROR"}
    assert await log_in(service, ticket=steam.ticket(steam_id="76561197960287931"), app_id=game) != denied


async def test_player_without_an_account_is_told_so_if_none_may_be_created(
    studio: Studio, steam: SteamWebApi, game: int
) -> None:
    service = studio.service
    await configure(service, create_accounts=False)
    refused = await log_in(service, ticket=steam.ticket(), app_id=game)
    assert refused == {"status": "LOGINERROR", "reason": "no_account"}
    await configure(service, create_accounts=True)
    user_id = (await log_in(service, ticket=steam.ticket(), app_id=game))["user_id"]
    await service.services.storage.accounts.set_blocked(user_id, a_record(), blocked=True, now=service.clock.now())
    assert await log_in(service, ticket=steam.ticket(), app_id=game) == {"status": "LOGINERROR"}


async def test_pl_09_refused_tickets_block_their_source_and_right_ones_do_not(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    for _ in range(3):
        await log_in(service, ticket=steam.ticket(), app_id=game)
    for _ in range(100):
        await log_in(service, ticket="00" * 32, app_id=game)
    asked = len(steam.server.received)
    response = await post_ticket(service, ticket=steam.ticket(), app_id=game)
    assert (response.json()["status"], len(steam.server.received)) == ("BLOCKED", asked)
    await service.clock.advance(int(response.headers["retry-after"]))
    assert (await log_in(service, ticket=steam.ticket(), app_id=game))["status"] == "OK"


async def test_pl_01_two_nodes_take_a_ticket_once_and_make_one_account(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    environment = {
        "GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}",
        "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
    }
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        run_steam() as steam,
    ):
        game = (await create_application(first.services.storage, name="Sky Raiders")).application_id
        await first.services.settings_editor.save(steam.settings(game), ORIGIN)
        async with running_service(
            installed_postgres_url, tmp_path, environment=environment, clock=first.clock
        ) as second:
            nodes, ticket = (first, second), steam.ticket()
            answers = await asyncio.gather(*(log_in(node, ticket=ticket, app_id=game) for node in nodes * 2))
            assert sorted(answer["status"] for answer in answers) == ["LOGINERROR"] * 3 + ["OK"]
            fresh = [steam.ticket(steam_id="76561197960287931") for _ in nodes * 2]
            at_once = await asyncio.gather(
                *(log_in(node, ticket=one, app_id=game) for node, one in zip(nodes * 2, fresh, strict=True))
            )
            assert len({answer["user_id"] for answer in at_once}) == 1
            assert [answer.get("created") for answer in at_once].count(True) == 1


@pytest.mark.both_databases
async def test_ownership_becomes_a_purchase_and_ends_with_it(
    service: RunningService, steam: SteamWebApi, game: int
) -> None:
    await log_in(service, ticket=steam.ticket(), app_id=game)
    seen = []
    for owner, ownership in (
        ("", {}),
        ("76561197960287931", {}),  # Family Sharing
        ("", {"permanent": False}),  # a free weekend
        ("", {"ownsapp": False}),
        ("", {}),
    ):
        steam.owner, steam.ownership = owner, {"ownsapp": True, "permanent": True, **ownership}
        await log_in(service, ticket=steam.ticket(), app_id=game)
        user = await find_player(service, steam)
        assert user is not None
        seen.append(set(user.provided_purchases))
    assert seen == [{"steam:480"}, set(), set(), set(), {"steam:480"}]
