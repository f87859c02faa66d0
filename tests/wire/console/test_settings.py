"""Settings in the console: what is in force, where it comes from, and keys that are rotated by mouse."""

from gatehouse.keys.model import Algorithm, KeyLine, Purpose, State, state
from tests.support.console import ADA, Visitors
from tests.support.service import Service

HERE = "/console/settings"
ROTATE = f"{HERE}/keys/rotate"
LINE = KeyLine(Purpose.TOKENS, Algorithm.ES256)


async def states(studio: Service, line: KeyLine) -> list[State]:
    keys = (await studio.house.storage.keys.load()).keys
    return sorted(state(key, studio.clock.now()) for key in keys if key.line == line)


async def test_keys_are_drawn_and_rotated_in_three_manners(studio: Service, inside: Visitors) -> None:
    ada = await inside(ADA)
    page = (await ada.get(HERE)).text
    assert page.count('class="strip"') == 5
    await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")
    await ada.post(ROTATE, manner="planned")
    assert "takes over at its time" in (await ada.follow()).text
    assert await states(studio, LINE) == [State.NEXT, State.SIGNING]
    page = (await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")).text
    assert 'value="planned"' not in page  # one waits already
    assert (await ada.post(ROTATE, manner="planned")).status_code == 409
    await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")
    await ada.post(ROTATE, manner="at_once")
    assert await states(studio, LINE) == [State.SIGNING, State.VERIFYING]
    await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")
    await ada.post(ROTATE, manner="distrust")
    assert await states(studio, LINE) == [State.RETIRED, State.RETIRED, State.SIGNING]
    signing = studio.house.keyring.signing(Purpose.TOKENS, Algorithm.ES256, studio.clock.now()).record
    served = (await studio.client.get("/proxy/oauth/keys")).json()["keys"]
    assert [key["kid"] for key in served if key["alg"] == "ES256"] == [signing.kid]  # at once, on this node

    assert 'value="distrust"' not in (await ada.get(f"{ROTATE}?purpose=audit&alg=EdDSA")).text
    assert (await ada.post(ROTATE, manner="distrust")).status_code == 400
    assert (await ada.get(f"{ROTATE}?purpose=audit&alg=none")).status_code == 404
    await studio.clock.advance(601)
    assert (await ada.get(f"{ROTATE}?purpose=tokens&alg=ES256")).headers["location"].startswith("/confirm?next=")


async def test_the_configuration_is_shown_as_loaded_and_its_secrets_are_not(
    studio: Service, inside: Visitors
) -> None:
    ada = await inside(ADA)
    page = (await ada.get(f"{HERE}/configuration")).text
    assert "security.master_key" in page
    assert studio.house.settings.security.master_key.reveal() not in page
    file = (await ada.get(f"{HERE}/configuration?format=csv")).text.splitlines()
    assert "passwords.memory_kib,19456,KiB,environment" in file
    assert "sessions.idle_hours,72,hours,default" in file
    assert any(line.startswith("server.port,") and line.endswith(",flag") for line in file)
    found = (await ada.get(f"{HERE}/configuration?q=IDLE_hours")).text
    assert "sessions.idle_hours" in found
    assert "passwords.memory_kib" not in found
    policies = (await ada.get(f"{HERE}/policies")).text
    assert "sessions.idle_hours" in policies
    assert "72 hours" in policies
    assert "Development mode" in (await ada.get(f"{HERE}/risks")).text


async def test_mail_and_health_say_how_it_is(studio: Service, inside: Visitors) -> None:
    ada = await inside(ADA)
    await ada.get("/console/people/new")
    await ada.post("/console/people/new", login="nora@studio.example", entrance="invite")
    page = (await ada.get(f"{HERE}/email")).text
    assert "1 letter waits" in page
    assert "Invitation" in page
    assert "nora@" not in page  # whom a letter is for stays sealed
    await ada.post(f"{HERE}/email")
    assert "The letter is handed over" in (await ada.follow()).text
    await studio.house.sealer.seal_all()
    page = (await ada.get(f"{HERE}/health")).text
    kind = "SQLite" if studio.house.settings.database.url.is_sqlite else "PostgreSQL"
    assert f"{kind} " in page
    assert "schema revision 0001, 0001 is needed" in page
    assert " records, <time" in page
