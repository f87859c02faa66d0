"""What games on a person's device do; a login returns how it ended."""

from http import HTTPStatus
from typing import Any, Final

from tests.fuzz.account_life.installation import CHEATERS, STEAM, VENDOR
from tests.fuzz.account_life.outcomes import BANNED, FACTOR, IN, REFUSED
from tests.fuzz.account_life.people import Person

GUEST_LOGIN: Final = "/proxy/api/guest"


class OnDevice(Person):
    async def log_in(self, address: str, application: str, otp_for: str = "") -> str:
        fields = {"login": address, "password": self.password}
        return await self.post_login("/proxy/api/login", otp_for, **fields, app_id=self.app_id(application))

    async def send_ticket(self, provider: str, application: str, otp_for: str = "") -> str:
        self.installation.steam.vac_banned = self.name in CHEATERS
        tickets = {
            VENDOR: lambda: self.installation.issuer.token(**self.claims),
            STEAM: lambda: self.installation.steam.ticket(steam_id=self.steam_id),
        }
        fields = {"platform": provider, "ticket": tickets[provider](), "app_id": self.app_id(application)}
        return await self.post_login("/proxy/api/platformLogin", otp_for, **fields)

    async def sign_in_as_guest(self, application: str, otp_for: str = "") -> str:
        """Sign in with the key of the device."""
        fields = {"app_id": self.app_id(application)}
        challenge = await self.service.client.post(GUEST_LOGIN, json=fields)
        if challenge.status_code != HTTPStatus.OK:
            return REFUSED
        proof = self.device.sign(challenge.json()["challenge"])
        return await self.post_login(GUEST_LOGIN, otp_for, **proof, **fields)

    async def post_login(self, path: str, otp_for: str = "", **fields: Any) -> str:
        fields |= {"factor": self.factor, "short_token": "1"}
        answer = await self.post(path, fields)
        if answer["status"] == "2STEP" and otp_for in self.secrets:
            second = {"request_id": answer["request_id"], "otp": await self.next_code(otp_for)}
            answer = await self.post(path, second)
        return self.end_of_login(answer)

    async def post(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        response = await self.service.client.post(path, json=fields)
        assert response.status_code == HTTPStatus.OK, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def end_of_login(self, answer: dict[str, Any]) -> str:
        """Keep the tokens; return how the login ended."""
        if answer["status"] == "OK":
            self.jwt, self.short_token = answer["jwt"], answer.get("stoken", "")
            return IN
        if answer.get("reason") == "banned":
            return BANNED
        return FACTOR if answer["status"] == "2STEP" else REFUSED

    def app_id(self, application: str) -> int:
        return self.installation.application_id(application)

    async def use_jwt(self, application: str) -> int:
        """Ask with the newest JWT what they may do in the application; return the HTTP status."""
        headers = {"Authorization": f"Bearer {self.jwt}", "Factor": self.factor}
        body = {"action": "get", "application_id": self.app_id(application), "data": {}}
        return (await self.service.client.post("/api/permissions/meta/data", json=body, headers=headers)).status_code

    async def exchange_jwt(self) -> int:
        """Exchange the newest JWT for an id_token; return the HTTP status."""
        headers = {"Authorization": f"Bearer {self.jwt}"}
        return (await self.service.client.post("/proxy/oauth/exchange", headers=headers)).status_code
