"""The header Idempotency-Key: a create that is sent twice creates one thing, and both get the same answer (R9)."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.idempotency import Idempotency
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import CredentialPolicy
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.idempotency import CallerKey
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.envelope import JSON
from gatehouse.web.http.parse import read_json_object
from gatehouse.web.http.request_headers import header_values
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.http.routing import Endpoint, Handler

HEADER: Final = b"idempotency-key"
KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
CREATES: Final = frozenset({"create", "save", "invite", None})  # publish has no action
POLICY: Final = CredentialPolicy(audience=True)  # who is calling; the endpoint decides what they may do
CREDENTIAL_NAMES: Final = tuple(CredentialFields.__struct_fields__)


class IdempotentCreates(Struct, kw_only=True, eq=False):
    idempotency: Idempotency
    authenticator: Authenticator

    def wrap(self, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the header; actions that create nothing ignore it."""

        async def handle(request: Request) -> Response:
            headers = header_values(request.scope, HEADER)
            if not headers:
                return await endpoint.handler(request)
            key, body = check_key(headers), await read_json_object(request)
            if body.get("action") not in CREATES:
                return await endpoint.handler(request)
            return await self._run(request, key, body, endpoint.handler)

        return replace(endpoint, handler=handle, idempotent=True)

    async def _run(self, request: Request, key: str, body: Mapping[str, object], handler: Handler) -> Response:
        caller_key = await self._caller_key(request, key, body)
        asked = {name: value for name, value in body.items() if name not in CREDENTIAL_NAMES}
        digest = sha256(request.url.path.encode() + b"\n" + msgspec.json.encode(asked, order="deterministic"))

        async def perform() -> bytes:
            return bytes((await handler(request)).body)

        answer = await self.idempotency.run(caller_key, digest, perform)
        return Response(answer, 200, NO_STORE, media_type=JSON)

    async def _caller_key(self, request: Request, key: str, body: Mapping[str, object]) -> CallerKey:
        """Authenticate first: no caller reaches another caller's answer."""
        credentials = {name: body[name] for name in CREDENTIAL_NAMES if name in body}
        try:
            asked = msgspec.convert(credentials, CredentialFields)
        except msgspec.ValidationError as error:
            raise Malformed(str(error)) from None
        about = body.get("application_id")
        application_id = about if isinstance(about, int) and not isinstance(about, bool) else None
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, asked), POLICY, application_id=application_id
        )
        reach = authenticated.rights.service_reach
        return CallerKey(
            user_id=authenticated.caller.user_id, through=reach.application_id if reach else 0, digest=sha256(key)
        )


def check_key(headers: list[str]) -> str:
    if len(headers) != 1 or KEY.fullmatch(headers[0]) is None:
        raise Malformed("Idempotency-Key: must be sent once, 1 to 255 visible ASCII characters")
    return headers[0]
