"""Protocol values that several modules use, in requests and in the discovery document."""

import re
from enum import StrEnum
from typing import Final

OPENID: Final = "openid"
OFFLINE_ACCESS: Final = "offline_access"
EMAIL: Final = "email"
PROFILE: Final = "profile"
TRUST: Final = "trust"
PHONE: Final = "phone"  # profile oidc only (R11)
# What a person holds in the client's application (R9).
GROUPS: Final = "groups"
ROLES: Final = "roles"
PERMISSIONS: Final = "permissions"
# Of the service's own API, which machines call as their application (R11).
AUTHZEN: Final = "authzen"
OBJECTS: Final = "objects"
SCIM: Final = "scim"  # reserved

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"  # RFC 7523 §2.2
# RFC 6749 §3.3
SCOPE_TEXT: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( +[\x21\x23-\x5b\x5d-\x7e]+)*", re.ASCII)
TOKEN_PATH: Final = "/proxy/oauth/token"  # noqa: S105 - a path
PAR_PATH: Final = "/proxy/oauth/par"
REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"  # of pushed requests (RFC 9126 §2.2)


class GrantName(StrEnum):
    AUTHORIZATION_CODE = "authorization_code"
    REFRESH_TOKEN = "refresh_token"  # noqa: S105 - a name
    DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
    CLIENT_CREDENTIALS = "client_credentials"
    TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name


class ResponseMode(StrEnum):
    """How the response of authorize reaches the client."""

    QUERY = "query"  # of the redirect
    FORM_POST = "form_post"  # a form that the browser posts (OAuth 2.0 Form Post Response Mode)


class AuthMethod(StrEnum):
    """How clients of profile oidc prove themselves; those of profile native have the SHA-1 proof."""

    BASIC = "client_secret_basic"
    POST = "client_secret_post"
    PRIVATE_KEY = "private_key_jwt"
    NONE = "none"
