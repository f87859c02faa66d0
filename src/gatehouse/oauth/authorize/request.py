"""An authorization request: read from its parameters by an ordered list of small checks (interface §4.2, R3)."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from gatehouse.kernel.strict_json import decode_strict_json
from gatehouse.keys.encoding import decode_base64url
from gatehouse.oauth.acr import ACR_VALUES
from gatehouse.oauth.delegation import delegate_scopes_in
from gatehouse.oauth.errors import (
    AskedWrongly,
    AuthorizeRefused,
    RegistrationUnsupported,
    RequestUnsupported,
    RequestUriUnsupported,
    ResponseTypeUnsupported,
    ScopeRefused,
    UnmetAuthenticationRequirements,
)
from gatehouse.oauth.model import SCOPES, Client, ClientProfile
from gatehouse.oauth.redirects import is_web_uri
from gatehouse.oauth.user_claims import ID_TOKEN, SCOPE_OF_CLAIM, USERINFO
from gatehouse.oauth.vocabulary import OPENID, REQUEST_URI_PREFIX, ResponseMode
from gatehouse.tokens.claim_sizes import MAX_NONCE_BYTES, json_length

SCOPE_TEXT: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]*", re.ASCII)  # RFC 6749 §3.3
CHALLENGE_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # what S256 always makes (RFC 7636 §4.2)
SECONDS_PATTERN: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
MAX_LOGIN_HINT: Final = 254
UNSUPPORTED_PARAMETERS: Final[Mapping[str, type[AuthorizeRefused]]] = {
    "request": RequestUnsupported,
    "request_uri": RequestUriUnsupported,
    "registration": RegistrationUnsupported,
}
SUPPORTED_CLAIMS: Final = ("auth_time", "email", "nickname")


class RequestObject(msgspec.Struct, frozen=True):
    """All that is read of a request object (OpenID Connect Core §6)."""

    response_mode: ResponseMode | None = None


class Prompt:
    NONE: Final = "none"
    LOGIN: Final = "login"
    CONSENT: Final = "consent"
    SELECT_ACCOUNT: Final = "select_account"


PROMPTS: Final = (Prompt.NONE, Prompt.LOGIN, Prompt.CONSENT, Prompt.SELECT_ACCOUNT)


class AuthorizeParameters(dict[str, str]):
    """The received parameters by name.

    One without a value counts as absent (RFC 6749 §3.1); an absent one is empty.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], *, is_pushed: bool = False) -> None:
        super().__init__()
        self.is_pushed = is_pushed  # by the client itself (RFC 9126)
        self.repeated: set[str] = set()
        for name, value in pairs:
            if name in self:
                self.repeated.add(name)
            self[name] = value

    def __missing__(self, name: str) -> str:
        return ""

    @property
    def names_pushed_request(self) -> bool:
        """Whether its request_uri can be one of ours (RFC 9126)."""
        return "request_uri" not in self.repeated and self["request_uri"].startswith(REQUEST_URI_PREFIX)

    @property
    def state(self) -> str:
        """Refuse a repeated parameter: which one is the client's own is unknown."""
        return "" if "state" in self.repeated else self["state"]


class AuthorizationRequest(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    redirect_uri: str  # registered for the client
    scopes: tuple[str, ...]  # the scopes the client may have, in our order
    response_mode: ResponseMode = ResponseMode.QUERY
    state: str = ""
    nonce: str | None = None
    code_challenge: str = ""
    wanted_claims: tuple[str, ...] = ()
    acr_values: tuple[str, ...] = ()  # the known ones, the preferred one first
    acr_is_essential: bool = False
    prompts: tuple[str, ...] = ()
    max_age: int | None = None
    login_hint: str = ""
    ui_locales: str = ""
    id_token_hint: str = ""  # as received
    subjects: tuple[str, ...] = ()  # the users named by a valid id_token_hint or `claims`; empty for any
    hint_is_unknown: bool = False  # the id_token_hint cannot be verified, so its user is unknown

    def wants(self, prompt: str) -> bool:
        return prompt in self.prompts

    def encode(self) -> str:
        """Encode what is stored until the sign-in ends: an id_token_hint was read already."""
        return msgspec.json.encode(msgspec.structs.replace(self, id_token_hint="")).decode()

    @property
    def consent_scopes(self) -> tuple[str, ...]:
        """The scopes that need consent: the requested ones, and those of claims that are requested by name."""
        of_claims = {SCOPE_OF_CLAIM.get(name.partition(".")[2]) for name in self.wanted_claims}
        return (*self.scopes, *(scope for scope in SCOPES if scope in of_claims and scope not in self.scopes))

    @property
    def names_programs(self) -> bool:
        """Whether programs would act for the person: they are always asked (R11)."""
        return bool(delegate_scopes_in(self.scopes))

    @property
    def needs_new_proof(self) -> bool:
        """Whether a new authentication is required; no earlier session is enough, however recent."""
        return self.wants(Prompt.LOGIN) or self.max_age == 0 or self.hint_is_unknown


RequestCheck = Callable[[AuthorizeParameters, Client], None]


def nothing_is_repeated(asked: AuthorizeParameters, _client: Client) -> None:
    if asked.repeated:
        raise AskedWrongly("a parameter is given more than once")


def request_is_pushed_if_required(asked: AuthorizeParameters, client: Client) -> None:
    """The request of a browser; one that the client pushed is not checked again."""
    if client.require_pushed_authorization_requests and not asked.is_pushed:
        raise AskedWrongly("this client must push its authorization requests")


def request_object_is_absent(asked: AuthorizeParameters, _client: Client) -> None:
    """Request objects are not read and their addresses never called (checklist AZ-26)."""
    for name, refusal in UNSUPPORTED_PARAMETERS.items():
        if asked[name]:
            raise refusal


def response_type_is_code(asked: AuthorizeParameters, _client: Client) -> None:
    if not asked["response_type"]:
        raise AskedWrongly("response_type is required")
    if asked["response_type"] != "code":
        raise ResponseTypeUnsupported


def response_mode_is_supported(asked: AuthorizeParameters, client: Client) -> None:
    """Interface §4.2 requires `query`; plain OpenID Connect may leave it out, or ask for a form (R9)."""
    mode = asked["response_mode"]
    if client.profile is ClientProfile.NATIVE:
        if mode != ResponseMode.QUERY:
            raise AskedWrongly("response_mode must be query")
    elif mode == ResponseMode.FORM_POST:
        if response_mode_of(asked, client) is not ResponseMode.FORM_POST:
            raise AskedWrongly("form_post needs a web address as redirect_uri and a printable state")
    elif mode not in ("", ResponseMode.QUERY):
        raise AskedWrongly("response_mode must be query or form_post")


def mode_of_request_object(request: str) -> ResponseMode | None:
    """Return the response_mode that a request object names; None for none.

    Request objects are refused, and nothing in one is trusted: this only chooses how the refusal is sent (R3).
    """
    payload = f"{request}..".split(".")[1]
    if not payload.isascii():
        return None
    try:
        return msgspec.json.decode(decode_base64url(payload.encode()), type=RequestObject).response_mode
    except ValueError:
        return None


def response_mode_of(asked: AuthorizeParameters, client: Client) -> ResponseMode:
    """Return how to respond, to a wrong request too.

    A form cannot post to a private-use scheme, and HTML does not keep control characters of the state as they are.
    """
    wanted = mode_of_request_object(asked["request"]) or asked["response_mode"]
    is_form = (
        wanted == ResponseMode.FORM_POST
        and "response_mode" not in asked.repeated
        and client.profile is ClientProfile.OIDC
        and is_web_uri(asked["redirect_uri"])
        and asked.state.isprintable()
    )
    return ResponseMode.FORM_POST if is_form else ResponseMode.QUERY


def openid_is_asked_for(asked: AuthorizeParameters, client: Client) -> None:
    """Required, except for access to an API alone."""
    if SCOPE_TEXT.fullmatch(asked["scope"]) is None:
        raise ScopeRefused("scope contains invalid characters")
    if wanted_resource(asked, client) and OPENID not in asked["scope"].split(" "):
        return
    if OPENID not in asked["scope"].split(" ") or OPENID not in client.scopes:
        raise ScopeRefused


def nonce_is_present(asked: AuthorizeParameters, client: Client) -> None:
    """Required here, though OpenID Connect leaves it optional for this flow (interface §4.2)."""
    if client.profile is ClientProfile.NATIVE and not asked["nonce"]:
        raise AskedWrongly("nonce is required")
    if json_length(asked["nonce"]) > MAX_NONCE_BYTES:  # the id_token contains it whole
        raise AskedWrongly("nonce is too long")


def challenge_is_s256(asked: AuthorizeParameters, client: Client) -> None:
    challenge, method = asked["code_challenge"], asked["code_challenge_method"]
    if not challenge and not method:
        if client.require_pkce or client.public:
            raise AskedWrongly("code_challenge is required")
        return
    if method != "S256":
        raise AskedWrongly("code_challenge_method must be S256")
    if CHALLENGE_PATTERN.fullmatch(challenge) is None:
        raise AskedWrongly("code_challenge must be 43 characters of base64url")


def prompt_none_is_alone(asked: AuthorizeParameters, _client: Client) -> None:
    prompts = asked["prompt"].split()
    if Prompt.NONE in prompts and len(set(prompts)) > 1:
        raise AskedWrongly("prompt=none cannot be combined with other prompts")


def max_age_is_a_number(asked: AuthorizeParameters, _client: Client) -> None:
    if asked["max_age"] and SECONDS_PATTERN.fullmatch(asked["max_age"]) is None:
        raise AskedWrongly("max_age must be a number of seconds")


def wanted_resource(asked: AuthorizeParameters, client: Client) -> str:
    """Return the API that access is asked for (RFC 8707); clients of profile native cannot name one."""
    return asked["resource"] if client.profile is ClientProfile.OIDC else ""


CHECKS: Final[tuple[RequestCheck, ...]] = (
    nothing_is_repeated,
    request_object_is_absent,  # first: a request object could contain the other parameters
    request_is_pushed_if_required,
    response_type_is_code,
    response_mode_is_supported,
    openid_is_asked_for,
    nonce_is_present,
    challenge_is_s256,
    prompt_none_is_alone,
    max_age_is_a_number,
)


def read_request(asked: AuthorizeParameters, client: Client) -> AuthorizationRequest:
    """Read the request of a client whose redirect_uri is verified. Raises AuthorizeRefused."""
    for check in CHECKS:
        check(asked, client)
    scopes = asked["scope"].split(" ")
    prompts = asked["prompt"].split()
    claims = parse_claims_parameter(asked["claims"])
    acr = wanted_acr(claims, asked["acr_values"]) if client.profile is ClientProfile.OIDC else WantedAcr()
    return AuthorizationRequest(
        client_id=client.client_id,
        redirect_uri=asked["redirect_uri"],
        scopes=tuple(scope for scope in SCOPES if scope in scopes and scope in client.scopes),
        response_mode=response_mode_of(asked, client),
        state=asked["state"],
        nonce=asked["nonce"] or None,
        code_challenge=asked["code_challenge"],
        wanted_claims=wanted_claims(claims, client),
        acr_values=acr.values,
        acr_is_essential=acr.is_essential,
        subjects=wanted_subjects(claims),
        prompts=tuple(prompt for prompt in PROMPTS if prompt in prompts),
        max_age=int(asked["max_age"]) if asked["max_age"] else None,
        login_hint=asked["login_hint"][:MAX_LOGIN_HINT],
        ui_locales=asked["ui_locales"],
        id_token_hint=asked["id_token_hint"],
    )


class ClaimsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """OpenID Connect Core §5.5. `value` and `values` count for sub and acr; others have one value, which is told."""

    id_token: Mapping[str, object] | None = None
    userinfo: Mapping[str, object] | None = None


def parse_claims_parameter(text: str) -> ClaimsRequest:
    if not text:
        return ClaimsRequest()
    try:
        return decode_strict_json(text, ClaimsRequest)
    except ValueError as error:
        raise AskedWrongly("claims must be a JSON object with id_token and userinfo, each name once") from error


def wanted_subjects(asked: ClaimsRequest) -> tuple[str, ...]:
    """Return the users the id_token may be about (OpenID Connect Core §3.1.2.2, §5.5.1); empty for any."""
    about = (asked.id_token or {}).get("sub")
    if not isinstance(about, Mapping) or not {"value", "values"} & about.keys():
        return ()
    named = about.get("values", [about.get("value")])
    if not isinstance(named, list) or not named or not all(isinstance(user_id, str) and user_id for user_id in named):
        raise AskedWrongly("value and values of claims.id_token.sub must be user IDs")
    if "value" in about and about["value"] not in named:
        raise AskedWrongly("value of claims.id_token.sub is not among its values")
    return (about["value"],) if "value" in about else tuple(named)


def wanted_claims(asked: ClaimsRequest, client: Client) -> tuple[str, ...]:
    """Return the known claims among the requested ones; the scopes are checked when the claims are returned.

    In profile oidc with their places, as in userinfo.email, and only those of scopes that the client may have.
    """
    if client.profile is ClientProfile.NATIVE:
        named = {*(asked.id_token or {}), *(asked.userinfo or {})}
        return tuple(claim for claim in SUPPORTED_CLAIMS if claim in named)
    places = {ID_TOKEN: asked.id_token or {}, USERINFO: asked.userinfo or {}}
    for place, members in places.items():
        for details in members.values():
            if details is not None and not isinstance(details, Mapping):
                raise AskedWrongly(f"the members of claims.{place} must be objects or null")
    return tuple(
        f"{place}.{claim}"
        for place, members in places.items()
        for claim, scope in SCOPE_OF_CLAIM.items()
        if claim in members and scope in client.scopes
    )


class WantedAcr(msgspec.Struct, frozen=True, kw_only=True):
    values: tuple[str, ...] = ()
    is_essential: bool = False


def wanted_acr(asked: ClaimsRequest, acr_values: str) -> WantedAcr:
    """Return how the person should sign in: of `claims`, else of acr_values; unknown values are ignored (R9).

    Raises UnmetAuthenticationRequirements when only unknown values would do.
    """
    about = (asked.id_token or {}).get("acr")
    details = about if isinstance(about, Mapping) else {}
    named = details["values"] if "values" in details else [details["value"]] if "value" in details else []
    if not isinstance(named, list) or not all(isinstance(value, str) for value in named):
        raise AskedWrongly("value and values of claims.id_token.acr must be texts")
    known = tuple(value for value in named or acr_values.split() if value in ACR_VALUES)
    is_essential = details.get("essential") is True and bool(named)
    if is_essential and not known:
        raise UnmetAuthenticationRequirements
    return WantedAcr(values=known, is_essential=is_essential)
