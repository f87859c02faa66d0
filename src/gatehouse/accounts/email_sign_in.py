"""Sign-in and registration by email: a link and a code, without a password (R10).

Both work once, for ten minutes, and only in the browser that asked: the email alone opens nothing, so that a person
who clicks the link of a stranger's request signs no one in (docs/decisions/0050).
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, EndedMethods, ProvingBrowser, proving_browser
from gatehouse.accounts.email_links import NO_USER_ID, EmailLinks, LinkRequester, as_owner
from gatehouse.accounts.errors import EmailCodeWrong, EmailSignInGone, LoginTaken, UserIdTaken
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import UNKNOWN_ACCOUNT, FailureReason
from gatehouse.accounts.field_checks import check_nick
from gatehouse.accounts.model import (
    EmailSignInProof,
    EmailSignInRequest,
    SignInMethod,
    User,
    check_login,
    check_new_login,
    is_same_mailbox,
)
from gatehouse.accounts.registration import refuse_foreign_domain
from gatehouse.accounts.second_factors.model import Factor, enabled_factors
from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.store import AccountStore, EmailLinkStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.sign_in_tally import SignInTally
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256, sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_secret, new_user_id
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.times import MINUTE
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail

EMAIL_SIGN_IN_SECONDS: Final = 600  # as long as a sign-in flow
# A code is the only secret of its request, unlike one beside a password: five emails in half an hour to one address
# and five tries each leave one chance in four million.
SIGN_IN_CODE_DIGITS: Final = 8
MAX_TYPED_CODE_LENGTH: Final = 40  # characters, spaces included
LINK_PATH: Final = "/sign-in/link"
SEALING_PURPOSE: Final = "email-sign-in"


class EmailSignInPolicy(msgspec.Struct, frozen=True, kw_only=True):
    is_on: bool
    registers: bool = False  # without a password
    domains: tuple[str, ...] = ()  # of addresses that may register; all if empty


class _RequestContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is about; sealed, because it names a person and a sign-in flow."""

    login: str
    lang: str
    handle: str
    user_id: str = ""  # "" for an account that is created when the email is used
    nick: str = ""


class EmailSignInClient(msgspec.Struct, frozen=True, kw_only=True):
    """The browser that signs in."""

    browser: bytes  # a digest of a secret that only this browser has
    origin: AuditOrigin
    device: str
    signed_in: UserSession | None = None  # its live session, of any account

    def proving(self, user: User) -> ProvingBrowser:
        return proving_browser(user, self.browser, self.signed_in)


class EmailedLink(SecretRecord, frozen=True, kw_only=True):
    """What the page of a link shows before it is used."""

    login: str
    creates: bool  # an account
    handle: SecretText


class EmailSignInResult(SecretRecord, frozen=True, kw_only=True):
    """A person who proved to read the mailbox of their account."""

    user: User
    handle: SecretText  # of the sign-in flow that asked
    created: bool = False


class EmailSignIn:
    def __init__(
        self,
        *,
        store: EmailLinkStore,
        accounts: AccountStore,
        links: EmailLinks,
        composer: Composer,
        recorder: Recorder,
        sealer: SecretSealer,
        tally: SignInTally,
        failures: FailedSignIns,
        clock: Clock,
        key: bytes,
        policy: Callable[[], EmailSignInPolicy],
        has_protected_role: Callable[[User], Awaitable[bool]],
    ) -> None:
        """`key` is the installation's: a stolen database alone must not allow guessing a code."""
        self._store = store
        self._accounts = accounts
        self._links = links
        self._composer = composer
        self._recorder = recorder
        self._sealer = sealer
        self._tally = tally
        self._failures = failures
        self._clock = clock
        self._key = key
        self._policy = policy
        self._has_protected_role = has_protected_role

    @property
    def is_on(self) -> bool:
        return self._policy().is_on

    @property
    def registers(self) -> bool:
        return self._policy().registers

    async def is_available_to(self, user: User) -> bool:
        """False for a protected role of application 1 (R10), and where a code by email is the only second factor.

        That code would prove the same mailbox a second time.
        """
        if not self.is_on or user.login is None or enabled_factors(user) == (Factor.EMAIL,):
            return False
        return not await self._has_protected_role(user)

    # -- the request ----------------------------------------------------------------------------------

    async def request(self, login: str, *, browser: bytes, handle: str, requester: LinkRequester) -> None:
        """Send a link and a code to the account's owner; the response never says whether there is an account.

        An exhausted quota looks the same. Raises BadAccount for an invalid address.
        """
        self._refuse_when_off(wanted=self.is_on)
        checked = check_login(login)
        if not await self._links.may_email(checked, requester.source, device_cookie=requester.device_cookie):
            return
        known = await self._store.user_by_login(checked)
        if known is None or known.blocked:
            content = _RequestContent(login=checked, lang=requester.lang, handle=handle)
            await self._simulate_check(checked)
            await self._save(MailTemplate.EMAIL_SIGN_IN, content, browser, requester.origin, discards=True)
        else:
            await self._send_to(known, handle, browser, requester.origin)

    async def request_registration(
        self, login: str, nick: str, *, browser: bytes, handle: str, requester: LinkRequester
    ) -> None:
        """Send a link and a code that create the account, or sign in to the one that has this address.

        Nothing is created before: no stranger reserves an address. Raises BadAccount for invalid input.
        """
        self._refuse_when_off(wanted=self.registers)
        checked, chosen = check_new_login(login), check_nick(nick)
        refuse_foreign_domain(checked, self._policy().domains)
        if not await self._links.may_email(checked, requester.source):
            return
        known = await self._store.user_by_login(checked)
        if known is None or known.blocked:
            content = _RequestContent(login=checked, lang=requester.lang, handle=handle, nick=chosen)
            discards = known is not None
            await self._simulate_check(checked)
            await self._save(MailTemplate.EMAIL_REGISTRATION, content, browser, requester.origin, discards=discards)
        else:
            await self._send_to(known, handle, browser, requester.origin)

    async def _simulate_check(self, login: str) -> None:
        """Look for the roles of an account that does not exist, so that it takes as long (LG-05)."""
        await self.is_available_to(User(user_id=NO_USER_ID, login=login, nick="", reg_time=0))

    async def _send_to(self, known: User, handle: str, browser: bytes, origin: AuditOrigin) -> None:
        content = _RequestContent(login=known.login or "", lang=known.lang, handle=handle, user_id=known.user_id)
        entry = self._recorder.record(AuditEvent.EMAIL_SIGN_IN_ASKED, origin, subject=known.user_id)
        allowed = await self.is_available_to(known)
        template = MailTemplate.EMAIL_SIGN_IN if allowed else MailTemplate.EMAIL_SIGN_IN_REFUSED
        await self._save(template, content, browser, origin, entry)

    async def _save(
        self,
        template: MailTemplate,
        content: _RequestContent,
        browser: bytes,
        origin: AuditOrigin,
        entry: AuditRecord | None = None,
        *,
        discards: bool = False,
    ) -> None:
        """Store the request and its email; `discards` does the same work and sends nothing (LG-05)."""
        code = f"{secrets.randbelow(10**SIGN_IN_CODE_DIGITS):0{SIGN_IN_CODE_DIGITS}}"
        secret, now = new_secret(), self._clock.now()
        request = EmailSignInRequest(
            browser=browser,
            user_id=content.user_id or NO_USER_ID,
            code=self._code_digest(browser, code),
            link=sha256(secret),
            sealed=self._sealer.seal(msgspec.json.encode(content), purpose=SEALING_PURPOSE),
            created_at=now,
            expires_at=now + EMAIL_SIGN_IN_SECONDS,
        )
        values = {
            "path": f"{LINK_PATH}?token={secret}",
            "code": f"{code[:4]} {code[4:]}",
            "minutes": str(EMAIL_SIGN_IN_SECONDS // MINUTE),
            "address": origin.address,
        }
        needed = {name: value for name, value in values.items() if name in template.needs}
        mails: tuple[OutboxMail, ...] = (
            self._composer.compose(template, to=content.login, lang=content.lang, **needed),
        )
        await self._store.save_email_request(request, entry, mails, discards=discards)

    # -- the answer -----------------------------------------------------------------------------------

    async def find_link(self, secret: str, *, browser: bytes) -> EmailedLink:
        """Return what the link would do in this browser, without using it. Raises EmailSignInGone."""
        sealed_request = await self._store.find_email_request(browser, sha256(secret), self._clock.now())
        content = self._unseal(sealed_request)
        return EmailedLink(login=content.login, creates=bool(content.nick), handle=content.handle)

    async def find_ending(self, login: str, client: EmailSignInClient) -> EndedMethods:
        """Return what ends when the browser signs in to the account of this address by email (R10)."""
        known = await self._store.user_by_login(login)
        if known is None:
            return ENDS_NOTHING
        return await self._links.find_ending(known, client.proving(known))

    async def accept_link(self, secret: str, client: EmailSignInClient) -> EmailSignInResult:
        """Use the link. Raises EmailSignInGone."""
        proof = EmailSignInProof(browser=client.browser, link=sha256(secret))
        return await self._accept(proof, client)

    async def accept_code(
        self, code: str, client: EmailSignInClient, *, confirmed: bool = True
    ) -> EmailSignInResult | EndedMethods:
        """Use the code, or return what would end with it, if it was not confirmed: then nothing is used up.

        Raises EmailCodeWrong, and EmailSignInGone, also after too many wrong ones.
        """
        typed = "".join(code[:MAX_TYPED_CODE_LENGTH].split())
        proof = EmailSignInProof(browser=client.browser, code=self._code_digest(client.browser, typed))
        try:
            if not confirmed:
                sealed_request = await self._store.use_email_request(proof, self._clock.now(), keeps=True)
                ending = await self.find_ending(self._unseal(sealed_request).login, client)
                if ending.names:
                    return ending
            return await self._accept(proof, client)
        except (EmailCodeWrong, EmailSignInGone) as refused:
            self._tally.count_refused(SignInMethod.EMAIL)
            owner = UNKNOWN_ACCOUNT if refused.user_id == NO_USER_ID else refused.user_id
            self._failures.count(owner, FailureReason.EMAIL_CODE, client.origin.address)
            raise

    async def _accept(self, proof: EmailSignInProof, client: EmailSignInClient) -> EmailSignInResult:
        content = self._unseal(await self._store.use_email_request(proof, self._clock.now()))
        created = False
        while (known := await self._store.user_by_login(content.login)) is None:
            if not content.nick:
                raise EmailSignInGone("the account has another address now")
            created = await self._create(content, client.origin)
        is_other = known.user_id != content.user_id and not content.nick
        if is_other or not is_same_mailbox(known.login or "", content.login):
            raise EmailSignInGone("the address belongs to another account now")
        if known.blocked:
            self._failures.count(known.user_id, FailureReason.BLOCKED, client.origin.address)
        if known.blocked or not await self.is_available_to(known):
            raise EmailSignInGone("not for this account")
        if not known.email_verified:
            known = await self._verify_address(known, client)
        return EmailSignInResult(user=known, handle=content.handle, created=created)

    async def _create(self, content: _RequestContent, origin: AuditOrigin) -> bool:
        """Create the account with its verified address; False if the address or the ID is in use: look again."""
        self._refuse_when_off(wanted=self.registers)
        user = User(
            user_id=new_user_id(),
            login=content.login,
            nick=content.nick,
            lang=content.lang,
            reg_time=self._clock.now(),
            email_verified=True,
        )
        entry = self._recorder.record(
            AuditEvent.USER_REGISTERED,
            as_owner(origin, user),
            subject=user.user_id,
            details={"auth": "email"},
            personal={"login": content.login, "nick": content.nick},
        )
        try:
            await self._accounts.create_user(user, entry)
        except (LoginTaken, UserIdTaken):
            return False
        return True

    async def _verify_address(self, user: User, client: EmailSignInClient) -> User:
        """Mark the address as verified, which ends what the browser did not prove at the first time (R10)."""
        origin = as_owner(client.origin, user)
        entry = self._recorder.record(AuditEvent.EMAIL_VERIFIED, origin, subject=user.user_id)
        notices = self._links.proof_notices(user, origin, client.device, [entry])
        return await self._store.verify_by_email(
            user.user_id, user.login_key or "", client.proving(user), notices, self._clock.now()
        )

    def _unseal(self, sealed: bytes | None) -> _RequestContent:
        plain = None if sealed is None else self._sealer.try_open(sealed, purpose=SEALING_PURPOSE)
        if plain is None:
            raise EmailSignInGone
        return msgspec.json.decode(plain, type=_RequestContent)

    def _code_digest(self, browser: bytes, code: str) -> bytes:
        return hmac_sha256(self._key, b"email-sign-in:" + browser + b":" + code.encode())

    def _refuse_when_off(self, *, wanted: bool) -> None:
        if not wanted:
            raise NotFound("sign-in by email is turned off")
