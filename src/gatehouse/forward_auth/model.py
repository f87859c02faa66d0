"""The hand-over of a sign-in to a site, and the session on the site."""

import re
from typing import Final

from msgspec import Struct

from gatehouse.accounts.session_model import UserSession
from gatehouse.permissions.model.protected_site import ProtectedSite

HAND_OVER_SECONDS: Final = 60
MAX_PATH_LENGTH: Final = 2_048
SITE_PREFIX: Final = "/.gatehouse/"  # the paths on every site that its proxy passes to this service
RETURN_PATH: Final = f"{SITE_PREFIX}return"
# A path and query on the site: never `//host` or `/\\host`, which browsers read as another origin.
SITE_PATH: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*", re.ASCII)
CHALLENGE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class SiteSignInRequest(Struct, frozen=True, kw_only=True):
    origin: str
    path: str  # on the site, where the person wants to go
    challenge: str  # SHA-256 of the cookie that was set on the site, in hexadecimal digits

    @property
    def is_valid(self) -> bool:
        return is_site_path(self.path) and CHALLENGE.fullmatch(self.challenge) is not None


def is_site_path(path: str) -> bool:
    """Whether a redirect to this path stays on the site and does not begin another sign-in."""
    return len(path) <= MAX_PATH_LENGTH and SITE_PATH.fullmatch(path) is not None and not path.startswith(SITE_PREFIX)


class HandOver(Struct, frozen=True, kw_only=True):
    """A sign-in on its way to a site; its code is used once."""

    digest: bytes  # of the code
    request: SiteSignInRequest
    user_id: str
    rev: int
    session_id: str  # of the person's session
    created_at: int
    ends_at: int


class SiteSession(Struct, frozen=True, kw_only=True):
    """A session on one site: valid while the person's session is, and at most as long as that one was to last."""

    digest: bytes  # of the cookie's secret
    origin: str
    user_id: str
    rev: int
    session_id: str
    created_at: int
    ends_at: int


class SiteVisit(Struct, frozen=True, kw_only=True):
    """A live session on a site, with the site and the person's session."""

    site: ProtectedSite
    signed_in: UserSession
