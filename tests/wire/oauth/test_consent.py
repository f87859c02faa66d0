"""Consent from outside: asked once for each set of scopes, remembered, listed, withdrawn (R3)."""

import json
from html import unescape
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.app.people import people
from gatehouse.audit.model import Origin
from gatehouse.kernel.digests import sha256
from tests.support.builders import a_record
from tests.support.oauth import Relying, an_oidc_client
from tests.support.resident import Resident
from tests.support.service import Service
from tests.support.studio import a_studio
from tests.support.visitor import PASSWORD, Visitor, hidden_fields
from tests.support.whole_database import tables_that_mention, whole_database
from tests.wire.oauth.asking import LOGIN, back_with, error_in, grant_of, grants_made, ways_begun

CONSENT = "/sign-in/consent"


@pytest.fixture
async def third(service: Service) -> Relying:
    """Somebody else's client."""
    return await an_oidc_client(service, "third", first_party=False, name="Sky <Atlas>")


async def asked(visitor: Visitor, client: Relying, **changes: str) -> str:
    """The consent page that authorize leads to."""
    answer = await visitor.get(client.authorize_path(**changes))
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{CONSENT}?interaction="), answer.headers["location"]
    return (await visitor.follow()).text


async def test_the_page_tells_who_wants_what_of_whom(at_home: Visitor, third: Relying) -> None:
    page = await asked(at_home, third, scope="openid email offline_access")
    text = unescape(page)
    for words in ("Sky <Atlas>", "shop.example", "Anna", LOGIN, "your email address", "this data while you're away"):
        assert words in text
    assert "your name" not in text
    assert "<Atlas>" not in page
    assert "form-action 'self' https://shop.example;" in policy_of(at_home)
    assert "<dt>Owner</dt>" not in text


async def test_the_page_tells_whose_the_application_is(service: Service, at_home: Visitor) -> None:
    studio = await a_studio(service)
    number = studio.shop.application_id
    client = await an_oidc_client(service, "shop", first_party=False, application_id=number)
    page = await asked(at_home, client)
    assert "<dt>Owner</dt>" in page
    assert "Mind Games" in page


async def test_allow_is_asked_for_once_for_each_set_of_scopes(
    service: Service, at_home: Visitor, anna: User, third: Relying
) -> None:
    await asked(at_home, third, scope="openid email")
    told = back_with(await at_home.post(CONSENT, decision="allow"))
    assert (await grant_of(service, told["code"])).scopes == ("openid", "email")
    for scope in ("openid email", "email openid", "openid"):
        assert "code" in back_with(await at_home.get(third.authorize_path(scope=scope)))
    await asked(at_home, third, scope="openid profile")
    assert "code" in back_with(await at_home.post(CONSENT, decision="allow"))
    assert "code" in back_with(await at_home.get(third.authorize_path(scope="openid email profile")))
    consent = await service.house.storage.consents.consent(anna.user_id, "third")
    assert consent is not None
    assert set(consent.scopes) == {"openid", "email", "profile"}
    assert await ways_begun(service) == 0


async def test_deny_tells_the_client_and_remembers_nothing(
    service: Service, at_home: Visitor, anna: User, third: Relying
) -> None:
    await asked(at_home, third)
    denied = await at_home.post(CONSENT, decision="deny")
    assert error_in(denied) == "access_denied"
    told = back_with(denied)
    assert (told["state"], told["iss"]) == ("st", service.base_url)
    assert await service.house.storage.consents.consent(anna.user_id, "third") is None
    assert (await grants_made(service), await ways_begun(service)) == (0, 0)
    await asked(at_home, third)


async def test_a_denial_is_recorded_once(service: Service, at_home: Visitor, anna: User, third: Relying) -> None:
    page = await asked(at_home, third, scope="openid email")
    form = {**hidden_fields(page), "decision": "deny"}
    for _ in range(3):
        await at_home.client.post(CONSENT, data=form)
    records = await service.house.storage.audit.newest(10, anna.user_id, "consent.denied")
    assert [(one.actor, one.details) for one in records] == [
        (anna.user_id, {"client": "third", "scope": "openid email"})
    ]


async def test_a_consent_withdrawn_in_that_moment_leaves_no_grant(
    service: Service, at_home: Visitor, anna: User, third: Relying, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked(at_home, third)
    back_with(await at_home.post(CONSENT, decision="allow"))
    store = type(service.house.storage.grants)
    begin = store.begin

    async def after_the_withdrawal(self: Any, *args: Any, **more: Any) -> bool:
        assert await people(service.house).authorizing.consents.withdraw(anna.user_id, "third", Origin(actor="test"))
        return await begin(self, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(store, "begin", after_the_withdrawal)
        assert error_in(await at_home.get(third.authorize_path())) == "login_required"
    assert await grants_made(service) == 1  # the first one, which is revoked
    await asked(at_home, third)


@pytest.mark.usefixtures("anna")
async def test_someone_who_has_just_signed_in_is_asked_next(
    service: Service, visitor: Visitor, third: Relying
) -> None:
    await visitor.get(third.authorize_path())
    await visitor.follow()
    signed_in = await visitor.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert signed_in.headers["location"].startswith(CONSENT)
    assert await grants_made(service) == 0
    await visitor.follow()
    assert "code" in back_with(await visitor.post(CONSENT, decision="allow"))


async def test_prompt_consent_asks_again_and_a_first_party_client_may_want_that_too(
    at_home: Visitor, third: Relying, shelf: Relying
) -> None:
    for client in (third, shelf):
        for _ in range(2):
            await asked(at_home, client, prompt="consent")
            assert "code" in back_with(await at_home.post(CONSENT, decision="allow"))
    assert "code" in back_with(await at_home.get(third.authorize_path()))


async def test_a_decision_counts_once(service: Service, at_home: Visitor, third: Relying) -> None:
    page = await asked(at_home, third)
    form = {**hidden_fields(page), "decision": "allow"}
    assert "code" in back_with(await at_home.client.post(CONSENT, data=form))
    again = await at_home.client.post(CONSENT, data=form)
    assert (again.status_code, "location" in again.headers) == (400, False)
    assert await grants_made(service) == 1


async def test_only_the_session_that_was_asked_can_decide(service: Service, at_home: Visitor, third: Relying) -> None:
    page = await asked(at_home, third)
    handle = hidden_fields(page)["interaction"]
    thief = Visitor(service)
    await thief.sign_in(LOGIN)
    assert (await thief.get(f"{CONSENT}?interaction={handle}")).status_code == 400
    await thief.client.aclose()
    await at_home.sign_in(LOGIN)  # a new session of the same person
    assert (await at_home.get(f"{CONSENT}?interaction={handle}")).status_code == 400
    csrf = hidden_fields((await at_home.get("/account")).text)["csrf"]
    form = {"csrf": csrf, "interaction": handle, "decision": "allow"}
    assert (await at_home.client.post(CONSENT, data=form)).status_code == 400
    assert await grants_made(service) == 0


@pytest.mark.parametrize("decision", ["", "yes", "ALLOW"])
async def test_another_decision_is_none(service: Service, at_home: Visitor, third: Relying, decision: str) -> None:
    await asked(at_home, third)
    assert (await at_home.post(CONSENT, decision=decision)).status_code == 400
    assert await grants_made(service) == 0


async def test_the_step_cannot_be_skipped_by_choosing_an_account(
    service: Service, at_home: Visitor, third: Relying
) -> None:
    page = await asked(at_home, third)
    form = {**hidden_fields(page), "decision": "continue"}
    answer = await at_home.client.post("/sign-in/as", data=form)
    assert answer.headers["location"].startswith(CONSENT)
    assert await grants_made(service) == 0


async def test_consent_that_came_too_late_starts_again(service: Service, at_home: Visitor, third: Relying) -> None:
    await asked(at_home, third, state="kept")
    await service.clock.advance(601)
    late = await at_home.post(CONSENT, decision="allow")
    assert late.status_code == 400
    assert "/proxy/oauth/authorize?" in late.text
    assert "state=kept" in late.text


@pytest.mark.usefixtures("anna")
async def test_the_account_page_lists_what_was_allowed_and_withdrawing_ends_it(
    service: Service, third: Relying
) -> None:
    resident = Resident(service)
    await resident.come_home()
    await asked(resident, third)
    code = back_with(await resident.post(CONSENT, decision="allow"))["code"]
    page = unescape((await resident.get("/account")).text)
    assert "Sky <Atlas>" in page
    assert "this data while you're away" in page
    assert await resident.do("/account/applications/revoke", "third") == "Access withdrawn"
    assert "Sky" not in (await resident.get("/account")).text.split('id="applications"')[1].split("</section>")[0]
    holder = await service.house.storage.grants.by_code(sha256(code))
    assert holder is not None
    assert holder.grant.revoked_at == service.clock.now()
    assert await service.house.storage.grants.by_id(holder.grant.grant_id, service.clock.now()) is None
    assert (await third.redeem(code)).status_code == 400
    await asked(resident, third)
    activity = (await resident.get("/account")).text.split('id="activity"')[1]
    assert "Application access allowed" in activity
    assert "Application access withdrawn" in activity
    await resident.client.aclose()


async def test_nobody_withdraws_for_another(service: Service, at_home: Visitor, anna: User, third: Relying) -> None:
    await asked(at_home, third)
    await at_home.post(CONSENT, decision="allow")
    berta = await service.house.administration.new_user(login="b@studio.example", nick="B", password=PASSWORD)
    resident = Resident(service)
    await service.house.storage.accounts.create(berta, a_record())
    await resident.come_home("b@studio.example")
    await resident.send("/account/applications/revoke", client_id="third")
    assert await service.house.storage.consents.consent(anna.user_id, "third") is not None
    await resident.client.aclose()


@pytest.mark.usefixtures("anna")
async def test_a_walk_with_consent_ends_with_tokens(third: Relying) -> None:
    assert "access_token" in await third.tokens(await third.sign_in(LOGIN))


def policy_of(visitor: Visitor) -> str:
    assert visitor.page is not None
    return str(visitor.page.headers["content-security-policy"])


@pytest.mark.usefixtures("anna")
async def test_op_14_what_was_allowed_is_in_the_copy_of_a_persons_data(service: Service, third: Relying) -> None:
    resident = Resident(service)
    await resident.come_home()
    await asked(resident, third, scope="openid email")
    await resident.post(CONSENT, decision="allow")
    await resident.get("/account")
    written = json.loads((await resident.submit("/account/export")).content)
    assert [(one["client_id"], one["scopes"]) for one in written["allowed_clients"]] == [
        ("third", ["openid", "email"])
    ]
    (sign_in,) = written["client_sign_ins"]
    assert (sign_in["client_id"], sign_in["scopes"], sign_in["revoked"]) == ("third", ["openid", "email"], "")
    await resident.client.aclose()


async def test_op_14_nothing_of_a_sign_in_to_a_client_outlives_the_account(
    service: Service, anna: User, third: Relying
) -> None:
    resident = Resident(service)
    await resident.come_home()
    await asked(resident, third)
    await resident.post(CONSENT, decision="allow")
    await asked(resident, third, prompt="consent")  # and one under way
    assert tables_that_mention(await whole_database(service.house.storage), anna.user_id) >= {
        *("consents", "grants", "interactions"),
    }
    await resident.get("/account/delete")
    await resident.submit("/account/delete", login=LOGIN)
    after = await whole_database(service.house.storage)
    assert tables_that_mention(after, anna.user_id) == {"user_ids", "audit_events"}
    await resident.client.aclose()
