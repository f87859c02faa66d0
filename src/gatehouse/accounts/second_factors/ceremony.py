"""The two WebAuthn ceremonies without storage: options for the browser, and verification of its response.

User verification is required in both, so that a passkey alone is as strong as a password and a code (R1).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Passkey, PasskeyRefused
from gatehouse.accounts.second_factors.passkeys import (
    CHALLENGE_LIFETIME,
    NewCredential,
    RelyingParty,
    UnverifiedResponse,
)

MAX_CREDENTIAL_ID_BYTES: Final = 1_023  # bytes; WebAuthn §7.1
MAX_PUBLIC_KEY_BYTES: Final = 1_024  # bytes; RSA with 4096 bits takes about 530


class WebAuthn:
    def __init__(self, party: RelyingParty) -> None:
        self._party = party

    def registration_options(self, user: User, challenge: bytes, existing: Sequence[Passkey]) -> str:
        options = generate_registration_options(
            rp_id=self._party.host,
            rp_name=self._party.name,
            user_id=user.user_id.encode(),
            user_name=user.login or user.nick,
            user_display_name=user.nick,
            challenge=challenge,
            timeout=CHALLENGE_LIFETIME * 1_000,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.PREFERRED,  # otherwise it is only a second factor
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[descriptor(passkey) for passkey in existing],
        )
        return options_to_json(options)

    def sign_in_options(self, challenge: bytes, allowed: Sequence[Passkey]) -> str:
        options = generate_authentication_options(
            rp_id=self._party.host,
            challenge=challenge,
            timeout=CHALLENGE_LIFETIME * 1_000,
            allow_credentials=[descriptor(passkey) for passkey in allowed],
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return options_to_json(options)

    def parse_registration(self, text: str) -> UnverifiedResponse:
        with refuse_malformed():
            return to_unverified_response(parse_registration_credential_json(text), handle=None)

    def verify_registration(self, response: UnverifiedResponse) -> NewCredential:
        with refuse_malformed():
            verified = verify_registration_response(
                credential=response.answer,
                expected_challenge=response.challenge,
                expected_rp_id=self._party.host,
                expected_origin=self._party.origin,
                require_user_verification=True,
            )
        if (
            len(verified.credential_id) > MAX_CREDENTIAL_ID_BYTES
            or len(verified.credential_public_key) > MAX_PUBLIC_KEY_BYTES
        ):
            raise PasskeyRefused("the credential is too large")
        return NewCredential(
            credential_id=verified.credential_id,
            public_key=verified.credential_public_key,
            sign_count=verified.sign_count,
            transports=tuple(transport.value for transport in response.answer.response.transports or ()),
        )

    def parse_sign_in(self, text: str) -> UnverifiedResponse:
        with refuse_malformed():
            credential = parse_authentication_credential_json(text)
            return to_unverified_response(credential, handle=credential.response.user_handle)

    def verify_sign_in(self, response: UnverifiedResponse, public_key: bytes) -> int:
        with refuse_malformed():
            verified = verify_authentication_response(
                credential=response.answer,
                expected_challenge=response.challenge,
                expected_rp_id=self._party.host,
                expected_origin=self._party.origin,
                credential_public_key=public_key,
                credential_current_sign_count=0,
                require_user_verification=True,
            )
        return verified.new_sign_count


def to_unverified_response(
    answer: RegistrationCredential | AuthenticationCredential, *, handle: bytes | None
) -> UnverifiedResponse:
    return UnverifiedResponse(
        challenge=challenge_of(answer.response.client_data_json),
        credential_id=answer.raw_id,
        user_handle=handle,
        answer=answer,
    )


def challenge_of(client_data_json: bytes) -> bytes:
    collected = parse_client_data_json(client_data_json)
    if collected.cross_origin:
        raise PasskeyRefused("requested from a cross-origin frame")
    return collected.challenge


def descriptor(passkey: Passkey) -> PublicKeyCredentialDescriptor:
    transports = [AuthenticatorTransport(name) for name in passkey.transports]
    return PublicKeyCredentialDescriptor(id=passkey.credential_id, transports=transports)


@contextmanager
def refuse_malformed() -> Iterator[None]:
    try:
        yield
    except PasskeyRefused:
        raise
    except Exception as error:  # the library raises KeyError, TypeError and ValueError for malformed keys
        raise PasskeyRefused(f"{type(error).__name__}: {error}") from error
