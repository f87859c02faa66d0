"""Every page in every state, with sample data, behind the real middleware: for screenshots, axe and layout tests."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import escape
from typing import Any, Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gatehouse.accounts.address_proofs.model import EndedMethods
from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.identities import ForeignPerson
from gatehouse.accounts.model import OWN_FIELDS, SignInMethod
from gatehouse.accounts.terms.model import TermsDocument
from gatehouse.admin.access_invitations import NamedInvitation
from gatehouse.admin.own_permissions import EffectiveRule, OwnPermissions, OwnScope, Reason, RuleSource
from gatehouse.fields.derive import form_rows
from gatehouse.kernel.graphics import Color
from gatehouse.oauth.api_model import SCOPE_MARK
from gatehouse.oauth.delegation import ActingApplication
from gatehouse.oauth.model import APPLICATION_SCOPES, LINK_FIELDS, SCOPES
from gatehouse.permissions.evaluation.contributions import SourceKind
from gatehouse.permissions.model.invitation import AccessInvitation, InvitedAccess
from gatehouse.permissions.model.rules import ROOT, ResourceKind, Rule, RuleSection, Scope
from gatehouse.sign_in_flow.model import DestinationLink, FormPost
from gatehouse.sign_in_flow.questions import ConsentRequest, NetworkNearness
from gatehouse.throttle.proof_of_work import Puzzle
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.operation_texts import ExampleRequest
from gatehouse.web.http.parse import BodyKind
from gatehouse.web.http.parse_form import parse_urlencoded
from gatehouse.web.http.responses import html_response, json_response
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth
from gatehouse.web.pages import account_contexts as account
from gatehouse.web.pages import contexts as page
from gatehouse.web.pages import contexts as sso
from gatehouse.web.pages import email_sign_in as by_email
from gatehouse.web.pages import guides
from gatehouse.web.pages.api_docs import (
    DocsContext,
    DocumentedExample,
    DocumentedGroup,
    DocumentedOperation,
    FieldRow,
)
from gatehouse.web.pages.assets import Assets
from gatehouse.web.pages.branding import ColorPreviewContext, swatches
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.denial_reasons import DenialReason
from gatehouse.web.pages.markdown import render_markdown
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.provider_test import ProviderTestContext, claim_lines, person_lines
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.terms import TermsContext, TermsEndContext
from gatehouse.web.pages.vocabulary import (
    AccountSection,
    FactorMethod,
    GameEnd,
    MailPurpose,
    Notice,
    PageProblem,
    ProblemKind,
    TermsEnd,
    Theme,
)
from gatehouse.web.server.server import ShutdownSignal, serve_in_loop
from tests.support.builders import a_passkey, an_identity
from tests.support.clock import MovableClock
from tests.support.processes import free_port
from tests.support.pseudo_locale import languages_with_pseudo
from tests.support.sample_asgi_app import SampleAsgiApp

NOW: Final = 1_788_000_000
MINUTE: Final = 60
DAY: Final = 24 * 3600
CSRF: Final = "sample-csrf"
ASK: Final = "sample-interaction"
ANNA: Final = "anna.lindqvist@studio.example"
LONG_LOGIN: Final = f"{'a-very-long-mailbox-name-' * 2}x@{'subdomain.' * 5}studio.example"
SECRET: Final = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
EVERYTHING_ENDS: Final = EndedMethods(
    password=True,
    identities=(an_identity("1000000001", label=LONG_LOGIN),),
    totp=True,
    passkeys=(a_passkey(name="Work laptop"),),
    email_code=True,
    recovery=True,
    phone=True,
    sessions=2,
    applications=True,
)
CODES: Final = tuple(f"k{number}q2m-x7{number}4t" for number in range(10))

REQUEST_OPTIONS: Final = json.dumps(
    {"challenge": "c2FtcGxlLWNoYWxsZW5nZQ", "rpId": "localhost", "userVerification": "preferred", "timeout": 60_000}
)
CREATION_OPTIONS: Final = json.dumps(
    {
        "challenge": "c2FtcGxlLWNoYWxsZW5nZQ",
        "rp": {"id": "localhost", "name": "Gatehouse"},
        "user": {"id": "MDAwMDAwMDAwMQ", "name": ANNA, "displayName": "Anna"},
        "pubKeyCredParams": [{"type": "public-key", "alg": -7}, {"type": "public-key", "alg": -257}],
        "authenticatorSelection": {"residentKey": "required", "userVerification": "preferred"},
        "timeout": 60_000,
    }
)

GUIDES: Final = [
    ("automation", [guides.GuideLink(name="webhooks", title="Webhooks", excerpt="… signs each delivery …")]),
    *((group, [guides.GuideLink(name="import", title="Import")]) for group in guides.GROUPS if group != "automation"),
]
GUIDE: Final = render_markdown(
    "# Webhooks\n\nAn *event* with `code`:\n\n## Fields\n\n| name | meaning |\n|---|---|\n| `id` | the event |\n\n"
    f"```json\n{json.dumps({'id': 'x' * 200})}\n```\n\n"
    "```sh run=wire/test_guides.py\ngatehouse config set guests.enabled=true\n```\n\n"
    "```python compiled=wire/test_guides.py\nimport os\n```\n\n```go not-run\npackage main\n```\n",
    lambda address: address,
)
SIGN_IN: Final = page.SignInContext(csrf=CSRF, interaction=ASK, passkey_options=REQUEST_OPTIONS)
FACTOR: Final = page.SecondFactorContext(
    csrf=CSRF,
    interaction=ASK,
    method=FactorMethod.TOTP,
    others=(FactorMethod.PASSKEY, FactorMethod.EMAIL, FactorMethod.PHONE, FactorMethod.RECOVERY),
)
LINKS: Final = tuple(
    DestinationLink(name=name, uri=f"https://atlas.studio.example/{name}", host="atlas.studio.example")
    for name in LINK_FIELDS
)


def a_given_grant(**fields: Any) -> account.GivenGrantRow:
    grant = account.GivenGrantRow(
        grant_id="0" * 32,
        scopes=("openid", "email"),
        shown_scopes=("openid", "email"),
        resource="",
        acting=(),
        since=NOW - 12 * DAY,
        used_at=NOW - DAY,
        ends_at=NOW + 7 * DAY,
    )
    return replace(grant, **fields)


ACTING: Final = (ActingApplication(application_id=50_002, name="Studio Agents", programs=("Planner", "Runner")),)
CONSENT: Final = page.ConsentContext(
    csrf=CSRF,
    interaction=ASK,
    application="Sky Atlas",
    owner="Mind Games",
    returns_to="atlas.studio.example",
    nick="Anna",
    login=ANNA,
    scopes=("openid", "email"),
    acting=ACTING,
    days=(1, 7),
    logo="/static/0/mark.svg",
    links=LINKS,
)
CONFIRM_SIGN_IN: Final = sso.ConfirmSignInContext(
    csrf=CSRF,
    interaction=ASK,
    application="Sofa TV",
    code="WDJB-MJHT",
    asked_at=NOW - MINUTE,
    now=NOW,
    address="192.0.2.7",
    is_nearby=True,
    nick="Anna",
    login=ANNA,
)
PHONE_LINK: Final = "https://login.studio.example/?gsid=3f1c2f0e-6b1d-4c7a-9d0e-5a4b3c2d1e0f"
CONFIRM_GAME: Final = sso.ConfirmGameContext(
    csrf=CSRF,
    interaction=ASK,
    gsid="signing_in",
    application="Sky Raiders",
    logo="/static/0/mark.svg",
    asked_at=NOW - 12,
    now=NOW,
    place="192.0.2.7",
    nearness=NetworkNearness.SAME,
    is_waited_for=True,
    phone_link=PHONE_LINK,
    nick="Anna",
    login=ANNA,
)
GAME_CONSENT: Final = ConsentRequest(client="Sky Raiders back end", scopes=("openid", "profile"))
FORM_POST: Final = FormPost(
    action="https://atlas.studio.example/cb",
    fields={"code": "sample", "state": "s", "iss": "https://login.studio.example"},
    form_action="https://atlas.studio.example",
    returns_to="atlas.studio.example",
)
SIGN_OUT: Final = sso.SignOutContext(csrf=CSRF, nick="Anna", login=ANNA)
BAD_SIGN_OUT: Final = sso.BadSignOutContext(
    reference="4f1c9ae27b03d586", reason="the post_logout_redirect_uri is not registered for this client"
)
CLIENT_ERROR: Final = page.ClientErrorContext(
    reference="4f1c9ae27b03d586",
    application="Sky Atlas",
    reason="redirect_uri is not registered for this client",
    client_id="atlas",
    received="https://atlas.studio.example/callback/",
    registered=(
        page.RegisteredTarget(same="https://atlas.studio.example/callback", other="", received_other="/"),
        page.RegisteredTarget(
            same="https://", other="staging.atlas.studio.example/cb", received_other="atlas.studio.example/callback/"
        ),
    ),
)
TERMS: Final = TermsContext(
    csrf=CSRF,
    interaction=ASK,
    application="Sky Raiders",
    version="terms:2026-11,privacy:3",
    documents=(
        TermsDocument(
            document_id="terms", title="Terms of use", url="https://studio.example/terms", version="2026-11"
        ),
        TermsDocument(
            document_id="privacy", title="Privacy policy", url="https://studio.example/privacy", version="3"
        ),
    ),
)
PUZZLE: Final = Puzzle(puzzle="register.4.1788003600.sample", difficulty=4, expires=NOW + 3_600)
CONFIRM: Final = page.ReauthenticationContext(csrf=CSRF, interaction=ASK, login=ANNA, has_password=True)


def an_invitation(application: str = "", role: str = "", project: str = "", group: str = "") -> NamedInvitation:
    access = InvitedAccess(application_id=50001, role=role, end=NOW + 3 * DAY if role else 0)
    sent = AccessInvitation(
        invitation_id="i1",
        user_id="1000000001",
        login=ANNA,
        inviter="1000000002",
        access=access,
        created_at=NOW,
        expires_at=NOW + 7 * DAY,
    )
    return NamedInvitation(invitation=sent, application=application, role=role, project=project, group=group)


def own_place(scope: Scope, *sources: RuleSource) -> OwnScope:
    """A permission explained by one rule and many more for each reason, with an expiry."""
    rule = Rule(RuleSection.PRIVATE, "maps.can_place")
    lines = (EffectiveRule(rule=rule, sources=sources, params=("harbour", "light"), ends_at=NOW + 3 * DAY),)
    reasons = [Reason(sources=(source,), ends_at=NOW + 3 * DAY, lines=lines, more=41) for source in sources]
    return OwnScope(application="Sky Atlas", scope=scope, project="Sky", reasons=tuple(reasons))


SIGN_INS: Final = tuple(
    account.SignInHistoryRow(
        at=NOW - number * DAY,
        method=method,
        application="Sky Atlas" if number % 2 else "",
        device="" if number % 2 else "Firefox, Linux",
        place="Stockholm, Sweden" if number % 2 else "",
        address="2001:db8:85a3:8d3:1319:8a2e:370:7348" if number % 2 else "192.0.2.10",
    )
    for number, method in enumerate(["", *SignInMethod])
)
NEW_ACCOUNT: Final = account.AccountContext(
    csrf=CSRF,
    mail_is_logged=True,
    now=NOW,
    user_id="4711204518",
    nick="Anna",
    profile_rows=form_rows(OWN_FIELDS),
    profile={**dict.fromkeys((one.name for one in OWN_FIELDS), ""), "nick": "Anna"},
    username="",
    login=ANNA,
    email_verified=False,
    has_password=False,
    sessions=(
        account.AccountSessionRow(
            session_id="s1",
            device="Firefox, Linux",
            place="",
            address="192.0.2.10",
            created_at=NOW - 5 * MINUTE,
            seen_at=NOW,
            is_current=True,
        ),
    ),
)
FULL_ACCOUNT: Final = replace(
    NEW_ACCOUNT,
    email_verified=True,
    has_password=True,
    may_remove_password=True,
    picture="/static/0/mark.svg",
    pending_login="anna@new.example",
    notice=Notice.PASSKEY_ADDED,
    may_administer=True,
    is_banned=True,
    passkeys=(
        account.AccountPasskeyRow(
            passkey_id="p1", name="Work laptop", created_at=NOW - 90 * DAY, used_at=NOW - 2 * 3600
        ),
        account.AccountPasskeyRow(passkey_id="p2", name="A" * 64, created_at=NOW - DAY, used_at=0),
    ),
    identities=(
        account.ConnectedIdentity(
            provider="google",
            name="Google",
            issuer="https://accounts.google.com",
            subject="1",
            label=LONG_LOGIN,
            created_at=NOW - 30 * DAY,
            used_at=NOW - DAY,
        ),
    ),
    connectable=(account.ConnectableProvider(provider="steam", name="Steam"),),
    totp_since=NOW - 60 * DAY,
    email_code=True,
    recovery_left=1,
    data_in=(
        account.DataRequestStatus(name="Shop", state="done"),
        account.DataRequestStatus(name="Forum", state="waiting"),
        account.DataRequestStatus(name="Arcade", state="failed"),
    ),
    may_ask_for_data=True,
    sessions=(
        *NEW_ACCOUNT.sessions,
        account.AccountSessionRow(
            session_id="s2",
            device="Safari, iPhone",
            place="Stockholm, Sweden",
            address="2001:db8:85a3:8d3:1319:8a2e:370:7348",
            created_at=NOW - 40 * DAY,
            seen_at=NOW - 3 * DAY,
            is_current=False,
        ),
        account.AccountSessionRow(
            session_id="s3",
            device="",
            place="",
            address="198.51.100.7",
            created_at=NOW - 41 * DAY,
            seen_at=NOW - 40 * DAY,
            is_current=False,
        ),
    ),
    sign_ins=SIGN_INS,
    applications=(
        account.ConnectedApplication(
            client_id="atlas",
            name="Sky Atlas",
            scopes=SCOPES,
            shown_scopes=SCOPES,
            since=NOW - 12 * DAY,
            used_at=NOW - DAY,
            ends_at=NOW + 7 * DAY,
            logo="/static/0/mark.svg",
            grants=(a_given_grant(), a_given_grant(acting=ACTING)),
        ),
        account.ConnectedApplication(
            client_id="tv",
            name="Sofa TV",
            scopes=SCOPES,
            shown_scopes=SCOPES,
            since=NOW - 12 * DAY,
            grants=(a_given_grant(),),
        ),
    ),
    permissions=OwnPermissions(
        places=(
            own_place(ROOT, *(RuleSource(kind=kind, role="editor", group="Testers") for kind in SourceKind)),
            *(
                own_place(Scope("sky", kind, "50001"), RuleSource(kind=SourceKind.GROUP_GRANT, role="tester"))
                for kind in ResourceKind
            ),
        ),
        is_cut=True,
    ),
    activity=(
        account.AccountActivityRow(at=NOW - 30, event="user.changed", address="192.0.2.10"),
        account.AccountActivityRow(at=NOW - DAY, event="role.assigned"),
        account.AccountActivityRow(at=NOW - 90 * DAY, event="user.created", address="192.0.2.10"),
    ),
    failures=tuple(
        account.FailureRow(
            hour=NOW - number * 3_600, reason=reason, network="192.0.2.0/24", place="Vienna", times=1 + number
        )
        for number, reason in enumerate(FailureReason)
    ),
)

TESTED_PERSON: Final = ForeignPerson(
    issuer="https://accounts.google.com",
    subject="110169484474386276334",
    email=ANNA,
    email_verified=True,
    name="Anna Berg",
    claims={"email": ANNA, "email_verified": True, "name": "Anna Berg", "sub": "110169484474386276334"},
)
WHY_DENIED: Final = DenialReason(
    by="restricted_domains", check="/console/access/check?user_id=1000000001&application_id=50001"
)


def documented_example(operation_id: str, auth: RequiredAuth) -> DocumentedOperation:
    """An operation of the API documentation that needs these credentials."""
    request = ExampleRequest(
        title="one permission",
        method="GET" if auth is RequiredAuth.SESSION else "POST",
        target="/api/permissions/check",
        headers={},
        auth=auth,
        body_kind=None if auth is RequiredAuth.SESSION else BodyKind.JSON,
        fields={"application_id": 50001, "data": {"user_id": "1000000007", "checks": [{"rule": "user.kick"}]}},
    )
    return DocumentedOperation(
        operation_id=operation_id,
        method=request.method,
        path=request.target,
        summary="Check up to 1,000 permissions of a user",
        description="Answers true or false for each check, in their order.",
        auth="person" if auth is RequiredAuth.USER_JWT_AND_FACTOR else auth.value,
        fields=[FieldRow(name="data.checks", kind="list of object", required=True, description="At most 100")],
        examples=[
            DocumentedExample(
                request=request, curl=request.curl("https://id.example"), response="200 OK", changes=True
            )
        ],
        answers=[("200", "OK"), ("403", "Forbidden")],
        answer_fields=[FieldRow(name="data", kind="list of boolean")],
    )


DOCS: Final = DocsContext(
    groups=[
        DocumentedGroup(
            name="Permissions",
            description="Ask who may do what and why.",
            operations=[
                documented_example(f"sample.{auth.value}", auth)
                for auth in (
                    *(RequiredAuth.NONE, RequiredAuth.SESSION, RequiredAuth.CLIENT, RequiredAuth.ACCESS_TOKEN),
                    *(RequiredAuth.USER_JWT_AND_FACTOR, RequiredAuth.ACCESS_KEY),
                )
            ],
        )
    ],
    placeholders={"id": "An ID from the answer of an example above it"},
    variables={"JWT": "A user JWT"},
    api_version="1.0.0",
)
STATES: Final[Mapping[str, PageContext]] = {
    "docs": DOCS,
    "docs-signed-in": replace(DOCS, nick="Anna", csrf="sample", is_fresh=True),
    "docs-confirm": replace(DOCS, nick="Anna", csrf="sample"),
    "branding-colors": ColorPreviewContext(swatches=swatches(Color.parse("#ffd24a"))),
    "setup": page.SetupContext(token="sample"),
    "setup-problem": page.SetupContext(
        token="sample", login=ANNA, nick="Anna", problem=PageProblem(what=ProblemKind.PASSWORD_WEAK, field="password")
    ),
    "setup-done": page.SetupDoneContext(nick="Anna", login=ANNA, user_id="4711204518"),
    "setup-done-here": page.SetupDoneContext(
        nick="Anna",
        login=ANNA,
        user_id="4711204518",
        sample_app=".venv/bin/gatehouse sample-app --dev",
        sample_game="/opt/studio/gatehouse/bin/gatehouse sample-game --dev --data /srv/trying/gatehouse",
    ),
    "sign-in": SIGN_IN,
    "sign-in-for-application": replace(
        SIGN_IN,
        application="Sky Atlas",
        returns_to="atlas.studio.example",
        register_enabled=True,
        links=LINKS,
        logo="/static/0/mark.svg",
    ),
    "sign-in-wrong": replace(
        SIGN_IN, login=ANNA, problem=PageProblem(what=ProblemKind.WRONG_LOGIN), register_enabled=True
    ),
    "sign-in-providers": replace(
        SIGN_IN,
        providers=tuple(
            page.ProviderButton(name=name, path=f"/sign-in/with/{name.lower()}")
            for name in ("Google", "Steam", "Studio")
        ),
        problem=PageProblem(what=ProblemKind.PROVIDER_FAILED, text="Steam"),
    ),
    "sign-in-by-email": replace(SIGN_IN, email_enabled=True, usernames_enabled=False, register_enabled=True),
    "email-sign-in": by_email.EmailSignInContext(csrf=CSRF, interaction=ASK, login=ANNA),
    "email-sign-in-wrong": by_email.EmailSignInContext(
        csrf=CSRF, login=LONG_LOGIN, problem=PageProblem(what=ProblemKind.WRONG_CODE)
    ),
    "email-registration": by_email.EmailSignInContext(csrf=CSRF, login=ANNA, registers=True, nick="Anna", minutes=1),
    "email-link": by_email.EmailedLinkContext(
        csrf=CSRF, token="x", login=ANNA, application="Sky Atlas", returns_to="atlas.studio.example"
    ),
    "email-link-registers": by_email.EmailedLinkContext(csrf=CSRF, token="x", login=ANNA, creates=True),
    "email-link-elsewhere": by_email.LinkElsewhereContext(),
    "sign-in-for-game": replace(SIGN_IN, phone_link=PHONE_LINK, register_enabled=True),
    "sign-in-as-guest": replace(
        SIGN_IN, application="Sky Raiders", guest="Guest edbe", phone_link=PHONE_LINK, register_enabled=True
    ),
    "sign-in-as-guest-without-registration": replace(SIGN_IN, application="Sky Raiders", guest="W" * 32),
    "sign-in-throttled": replace(
        SIGN_IN, login=LONG_LOGIN, problem=PageProblem(what=ProblemKind.THROTTLED, seconds=95)
    ),
    "sign-in-here": replace(SIGN_IN, notice=Notice.SIGN_IN_HERE, passkeys_enabled=False),
    "already-signed-in": page.AlreadySignedInContext(
        csrf=CSRF,
        interaction=ASK,
        nick="Anna",
        login=ANNA,
        application="Sky Atlas",
        returns_to="atlas.studio.example",
    ),
    "already-signed-in-long": page.AlreadySignedInContext(
        csrf=CSRF, interaction=ASK, nick="W" * 64, login=LONG_LOGIN
    ),
    "consent": CONSENT,
    "consent-document": replace(
        CONSENT,
        owner="",
        document_host="atlas.studio.example",
        scopes=("openid", f"https://api.studio.example{SCOPE_MARK}", f"https://api.studio.example{SCOPE_MARK}Report"),
    ),
    "consent-api-application": replace(
        CONSENT, scopes=("openid", *(f"Sky Raiders{SCOPE_MARK}{name}" for name in APPLICATION_SCOPES))
    ),
    "consent-everything": replace(
        CONSENT,
        application="W" * 64,
        returns_to=f"{'subdomain.' * 8}example",
        login=LONG_LOGIN,
        scopes=SCOPES,
        links=(replace(LINKS[0], host=f"{'subdomain.' * 8}example"),),
    ),
    "form-post": page.FormPostContext(form=FORM_POST),
    "provider-redirect": page.ProviderRedirectContext(
        provider="Google",
        target="https://accounts.google.com/o/oauth2/v2/auth?state=x",
        host="https://accounts.google.com",
    ),
    "form-post-long": page.FormPostContext(form=replace(FORM_POST, returns_to=f"{'subdomain.' * 8}example")),
    "device": sso.DeviceContext(csrf=CSRF),
    "device-unknown": sso.DeviceContext(
        csrf=CSRF, user_code="WDJB-MJHT", problem=PageProblem(what=ProblemKind.UNKNOWN_CODE)
    ),
    "confirm-sign-in": CONFIRM_SIGN_IN,
    "confirm-sign-in-elsewhere": replace(
        CONFIRM_SIGN_IN, application="W" * 64, is_nearby=False, login=LONG_LOGIN, scopes=SCOPES
    ),
    "confirm-game": CONFIRM_GAME,
    "confirm-game-consent": replace(CONFIRM_GAME, consent=GAME_CONSENT),
    "confirm-game-elsewhere": replace(
        CONFIRM_GAME,
        application="W" * 64,
        choices=("42", "17", "93"),
        asked_at=NOW - 1,
        place="Stockholm, Sweden",
        nearness=NetworkNearness.DIFFERENT,
        login=LONG_LOGIN,
    ),
    "confirm-game-upgrade": replace(CONFIRM_GAME, choices=("42", "17", "93"), guest="Guest 3f2a"),
    "confirm-game-merge": replace(
        CONFIRM_GAME, choices=("42", "17", "93"), guest="Guest 3f2a", merges_guest=True, login=LONG_LOGIN
    ),
    "confirm-game-unknown": replace(
        CONFIRM_GAME,
        application="",
        asked_at=NOW - 3 * MINUTE,
        place="2001:db8:85a3:8d3:1319:8a2e:370:7348",
        nearness=NetworkNearness.UNKNOWN,
        is_waited_for=False,
    ),
    **{f"game-{end.value.replace('_', '-')}": sso.GameEndContext(end=end) for end in GameEnd},
    "game-followed": sso.GameEndContext(end=GameEnd.CONFIRMED, gsid="confirmed", until="cancelled Success Error"),
    "game-denied": sso.GameDeniedContext(application="Sky Raiders", login=ANNA, ask="Mind Games"),
    "game-denied-explained": sso.GameDeniedContext(application="Sky Raiders", login=ANNA, why=WHY_DENIED),
    "game-denied-unnamed": sso.GameDeniedContext(login=LONG_LOGIN),
    "banned": sso.BannedContext(login=LONG_LOGIN),
    "banned-in-game": sso.BannedContext(
        login=ANNA, application="Sky Raiders", public_text="Cheating in ranked games", until=1_900_000_000
    ),
    "device-done": sso.DeviceDoneContext(is_signed_in=True),
    "device-cancelled": sso.DeviceDoneContext(is_signed_in=False),
    "sign-out": SIGN_OUT,
    "bad-sign-out": BAD_SIGN_OUT,
    "bad-sign-out-signed-in": replace(BAD_SIGN_OUT, csrf=CSRF),
    "sign-out-asked": replace(
        SIGN_OUT,
        application="Sky Atlas",
        client_id="atlas",
        post_logout_redirect_uri="https://atlas.studio.example/bye",
        state="s",
        login=LONG_LOGIN,
    ),
    "factor-totp": FACTOR,
    "factor-wrong": replace(FACTOR, problem=PageProblem(what=ProblemKind.WRONG_CODE)),
    "factor-email": replace(
        FACTOR,
        method=FactorMethod.EMAIL,
        others=(FactorMethod.RECOVERY,),
        sent_to="a•••@studio.example",
        is_sent=True,
        notice=Notice.CODE_SENT,
    ),
    "factor-email-unsent": replace(
        FACTOR, method=FactorMethod.EMAIL, others=(FactorMethod.RECOVERY,), sent_to="a•••@studio.example"
    ),
    "factor-phone": replace(
        FACTOR,
        method=FactorMethod.PHONE,
        others=(FactorMethod.TOTP, FactorMethod.RECOVERY),
        sent_to="… 789",
        is_sent=True,
        notice=Notice.CODE_SENT,
    ),
    "factor-phone-unsent": replace(
        FACTOR, method=FactorMethod.PHONE, others=(FactorMethod.RECOVERY,), sent_to="… 789"
    ),
    "factor-phone-refused": replace(FACTOR, method=None, others=()),
    "factor-phone-closed": replace(
        FACTOR, method=None, others=(), problem=PageProblem(what=ProblemKind.PHONE_CLOSED)
    ),
    "factor-recovery": replace(FACTOR, method=FactorMethod.RECOVERY, others=(FactorMethod.TOTP,)),
    "factor-passkey": replace(FACTOR, method=FactorMethod.PASSKEY, others=(), passkey_options=REQUEST_OPTIONS),
    "short-token": page.ShortTokenContext(csrf=CSRF, stoken="sample", nick="Anna", login=ANNA),
    "confirm-phone-not-enough": replace(
        CONFIRM, has_password=False, problem=PageProblem(what=ProblemKind.PHONE_NOT_ENOUGH)
    ),
    "confirm": replace(CONFIRM, methods=(FactorMethod.PASSKEY,), passkey_options=REQUEST_OPTIONS),
    "confirm-code": replace(
        CONFIRM,
        has_password=False,
        methods=(FactorMethod.TOTP, FactorMethod.EMAIL),
        problem=PageProblem(what=ProblemKind.CODE_SPENT),
    ),
    "confirm-passkey": replace(
        CONFIRM, has_password=False, methods=(FactorMethod.PASSKEY,), passkey_options=REQUEST_OPTIONS
    ),
    "register": page.RegisterContext(csrf=CSRF),
    "register-from-application": page.RegisterContext(
        csrf=CSRF, interaction=ASK, application="Sky Raiders", returns_to="sky-raiders.example"
    ),
    "registration-sent": page.RegistrationSentContext(csrf=CSRF, login=ANNA, application="Sky Raiders"),
    "registration-sent-wrong-code": page.RegistrationSentContext(
        csrf=CSRF, login=ANNA, problem=PageProblem(what=ProblemKind.WRONG_CODE, field="otp")
    ),
    "registered-elsewhere": page.RegisteredElsewhereContext(
        login=ANNA, sign_in="/sign-in", application="Sky Raiders"
    ),
    "verify-elsewhere": page.VerifyElsewhereContext(
        csrf=CSRF, token="sample", login=ANNA, code="4711 0815", application="Sky Raiders"
    ),
    "verify-elsewhere-late": page.VerifyElsewhereContext(
        csrf=CSRF, token="sample", login=ANNA, problem=PageProblem(what=ProblemKind.PASSWORD_WEAK, field="password")
    ),
    "verify-and-continue": page.VerifyEmailContext(
        csrf=CSRF, token="sample", login=ANNA, application="Sky Raiders", continues=True
    ),
    "invite-to-application": page.InviteContext(
        csrf=CSRF, token="sample", login=ANNA, nick="Anna", application="Sky Raiders", continues=True
    ),
    "reset-and-continue": page.ResetContext(csrf=CSRF, token="sample", login=ANNA, application="Sky Raiders"),
    "verify-and-continue-plain": page.VerifyEmailContext(csrf=CSRF, token="sample", login=ANNA, continues=True),
    "register-optional": page.RegisterContext(csrf=CSRF, interaction=ASK, password_optional=True),
    "register-domains": page.RegisterContext(
        csrf=CSRF,
        login="anna@elsewhere.example",
        nick="Anna",
        domains=("studio.example", "games.studio.example"),
        problem=PageProblem(what=ProblemKind.DOMAIN_REFUSED),
    ),
    "terms": TERMS,
    "terms-age": replace(TERMS, application="", asks_age=True, problem=PageProblem(what=ProblemKind.BIRTH_DATE)),
    "terms-only-age": replace(TERMS, documents=(), asks_age=True),
    **{f"terms-{end.value}": TermsEndContext(end=end) for end in TermsEnd},
    "register-puzzle": page.RegisterContext(
        csrf=CSRF, login=ANNA, puzzle=PUZZLE, problem=PageProblem(what=ProblemKind.PUZZLE_UNSOLVED)
    ),
    "forgot-puzzle": page.ForgotContext(
        csrf=CSRF, login=ANNA, puzzle=PUZZLE, problem=PageProblem(what=ProblemKind.NEEDS_SCRIPT, seconds=1_500)
    ),
    "check-mail-verify": page.CheckMailContext(csrf=CSRF, purpose=MailPurpose.VERIFY, login=ANNA),
    "check-mail-reset": page.CheckMailContext(csrf=CSRF, purpose=MailPurpose.RESET, login=LONG_LOGIN),
    "check-mail-change": page.CheckMailContext(csrf=CSRF, purpose=MailPurpose.CHANGE, login=ANNA, minutes=1),
    "verify-email": page.VerifyEmailContext(csrf=CSRF, token="sample", login=ANNA),
    "verify-email-ends": page.VerifyEmailContext(csrf=CSRF, token="sample", login=ANNA, ending=EVERYTHING_ENDS),
    "verify-email-elsewhere": page.VerifyEmailContext(csrf=CSRF, token="sample", login=ANNA, needs_session=True),
    "email-verified": page.EmailVerifiedContext(login=ANNA),
    "invite": page.InviteContext(csrf=CSRF, token="sample", login=ANNA),
    "invite-problem": page.InviteContext(
        csrf=CSRF,
        token="sample",
        login=ANNA,
        nick="Anna",
        problem=PageProblem(what=ProblemKind.PASSWORD_SHORT, field="password"),
    ),
    "provider-test": ProviderTestContext(
        provider="Google",
        back="/console/settings/providers/google",
        taken=person_lines(TESTED_PERSON),
        claims=claim_lines(TESTED_PERSON),
    ),
    "provider-test-failed": ProviderTestContext(
        provider="Google", back="/console/settings/providers/google", problem="the ID token has another issuer"
    ),
    "invitations": account.InvitationsContext(
        csrf=CSRF,
        email_verified=True,
        refused=True,
        invitations=(
            an_invitation(application="Sky Raiders", role="moderator", project="Mind Games"),
            an_invitation(group="Testers"),
            an_invitation(),
        ),
    ),
    "invitations-unverified": account.InvitationsContext(
        csrf=CSRF, email_verified=False, invitations=(an_invitation(group="Testers"),)
    ),
    "invitations-none": account.InvitationsContext(csrf=CSRF, email_verified=True, invitations=()),
    "forgot": page.ForgotContext(csrf=CSRF),
    "forgot-throttled": page.ForgotContext(
        csrf=CSRF, login=ANNA, problem=PageProblem(what=ProblemKind.THROTTLED, seconds=7_300)
    ),
    "reset": page.ResetContext(csrf=CSRF, token="sample", login=ANNA),
    "reset-breached": page.ResetContext(
        csrf=CSRF, token="sample", login=ANNA, problem=PageProblem(what=ProblemKind.PASSWORD_BREACHED)
    ),
    "totp-setup": page.TotpSetupContext(
        csrf=CSRF, uri=f"otpauth://totp/Gatehouse:{ANNA}?secret={SECRET}&issuer=Gatehouse", secret=SECRET
    ),
    "totp-setup-asked-for": page.TotpSetupContext(
        csrf=CSRF,
        uri=f"otpauth://totp/Gatehouse:{ANNA}?secret={SECRET}&issuer=Gatehouse",
        secret=SECRET,
        next="/console/projects/new",
        other="/account/passkey?next=%2Fconsole%2Fprojects%2Fnew",
    ),
    "passkey-setup-asked-for": page.PasskeySetupContext(
        csrf=CSRF,
        passkey_options=CREATION_OPTIONS,
        next="/console/projects/new",
        other="/account/totp?next=%2Fconsole%2Fprojects%2Fnew",
    ),
    "guides": guides.GuideContext(groups=GUIDES),
    "guides-none": guides.GuideContext(search="blockchain"),
    "guide": guides.GuideContext(name="webhooks", title="Webhooks", content=GUIDE),
    "passkey-setup": page.PasskeySetupContext(csrf=CSRF, passkey_options=CREATION_OPTIONS, name="Firefox, Linux"),
    "passkey-setup-problem": page.PasskeySetupContext(
        csrf=CSRF, passkey_options=CREATION_OPTIONS, problem=PageProblem(what=ProblemKind.PASSKEY_FAILED)
    ),
    "recovery-codes": account.RecoveryCodesContext(codes=CODES, login=ANNA),
    "link-dead": page.DeadLinkContext(start_again="/forgot"),
    "link-dead-invitation": page.DeadLinkContext(),
    "expired": page.ExpiredContext(start_again="/sign-in"),
    "expired-stale": page.ExpiredContext(start_again="/sign-in", is_stale=True),
    "error": page.ErrorContext(
        code=404,
        title="Page not found",
        message="There is nothing at this address.",
        reference="4f1c9ae27b03d586",
    ),
    "client-error": page.ClientErrorContext(reference="4f1c9ae27b03d586"),
    "client-error-redirect": CLIENT_ERROR,
    "client-error-host": replace(
        CLIENT_ERROR,
        by_host=True,
        registered=(page.RegisteredTarget(same="atlas.studio.example", other="", received_other=""),),
    ),
    "signed-out": page.SignedOutContext(),
    "signed-out-everywhere": page.SignedOutContext(
        everywhere=True, application="Sky Atlas", return_to="https://atlas.studio.example/"
    ),
    "throttled": page.ThrottledContext(retry_after=90, start_again="/sign-in"),
    "access-denied-explained": page.AccessDeniedContext(
        application="Sky Atlas",
        login=ANNA,
        ask=("Mind Games",),
        return_to="https://atlas.studio.example/cb?error=access_denied",
        why=replace(WHY_DENIED, by="login_can", missing="login.can"),
    ),
    "access-denied-form": page.AccessDeniedContext(
        application="Sky Atlas", login=ANNA, return_form=FORM_POST, why=WHY_DENIED
    ),
    "access-denied-banned": page.AccessDeniedContext(
        application="Sky Atlas",
        login=ANNA,
        return_form=FORM_POST,
        why=replace(WHY_DENIED, by="banned", person="Anna Berg", place="Sky Atlas"),
    ),
    "access-denied-device": page.AccessDeniedContext(
        application="Sofa TV", login=ANNA, ask=("Mind Games",), on_device=True, why=WHY_DENIED
    ),
    "access-denied": page.AccessDeniedContext(
        csrf=CSRF,
        interaction=ASK,
        application="Sky Atlas",
        login=ANNA,
        ask=("Björn Ek", "atlas-admins@studio.example"),
        return_to="https://atlas.studio.example/cb?error=access_denied",
    ),
    "maintenance": page.MaintenanceContext(retry_after=600),
    "account-new": NEW_ACCOUNT,
    "account-full": FULL_ACCOUNT,
    "account-phone": replace(
        FULL_ACCOUNT,
        phones_enabled=True,
        phone="+4915123456789",
        phone_verified=True,
        pending_phone="+4915198765432",
        may_enable_phone_code=True,
    ),
    "account-phone-code": replace(
        FULL_ACCOUNT,
        phones_enabled=True,
        phone="+4915123456789",
        phone_verified=True,
        phone_code=True,
        may_enable_phone_code=True,
    ),
    "account-phone-refused": replace(FULL_ACCOUNT, phone="+4915123456789", phone_verified=True, phone_code=True),
    "account-phone-closed": replace(
        FULL_ACCOUNT,
        phones_enabled=True,
        phone="+4915123456789",
        phone_verified=True,
        phone_code=True,
        phone_closed=True,
    ),
    "account-phone-unverified": replace(FULL_ACCOUNT, phones_enabled=True, phone="+4915123456789"),
    "account-phone-problem": replace(
        NEW_ACCOUNT,
        phones_enabled=True,
        typed="0151 23456789",
        problem=PageProblem(what=ProblemKind.PHONE_INVALID, field="phone"),
        problem_at=AccountSection.PHONE,
    ),
    "account-without-email": replace(NEW_ACCOUNT, login="", sign_ins=SIGN_INS[:6]),
    "account-problem": replace(
        FULL_ACCOUNT,
        notice=None,
        login=LONG_LOGIN,
        nick="W" * 64,
        typed="not an address",
        problem=PageProblem(what=ProblemKind.EMAIL_INVALID, field="login"),
        problem_at=AccountSection.EMAIL,
        theme=Theme.DARK,
    ),
    "account-password-problem": replace(
        FULL_ACCOUNT,
        notice=None,
        problem=PageProblem(what=ProblemKind.WRONG_PASSWORD),
        problem_at=AccountSection.PASSWORD,
        lang="de",
        recovery_left=8,
    ),
    "delete-account": account.DeleteAccountContext(csrf=CSRF, login=ANNA),
    "delete-account-differs": account.DeleteAccountContext(
        csrf=CSRF, login=LONG_LOGIN, problem=PageProblem(what=ProblemKind.LOGIN_DIFFERS)
    ),
}


def gallery() -> ASGIApp:
    """Serve `/gallery/<state>`, passkey endpoints that echo the request, and the state of a game session."""
    assets = Assets()
    pages = PageRenderer(assets, https=False, languages=languages_with_pseudo())

    async def show(request: Request) -> Response:
        return pages.render(request, STATES[request.path_params["state"]], status=200)

    async def echo(request: Request) -> Response:
        sent = escape(json.dumps(dict(parse_urlencoded(await request.body()))))
        icon = assets.address("mark.svg")
        return html_response(f'<title>arrived</title><link rel="icon" href="{icon}"><pre>{sent}</pre>')

    async def state(request: Request) -> Response:
        """The state of a sample session is its name."""
        return json_response({"state": request.query_params["gsid"], "closed": "", "waiting": True})

    async def static(request: Request) -> Response:
        """Every asset but the script that leaves its page at once."""
        if request.path_params["name"] == "form_post.js":
            return Response("", media_type="text/javascript")
        return await assets.serve(request)

    state_pages = Endpoint(
        name="gallery",
        path="/gallery/{state}",
        methods=("GET",),
        handler=show,
        dialect=Dialect.PAGE,
        rate_class=RateClass.PUBLIC,
        hidden=True,
    )
    echoes = [
        replace(state_pages, name=f"echo{path}", path=path, methods=("POST",), handler=echo)
        for path in (Path.SIGN_IN_PASSKEY, Path.SECOND_FACTOR, Path.PASSKEY)
    ]
    followed = replace(state_pages, name="state", path=Path.GAME_STATE, handler=state)
    return SampleAsgiApp(endpoints=[state_pages, *echoes, followed, replace(assets.endpoint(), handler=static)]).app()


@asynccontextmanager
async def running_gallery() -> AsyncIterator[str]:
    """Yield the gallery's address, with a host name, because passkeys accept no loopback address."""
    port = free_port()
    async with serve_in_loop(gallery(), port=port, clock=MovableClock(), stopping=ShutdownSignal()):
        yield f"http://localhost:{port}/gallery"
