"""A device with a key, which signs in as a guest."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gatehouse.audit.model import AuditOrigin
from tests.support.service import RunningService

GUEST: Final = "/proxy/api/guest"


async def turn_guests_on(service: RunningService, **settings: object) -> None:
    wanted = {f"guests.{name}": value for name, value in {"enabled": True, **settings}.items()}
    await service.services.settings_editor.save(wanted, AuditOrigin(actor="test"))


@dataclass(frozen=True, slots=True)
class Device:
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public_key(self) -> str:
        return b64encode(self.key.public_key().public_bytes_raw()).decode()

    def sign(self, challenge: str) -> dict[str, str]:
        """The fields that prove the key."""
        signature = b64encode(self.key.sign(challenge.encode())).decode()
        return {"device_key": self.public_key, "challenge": challenge, "signature": signature}

    async def log_in(self, service: RunningService, **fields: Any) -> dict[str, Any]:
        return await post_guest(service, **self.sign(await ask_challenge(service, **fields)), **fields)


async def ask_challenge(service: RunningService, **fields: Any) -> str:
    answer = await post_guest(service, **fields)
    assert (answer["status"], answer["expires_in"]) == ("CHALLENGE", 120)
    challenge: str = answer["challenge"]
    return challenge


async def post_guest(service: RunningService, **fields: Any) -> dict[str, Any]:
    response = await service.client.post(GUEST, json=fields)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body
