"""What a page tells the person's passkey manager, so that it forgets and renames passkeys (WebAuthn §5.1.10).

JSON of the calls of PublicKeyCredential with their options; browsers without them do nothing.
"""

import json
from collections.abc import Sequence

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.keys.encoding import encode_base64url


def unknown_passkey_signal(host: str, credential_id: bytes) -> str:
    options = {"rpId": host, "credentialId": to_base64url(credential_id)}
    return json.dumps({"signalUnknownCredential": options})


def account_signals(host: str, user: User, passkeys: Sequence[Passkey]) -> str:
    """Name all passkeys of the account, also when there are none left, and its present names."""
    whose = {"rpId": host, "userId": to_base64url(user.user_id.encode())}
    accepted = [to_base64url(passkey.credential_id) for passkey in passkeys]
    names = {"name": user.login or user.nick, "displayName": user.nick}
    return json.dumps(
        {
            "signalAllAcceptedCredentials": {**whose, "allAcceptedCredentialIds": accepted},
            "signalCurrentUserDetails": {**whose, **names},
        }
    )


def deleted_account_signal(host: str, user_id: str) -> str:
    """Say that the account has no passkey any more, and none of its names: the page is shown signed out."""
    whose = {"rpId": host, "userId": to_base64url(user_id.encode())}
    return json.dumps({"signalAllAcceptedCredentials": {**whose, "allAcceptedCredentialIds": []}})


def to_base64url(raw: bytes) -> str:
    return encode_base64url(raw).decode()
