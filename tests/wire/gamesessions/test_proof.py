"""Who may query a session: signature, Location value, address (interface §4.3, R4)."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from gatehouse.accounts.model import User
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.tokens.request_signatures import cached_rsa_key
from tests.support.cpu_time import await_within_cpu_seconds
from tests.support.game import (
    CLOSE,
    GET_GSID,
    INFO,
    RESULT,
    Game,
    advance_through_delay,
    approve_in_storage,
    game_from_response,
    poll_ended_session,
    refusal_reason,
    register_game,
    wait_until_held,
)
from tests.support.service import RunningService, running_service
from tests.support.studio import Studio, a_studio
from tests.support.tls import NO_TRUST_STORE

KEY = rsa.generate_private_key(65537, 2048)
PUBLIC = base64.b64encode(
    KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
).decode()
OTHER = rsa.generate_private_key(65537, 2048)


def spki(key: Any) -> str:
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def sign_body(body: bytes, key: rsa.RSAPrivateKey = KEY) -> str:
    return base64.b64encode(key.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()


async def ask(
    service: RunningService, path: str, body: bytes, headers: Mapping[str, str], **query: str
) -> httpx2.Response:
    return await service.client.post(
        path, content=body, params=query, headers={"Content-Type": "application/json", **headers}
    )


def poll_body(game: Game) -> bytes:
    return b'{"gsid": "' + game.gsid.encode() + b'"}'


@asynccontextmanager
async def service_from(service: RunningService, address: str = "127.0.0.2") -> AsyncIterator[RunningService]:
    """The same service, called from a different address."""
    transport = httpx2.AsyncHTTPTransport(local_address=address, verify=NO_TRUST_STORE)
    async with httpx2.AsyncClient(base_url=service.client.base_url, transport=transport, timeout=10) as client:
        yield replace(service, client=client)


async def test_gs_03_a_poll_from_another_address_without_proof_is_a_violation(
    service: RunningService, anna: User
) -> None:
    game = await register_game(service)
    await approve_in_storage(game, anna)
    async with service_from(service) as other:
        other_game = replace(game, service=other)
        assert await refusal_reason(service, await other_game.poll(by_address=True)) == "different IP address"
        assert (await other_game.poll()).json()["status"] == "OK"  # the Location value proves it from any address


async def test_the_same_address_needs_nothing_else(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    await approve_in_storage(game, anna)
    assert (await game.poll(by_address=True)).json()["status"] == "OK"


@pytest.mark.parametrize("form", ["query", "header", "authorization", "whole header", "whole query"])
async def test_the_location_value_is_read_from_wherever_a_client_puts_it(
    service: RunningService, anna: User, form: str
) -> None:
    async with service_from(service) as other:
        game = await register_game(other)
    await approve_in_storage(game, anna)
    whole = f"{RESULT}?location={game.location}"
    headers = {
        "header": {"Location": game.location},
        "authorization": {"Authorization": f"Location {game.location}"},
        "whole header": {"Location": whole},
    }.get(form, {})
    query = {"query": {"location": game.location}, "whole query": {"location": whole}}.get(form, {})
    response = await ask(service, RESULT, poll_body(game), headers, **query)
    assert response.json()["status"] == "OK"


async def test_a_wrong_location_is_a_violation_also_from_the_right_address(service: RunningService) -> None:
    game, neighbour = await register_game(service), await register_game(service)
    for wrong in ("", "x", neighbour.location, game.location[:-1], game.location.swapcase()):
        answer = await ask(service, RESULT, poll_body(game), {}, location=wrong)
        assert await refusal_reason(service, answer) == "wrong location"


async def test_gs_04_all_violations_look_alike(service: RunningService, anna: User) -> None:
    game, keyed, done = (
        await register_game(service),
        await register_game(service, public_key=PUBLIC),
        await register_game(service),
    )
    await approve_in_storage(done, anna)
    await done.poll()
    responses = [
        await replace(game, gsid="00000000-0000-4000-8000-000000000000").poll(),
        await replace(game, location="wrong").poll(),
        await keyed.poll(),
        await poll_ended_session(done),
    ]
    async with service_from(service) as other:
        responses.append(await replace(game, service=other).poll(by_address=True))
    await service.clock.advance(121)
    responses.append(await game.poll())
    reasons = [await refusal_reason(service, response) for response in responses]
    assert reasons == [
        *("no such session", "wrong location", "wrong signature", "the answer was already delivered"),
        *("different IP address", "no such session"),
    ]
    assert responses[0].json() == responses[-1].json()  # the same refusal of the same address within the hour
    assert len({response.json()["error"] for response in responses}) == len(responses) - 1
    shapes = {(tuple(sorted(response.headers)), len(response.content)) for response in responses}
    assert len(shapes) == 1


async def test_a_key_may_be_sent_in_two_spellings_and_two_keys_may_not(service: RunningService) -> None:
    pem = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    headers = {"Public-Key": PUBLIC}
    response = await service.client.post(GET_GSID, headers=headers, json={"public_key": pem.decode()})
    assert response.status_code == 200, response.text
    for other in (spki(OTHER.public_key()), "no key"):
        response = await service.client.post(GET_GSID, headers=headers, json={"public_key": other})
        assert (response.status_code, response.json()["error"]) == (400, "two different values of public_key")


@pytest.mark.parametrize("as_text", ["der", "pem", "pkcs1", "header"])
async def test_session_with_a_public_key_accepts_only_signed_polls_from_any_address(
    service: RunningService, anna: User, as_text: str
) -> None:
    public = {
        "der": PUBLIC,
        "header": PUBLIC,
        "pem": KEY.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode(),
        "pkcs1": base64.b64encode(
            KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
        ).decode(),
    }[as_text]
    if as_text == "header":
        response = await service.client.post(GET_GSID, headers={"Public-Key": public})
        game = Game(service=service, gsid=response.json()["gsid"], location="", answer=response.json())
    else:
        game = await register_game(service, public_key=public)
    await approve_in_storage(game, anna)
    assert await refusal_reason(service, await game.poll()) == "wrong signature"
    body = poll_body(game)
    async with service_from(service) as other:
        for headers in ({"Request-Sign": sign_body(body)}, {"Authorization": f"Sign {sign_body(body)}"}):
            asking = asyncio.create_task(ask(other, RESULT, body, headers))
            response = await advance_through_delay(service, asking)
            if response.status_code == 200:
                assert response.json()["status"] == "OK"
            else:
                assert await refusal_reason(service, response) == "the answer was already delivered"


async def test_gs_09_only_a_pkcs1_sha256_signature_over_the_exact_body_counts(service: RunningService) -> None:
    game = await register_game(service, public_key=PUBLIC)
    body = poll_body(game)
    pss = KEY.sign(body, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    sha1 = KEY.sign(body, padding.PKCS1v15(), hashes.SHA1())  # noqa: S303 - must be refused
    for wrong in (
        *(sign_body(body + b" "), sign_body(body.replace(b" ", b"")), base64.b64encode(pss).decode()),
        *(base64.b64encode(sha1).decode(), "", "!!!", sign_body(body)[:-8] + "********", sign_body(body, OTHER)),
    ):
        assert (
            await refusal_reason(service, await ask(service, RESULT, body, {"Request-Sign": wrong}))
            == "wrong signature"
        )
    changed = body.replace(b'"gsid"', b'"gsid" ')
    answer = await ask(service, RESULT, changed, {"Request-Sign": sign_body(body)})
    assert await refusal_reason(service, answer) == "wrong signature"


async def test_base64url_signatures_are_read_too(service: RunningService, anna: User) -> None:
    game = await register_game(service, public_key=PUBLIC)
    await approve_in_storage(game, anna)
    body = poll_body(game)
    url_safe = sign_body(body).replace("+", "-").replace("/", "_").rstrip("=")
    assert (await ask(service, RESULT, body, {"Request-Sign": url_safe})).json()["status"] == "OK"


async def test_a_key_sent_while_polling_never_replaces_the_registered_one(service: RunningService) -> None:
    game = await register_game(service, public_key=PUBLIC)
    body = poll_body(game)
    headers = {"Request-Sign": sign_body(body, OTHER), "Public-Key": spki(OTHER.public_key())}
    assert await refusal_reason(service, await ask(service, RESULT, body, headers)) == "different public key"


async def test_gs_10_a_doubled_gsid_is_refused_and_a_polls_signature_does_not_close(service: RunningService) -> None:
    game, other = await register_game(service, public_key=PUBLIC), await register_game(service, public_key=PUBLIC)
    doubled = f'{{"gsid":"{game.gsid}","gsid":"{other.gsid}"}}'.encode()
    assert (await ask(service, RESULT, doubled, {"Request-Sign": sign_body(doubled)})).status_code == 400
    poll = poll_body(game)
    assert (await ask(service, CLOSE, poll, {"Request-Sign": sign_body(poll)})).status_code == 400
    close = f'{{"gsid":"{game.gsid}","status":"Error"}}'.encode()
    answer = await ask(service, CLOSE, close, {"Request-Sign": sign_body(poll)})
    assert await refusal_reason(service, answer) == "wrong signature"
    assert (await ask(service, CLOSE, close, {"Request-Sign": sign_body(close)})).json() == {"status": "OK"}


async def test_gs_08_weak_and_malformed_keys_are_refused_quickly(service: RunningService) -> None:
    weak = rsa.generate_private_key(65537, 1024).public_key()  # noqa: S505 - must be refused
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    private = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    bad = ["garbage", "A" * 60_000, spki(weak), spki(curve), private, base64.b64encode(b"0" * 300).decode()]
    modulus = KEY.public_key().public_numbers().n
    bad += [spki(rsa.RSAPublicNumbers(exponent, modulus).public_key()) for exponent in (3, 1 << 70 | 1)]
    for key in bad:
        response = await await_within_cpu_seconds(
            0.1, partial(service.client.post, GET_GSID, json={"public_key": key})
        )
        assert response.status_code == 400, key
        assert response.json()["status"] == "ERROR"
    assert (await service.client.post(GET_GSID, json={"public_key": "A" * 1_048_576})).status_code == 400


async def test_gs_11_gsid_and_location_are_unguessable(service: RunningService) -> None:
    games = [await register_game(service) for _ in range(60)]
    assert len({game.gsid for game in games}) == len({game.location for game in games}) == 60
    assert len({game.gsid[:6] for game in games}) > 55  # no common prefix, no timestamp
    assert len({game.location[:4] for game in games}) > 55
    assert {len(game.location) for game in games} == {32}
    assert {len(game.gsid) for game in games} == {36}


@asynccontextmanager
async def behind_a_proxy(url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1/32"}
    async with running_service(url, tmp_path, environment=environment) as service:
        yield service


def forwarded_headers(*chain: str) -> dict[str, str]:
    return {"X-Forwarded-For": ", ".join(chain)} if chain else {}


async def test_gs_06_behind_a_trusted_proxy_the_right_most_untrusted_hop_is_the_client(
    installed_url: str, tmp_path: Path
) -> None:
    async with behind_a_proxy(installed_url, tmp_path) as service:
        game = await register_game(service, forwarded_headers("203.0.113.9"))
        for chain, expected in (
            (("203.0.113.9",), "held"),
            (("198.51.100.7", "203.0.113.9"), "held"),
            (("203.0.113.9", "198.51.100.7"), "different IP address"),
            ((), "the IP address is not accepted as proof"),
        ):
            poller = replace(game, headers=forwarded_headers(*chain))
            if expected == "held":
                polling = poller.start_poll(by_address=True)
                await wait_until_held(service)
                await service.clock.advance(31)
                assert (await polling).json()["status"] == "RETRY"
                await service.clock.advance(2)
            else:
                assert await refusal_reason(service, await poller.poll(by_address=True)) == expected
        for unreadable in ("a", "1.2.3.4, evil", "fe80::1%eth0", ", ".join(["1.2.3.4"] * 1000)):
            response = await replace(game, headers=forwarded_headers(unreadable)).poll(by_address=True)
            assert response.status_code in (400, 403, 431), (unreadable, response.text)


async def test_ip_is_believed_from_a_trusted_proxy_only(installed_url: str, tmp_path: Path) -> None:
    async with behind_a_proxy(installed_url, tmp_path) as service:
        for headers in ({"Ip": "203.0.113.9"}, {"Authorization": "Ip 203.0.113.9"}):
            game = await register_game(service, headers)
            session = await service.services.storage.game_sessions.find_session(game.gsid, service.clock.now())
            assert session is not None
            assert (session.address, session.address_proven) == ("203.0.113.9", True)


@pytest.mark.parametrize("header", ["Ip", "Authorization"])
async def test_client_address_claims_are_ignored_behind_a_trusted_proxy(
    installed_url: str, tmp_path: Path, header: str
) -> None:
    environment = {
        "GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1/32",
        "GATEHOUSE__GAME__SESSION_INFO_ALLOW": "198.51.100.0/24",
    }
    claim = {header: "Ip 198.51.100.7" if header == "Authorization" else "198.51.100.7"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        game = await register_game(service, forwarded_headers("198.51.100.7"), factor="f")
        other_game = replace(game, headers={**forwarded_headers("203.0.113.66"), **claim})
        assert await refusal_reason(service, await other_game.poll(by_address=True)) == "different IP address"
        for headers in (other_game.headers, claim):
            answer = await service.client.post(INFO, json={"gsid": game.gsid}, headers=headers)
            assert await refusal_reason(service, answer) == "info is not allowed from this IP address"


async def test_a_proof_in_two_forms_has_to_say_the_same(service: RunningService) -> None:
    keyed, game = await register_game(service, public_key=PUBLIC), await register_game(service)
    other = spki(OTHER.public_key())
    body = json.dumps({"gsid": keyed.gsid, "public_key": other}).encode()
    mixed = (
        await service.client.post(GET_GSID, json={"public_key": PUBLIC}, headers={"Public-Key": other}),
        await ask(service, RESULT, body, {"Request-Sign": sign_body(body), "Public-Key": PUBLIC}),
        await ask(service, RESULT, poll_body(keyed), {"Request-Sign": sign_body(poll_body(keyed)), "Sign": "AAAA"}),
        await ask(service, RESULT, poll_body(game), {"Location": "wrong"}, location=game.location),
    )
    assert [response.status_code for response in mixed] == [400] * 4


async def test_ht_18_keys_of_strangers_are_not_remembered(service: RunningService) -> None:
    game = await register_game(service, public_key=PUBLIC)
    before = cached_rsa_key.cache_info().currsize
    for number in range(5):
        await service.client.post(RESULT, json={"gsid": game.gsid, "public_key": f"{number}" + "A" * 3_000})
    assert cached_rsa_key.cache_info().currsize <= before + 1  # only the session's own key


async def test_little_of_what_a_stranger_calls_a_session_is_kept(service: RunningService) -> None:
    for gsid in ("x" * 60_000, "a\x1b[31m\n\u202e"):
        response = await service.client.post(RESULT, json={"gsid": gsid})
        record = await service.services.storage.audit.find_record(response.json()["error"])
        assert record is not None
        assert len(record.subject) <= 64
        assert record.subject.isprintable()


async def test_ip_from_anybody_else_says_nothing(service: RunningService) -> None:
    response = await service.client.post(GET_GSID, headers={"Ip": "203.0.113.9"})
    session = await service.services.storage.game_sessions.find_session(response.json()["gsid"], service.clock.now())
    assert session is not None
    assert session.address == "127.0.0.1"


async def test_a_request_that_claims_to_be_forwarded_proves_nothing_by_its_address(service: RunningService) -> None:
    game = await register_game(service)
    answer = await ask(service, RESULT, poll_body(game), {"X-Forwarded-For": "127.0.0.1"})
    assert await refusal_reason(service, answer) == "the IP address is not accepted as proof"


async def test_gs_24_an_ipv4_address_and_its_mapped_form_are_the_same_client(
    installed_url: str, tmp_path: Path
) -> None:
    async with behind_a_proxy(installed_url, tmp_path) as service:
        game = await register_game(service, forwarded_headers("203.0.113.9"))
        poller = replace(game, headers=forwarded_headers("::ffff:203.0.113.9"))
        polling = poller.start_poll(by_address=True)
        await wait_until_held(service)
        await service.clock.advance(31)
        assert (await polling).json()["status"] == "RETRY"


def vouching_request(studio: Studio, key: str, path: str, fields: dict[str, object], ip: str) -> dict[str, Any]:
    """The request by which the shop vouches for the address; `ip` and `ts` are in the body."""
    body = json.dumps({**fields, "ip": ip, "ts": studio.service.clock.now()}).encode()
    message = b"\n".join((b"POST", path.encode(), b"", body))
    headers = {
        "Signature": hmac_sha256(key.encode(), message).hex(),
        "Application-Id": str(studio.shop.application_id),
        "Content-Type": "application/json",
    }
    return {"content": body, "headers": headers}


async def test_an_application_vouches_for_the_address_of_its_client(service: RunningService, anna: User) -> None:
    studio = await a_studio(service)
    key = await studio.access_key()
    named: dict[str, object] = {"app_id": studio.shop.application_id}
    answer = await service.client.post(GET_GSID, **vouching_request(studio, key, GET_GSID, named, "203.0.113.9"))
    game = game_from_response(service, answer)
    session = await service.services.storage.game_sessions.find_session(game.gsid, service.clock.now())
    assert session is not None
    assert (session.address, session.address_proven) == ("203.0.113.9", True)
    await approve_in_storage(game, anna)
    polled = vouching_request(studio, key, RESULT, {"gsid": game.gsid}, "203.0.113.9")
    assert (await service.client.post(RESULT, **polled)).json()["status"] == "OK"


async def test_a_wrong_signature_is_a_violation_with_its_record(service: RunningService) -> None:
    studio, game = await a_studio(service), await register_game(service)
    forged = vouching_request(studio, "0" * 64, RESULT, {"gsid": game.gsid}, "127.0.0.1")
    assert (await refusal_reason(service, await service.client.post(RESULT, **forged))).startswith("Signature: ")


async def test_an_application_vouches_for_sessions_of_its_own_only_and_never_for_info(
    service: RunningService, anna: User
) -> None:
    studio = await a_studio(service)
    key = await studio.access_key()
    async with service_from(service, "127.0.0.9") as far:
        game = await register_game(far, app_id=studio.other.application_id, factor="f")
    await approve_in_storage(game, anna)
    stolen = vouching_request(studio, key, RESULT, {"gsid": game.gsid}, "127.0.0.9")
    assert await refusal_reason(service, await service.client.post(RESULT, **stolen)) == "different IP address"
    async with service_from(service, "127.0.0.3") as other:
        proxied = vouching_request(studio, key, INFO, {"gsid": game.gsid}, "127.0.0.1")
        proxied["headers"]["X-Forwarded-For"] = "203.0.113.9"
        assert (
            await refusal_reason(service, await other.client.post(INFO, **proxied))
            == "info is not allowed from this IP address"
        )


async def test_gs_27_info_answers_listed_addresses_with_the_sessions_own_fields(
    service: RunningService, anna: User
) -> None:
    game = await register_game(service, factor="device-1", distr="steam", app_id=0, gapp_id=0)
    await approve_in_storage(game, anna)
    body = (await service.client.post(INFO, json={"gsid": game.gsid})).json()
    assert body == {
        "status": "OK",
        "session": {
            "distr": "steam",
            "factor": "device-1",
            "app_id": 0,
            "gapp_id": 0,
            "ip": "127.0.0.1",
            "created": game.answer["started"],
            "last_seen": 0,
            "state": "",
        },
    }
    spoofed = await service.client.post(INFO, json={"gsid": game.gsid}, headers={"X-Forwarded-For": "127.0.0.1"})
    assert await refusal_reason(service, spoofed) == "info is not allowed from this IP address"


async def test_gs_27_no_one_is_listed_unless_the_operator_says_so(installed_url: str, tmp_path: Path) -> None:
    async with behind_a_proxy(installed_url, tmp_path) as service:
        game = await register_game(service, forwarded_headers("203.0.113.9"))
        answer = await service.client.post(INFO, json={"gsid": game.gsid}, headers=game.headers)
        assert await refusal_reason(service, answer) == "info is not allowed from this IP address"


async def test_gs_26_closing_needs_proof_and_a_known_status_and_may_be_repeated(
    service: RunningService, anna: User
) -> None:
    game = await register_game(service)
    await approve_in_storage(game, anna)
    await game.poll()
    async with service_from(service) as other:
        body = {"gsid": game.gsid, "status": "Success"}
        assert await refusal_reason(service, await other.client.post(CLOSE, json=body)) == "different IP address"
    for status in ("success", "Deleted", "", "S" * 5_000):
        assert (await game.close(status)).status_code == 400
    for status in ("Error", "Success", "Success"):
        assert (await game.close(status)).json() == {"status": "OK"}
    session = await service.services.storage.game_sessions.find_session(game.gsid, service.clock.now())
    assert session is not None
    assert session.closed == "Success"
