"""Provider metadata: OpenID Connect Discovery 1.0 and RFC 8414, one document (R3)."""

import msgspec

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.acr import ACR_VALUES
from gatehouse.oauth.authorize.request import PROMPTS
from gatehouse.oauth.model import SCOPES
from gatehouse.oauth.user_claims import SCOPE_OF_CLAIM
from gatehouse.oauth.vocabulary import PAR_PATH, AuthMethod, GrantName, ResponseMode

CLIENT_AUTH_METHODS = tuple(method.value for method in AuthMethod)
ALGORITHMS = (Algorithm.ES256.value, Algorithm.RS256.value, Algorithm.EDDSA.value)  # the default first (R2)


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """Provider metadata in the order of OpenID Connect Discovery §3, then later additions."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    scopes_supported: tuple[str, ...] = SCOPES
    response_types_supported: tuple[str, ...] = ("code",)
    response_modes_supported: tuple[str, ...] = tuple(mode.value for mode in ResponseMode)
    grant_types_supported: tuple[str, ...] = tuple(name.value for name in GrantName)
    acr_values_supported: tuple[str, ...] = ACR_VALUES
    subject_types_supported: tuple[str, ...] = ("public",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ALGORITHMS
    token_endpoint_auth_methods_supported: tuple[str, ...] = CLIENT_AUTH_METHODS
    token_endpoint_auth_signing_alg_values_supported: tuple[str, ...] = ALGORITHMS
    display_values_supported: tuple[str, ...] = ("page",)
    claim_types_supported: tuple[str, ...] = ("normal",)
    claims_supported: tuple[str, ...] = (
        *("iss", "sub", "aud", "azp", "exp", "iat", "auth_time", "nonce", "at_hash"),
        *("acr", "amr", "sid", *SCOPE_OF_CLAIM),
    )
    ui_locales_supported: tuple[str, ...]
    claims_parameter_supported: bool = True
    request_parameter_supported: bool = False
    request_uri_parameter_supported: bool = False
    require_request_uri_registration: bool = False
    prompt_values_supported: tuple[str, ...] = PROMPTS
    # OpenID Connect RP-Initiated Logout 1.0 and Back-Channel Logout 1.0
    end_session_endpoint: str
    backchannel_logout_supported: bool = True
    backchannel_logout_session_supported: bool = True
    # RFC 7009, RFC 7662, RFC 8628
    revocation_endpoint: str
    revocation_endpoint_auth_methods_supported: tuple[str, ...] = CLIENT_AUTH_METHODS
    revocation_endpoint_auth_signing_alg_values_supported: tuple[str, ...] = ALGORITHMS
    introspection_endpoint: str
    introspection_endpoint_auth_methods_supported: tuple[str, ...] = CLIENT_AUTH_METHODS[:-1]
    introspection_endpoint_auth_signing_alg_values_supported: tuple[str, ...] = ALGORITHMS
    device_authorization_endpoint: str
    # RFC 9126
    pushed_authorization_request_endpoint: str
    require_pushed_authorization_requests: bool = False
    # RFC 7636, RFC 9207
    code_challenge_methods_supported: tuple[str, ...] = ("S256",)
    authorization_response_iss_parameter_supported: bool = True
    # draft-ietf-oauth-client-id-metadata-document
    client_id_metadata_document_supported: bool


def provider_metadata(issuer: str, *, languages: tuple[str, ...], documents: bool) -> Metadata:
    """Build every address from the issuer, never from the Host header (R0)."""
    oauth = f"{issuer}/proxy/oauth"
    return Metadata(
        issuer=issuer,
        authorization_endpoint=f"{oauth}/authorize",
        token_endpoint=f"{oauth}/token",
        userinfo_endpoint=f"{oauth}/userinfo",
        jwks_uri=f"{oauth}/keys",
        ui_locales_supported=languages,
        end_session_endpoint=f"{oauth}/logout",
        revocation_endpoint=f"{oauth}/revoke",
        introspection_endpoint=f"{oauth}/introspect",
        device_authorization_endpoint=f"{oauth}/device_authorization",
        pushed_authorization_request_endpoint=f"{issuer}{PAR_PATH}",
        client_id_metadata_document_supported=documents,
    )
