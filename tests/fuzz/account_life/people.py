"""What a person outside has: a password, a device, identities, an authenticator app."""

from base64 import b32encode
from dataclasses import dataclass, field

from tests.fuzz.account_life.installation import ARTISTS, PROVIDER_CLAIM, PROVIDER_GROUP, Installation
from tests.support.browser import AccountBrowser, totp_code
from tests.support.guests import Device
from tests.support.service import RunningService

BAN_TEXT = "Banned in the life of an account"


@dataclass(kw_only=True)
class Person:
    name: str
    installation: Installation
    number: int  # of this life: nothing of theirs was used before
    browser: AccountBrowser = field(init=False)
    device: Device = field(default_factory=Device)
    secrets: dict[str, str] = field(default_factory=dict)  # in their authenticator app, by user ID
    jwt: str = ""  # this and the next: of the newest login on their device
    short_token: str = ""
    refresh_tokens: dict[str, str] = field(default_factory=dict)  # the newest of each application

    def __post_init__(self) -> None:
        self.browser = AccountBrowser(self.service)

    @property
    def service(self) -> RunningService:
        return self.installation.nodes[self.name]

    @property
    def password(self) -> str:
        return f"the {self.number} wooden horses of {self.name}"

    @property
    def factor(self) -> str:
        """What games on their device send."""
        return f"device {self.number} of {self.name}"

    @property
    def subject(self) -> str:
        """The ID of their identity at the provider."""
        return f"{self.name}-{self.number}"

    @property
    def claims(self) -> dict[str, object]:
        """What the provider says about them."""
        return {"sub": self.subject, PROVIDER_CLAIM: [PROVIDER_GROUP] if self.name in ARTISTS else []}

    @property
    def steam_id(self) -> str:
        return f"7656119{sum(self.name.encode()):04}{self.number:06}"

    @property
    def former_secret(self) -> str:
        """What their authenticator app has of the system that accounts are imported from."""
        return b32encode(self.password.encode().ljust(40, b"."))[:32].decode()

    async def next_code(self, user_id: str) -> str:
        """Return a code for the account that was not used yet."""
        await self.service.clock.advance(30)
        return totp_code(self.secrets[user_id], self.service)
