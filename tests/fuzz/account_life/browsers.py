"""What a person does in a browser; each step returns how it ended."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

import httpx2

from gatehouse.mail.model import Message
from tests.fuzz.account_life.installation import STEAM
from tests.fuzz.account_life.outcomes import BANNED, FACTOR, IN, NO_MAIL, REFUSED, STALE
from tests.fuzz.account_life.people import BAN_TEXT, Person
from tests.support.browser import HttpBrowser, totp_code
from tests.support.mailbox import link_in_message, new_messages
from tests.support.oauth import query_of
from tests.wire.accounts.test_email_sign_in import CODE

USER_ID: Final = re.compile(r"<code>([0-9]{10})</code>")


class InBrowser(Person):
    # -- sign-in --------------------------------------------------------------------------------------

    async def sign_in(self, address: str, otp_for: str = "") -> str:
        return await self.end_of_sign_in(await self.browser.sign_in(address, self.password), otp_for)

    async def sign_in_with_provider(self, provider: str, address: str = "", otp_for: str = "") -> str:
        """Sign in with the provider, which says that this address is theirs, if there is one."""
        started = await self.browser.get(f"/sign-in/with/{provider}")
        assert started.status_code == HTTPStatus.SEE_OTHER, started.text
        page = await self.come_back(provider, started.headers["location"], address)
        return await self.end_of_sign_in(page, otp_for)

    async def come_back(self, provider: str, target: str, address: str = "") -> httpx2.Response:
        if provider == STEAM:
            answer = self.installation.steam_pages.sign_in(target, steam_id=self.steam_id)
        else:
            verified = {"email": address, "email_verified": True} if address else {}
            answer = self.installation.issuer.vendor.sign_in(target, **self.claims, **verified)
        return await self.browser.get(f"/sign-in/with/{provider}/callback?{urlencode(answer)}")

    async def sign_in_by_email(self, address: str, otp_for: str = "") -> str:
        await new_messages(self.service)
        page = await self.browser.get("/sign-in")
        hidden = dict(re.findall(r'name="(csrf|interaction)" value="([^"]*)"', page.text))
        self.browser.page = await self.browser.client.post(
            "/sign-in/email", data={**hidden, "login": address, "password": ""}
        )
        codes = [code for message in await self.messages_to(address) for code in CODE.findall(message.text)]
        if not codes:
            return NO_MAIL
        page = await self.browser.post("/sign-in/email/code", otp=codes[0])
        if page.status_code == HTTPStatus.OK and 'name="confirmed"' in page.text:  # it says what ends
            page = await self.browser.post("/sign-in/email/code")
        return await self.end_of_sign_in(page, otp_for)

    async def end_of_sign_in(self, page: httpx2.Response, otp_for: str = "") -> str:
        """Enter the code of the account's app, if it is asked for; return how the sign-in ended."""
        if page.headers.get("location", "").startswith("/sign-in/factor"):
            await self.browser.follow()
            if otp_for not in self.secrets:
                return FACTOR
            page = await self.browser.post("/sign-in/factor", otp=await self.next_code(otp_for))
        if BAN_TEXT in page.text:
            return BANNED
        return IN if page.status_code == HTTPStatus.SEE_OTHER else REFUSED

    async def signed_in_as(self) -> str:
        """Return the user ID that the account page of this browser shows; empty when no one is signed in."""
        page = await self.browser.get("/account")
        found = USER_ID.search(page.text)
        return found[1] if page.status_code == HTTPStatus.OK and found else ""

    async def sign_out(self) -> None:
        await self.browser.get("/account")
        await self.browser.submit("/sign-out")

    async def authorize(self, application: str, browser: HttpBrowser | None = None) -> str:
        """Return the code that the client of the application gets without any question; empty if it gets none."""
        path = self.installation.clients[application].authorize_path(prompt="none")
        page = await (browser or self.browser).get(path)
        return query_of(page.headers.get("location", "")).get("code", "")

    async def sign_in_to(self, application: str) -> bool:
        """Sign in to the client of the application; keep its refresh token."""
        code = await self.authorize(application)
        if code:
            tokens = await self.installation.clients[application].tokens(code)
            self.refresh_tokens[application] = tokens["refresh_token"]
        return bool(code)

    async def refresh(self, application: str) -> bool:
        """Use the refresh token of the application; keep the next one."""
        page = await self.installation.clients[application].refresh(self.refresh_tokens[application])
        assert page.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, page.text
        if page.status_code != HTTPStatus.OK:
            return False
        self.refresh_tokens[application] = page.json()["refresh_token"]
        return True

    # -- addresses ------------------------------------------------------------------------------------

    async def register(self, address: str) -> None:
        await self.browser.get("/register")
        fields = {"login": address, "nick": self.name.title()}
        page = await self.browser.post("/register", **fields, password=self.password)
        assert page.status_code == HTTPStatus.OK, page.text

    async def confirm(self, address: str) -> bool:
        """Ask for the link that confirms the address of their account, and open it."""
        link = await self.ask_for_link("/verify-email/again", address)
        if not link:
            return False
        return await self.open_link(link)

    async def reset(self, address: str) -> bool:
        return await self.set_password_with(await self.ask_for_link("/forgot", address))

    async def set_password_with(self, link: str) -> bool:
        """Open a link that sets a password: of a reset, or of an invitation."""
        if not link:
            return False
        await self.browser.get(link)
        path = link.partition("?")[0]
        nick = {"nick": self.name.title()} if path == "/invite" else {}
        page = await self.browser.post(path, **nick, password=self.password)
        return page.status_code == HTTPStatus.SEE_OTHER or BAN_TEXT in page.text

    async def ask_for_link(self, path: str, address: str) -> str:
        await new_messages(self.service)
        await self.browser.get("/forgot")
        await self.browser.post(path, login=address)
        return await self.link_to(address)

    async def link_to(self, address: str) -> str:
        """Return the link that was mailed to the address since the last look; empty if there is none."""
        links = [one for one in await self.messages_to(address) if "?token=" in one.text]
        return link_in_message(self.service, links[-1]) if links else ""

    async def messages_to(self, address: str) -> list[Message]:
        return [message for message in await new_messages(self.service) if message.to == address]

    async def ask_for_address(self, address: str) -> str:
        """Ask to change the address of the account; return the link that was mailed there."""
        await new_messages(self.service)
        return await self.link_to(address) if await self.submit("/account/email", login=address) == IN else ""

    async def open_link(self, link: str) -> bool:
        """Open a link that confirms an address."""
        page = await self.browser.get(link)
        token = link.partition("token=")[2]
        chosen = {"password": self.password} if "Continue here instead" in page.text else {}
        done = await self.browser.post("/verify-email", token=token, **chosen)
        return done.status_code in {HTTPStatus.OK, HTTPStatus.SEE_OTHER} or BAN_TEXT in done.text

    # -- the account page -----------------------------------------------------------------------------

    async def submit(self, path: str, holding: str = "", **fields: str) -> str:
        """Submit a form of the account page: done, refused, or only after a fresh sign-in."""
        await self.browser.get("/account")
        return self.end_of_form(await self.browser.submit(path, holding, **fields))

    def end_of_form(self, page: httpx2.Response) -> str:
        if page.status_code != HTTPStatus.SEE_OTHER:
            return REFUSED
        return STALE if page.headers["location"].startswith("/confirm") else IN

    async def connect(self, provider: str) -> str:
        await self.browser.get("/account")
        page = await self.browser.submit("/account/identities/connect", f'value="{provider}"')
        if page.status_code == HTTPStatus.SEE_OTHER:
            return self.end_of_form(page)
        target = page.headers["refresh"].removeprefix("0; url=")
        return self.end_of_form(await self.come_back(provider, target))

    async def disconnect(self, subject: str) -> str:
        return await self.submit("/account/identities/remove", f'value="{subject}"')

    async def change_password(self, *, is_first: bool) -> str:
        current = {} if is_first else {"current": self.password}
        return await self.submit("/account/password", **current, password=self.password)

    async def set_up_totp(self, user_id: str) -> str:
        page = await self.browser.get("/account/totp")
        if page.status_code != HTTPStatus.OK:
            return self.end_of_form(page)
        secret = self.browser.secret_in(page)
        page = await self.browser.submit("/account/totp", otp=totp_code(secret, self.service))
        assert page.status_code == HTTPStatus.OK, page.text
        self.secrets[user_id] = secret
        return IN

    async def remove_totp(self) -> str:
        return await self.submit("/account/totp/remove")

    async def sign_out_elsewhere(self) -> str:
        """Also without other sessions, when the page shows no button: tokens end too."""
        return self.end_of_form(await self.browser.post_with_csrf("/account/sessions/end-others"))

    async def delete_account(self, typed: str) -> str:
        page = await self.browser.get("/account/delete")
        if page.status_code != HTTPStatus.OK:
            return self.end_of_form(page)
        page = await self.browser.submit("/account/delete", login=typed)
        return IN if page.status_code == HTTPStatus.OK else REFUSED
