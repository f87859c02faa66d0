"""social-auth-core with a minimal strategy and storage, both in memory."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

from relying_party import CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, Redirect, serve_handlers
from social_core.backends.open_id_connect import OpenIdConnectAuth
from social_core.storage import AssociationMixin, BaseStorage, NonceMixin
from social_core.strategy import BaseStrategy

SETTINGS = {
    "SOCIAL_AUTH_OIDC_OIDC_ENDPOINT": ISSUER,
    "SOCIAL_AUTH_OIDC_KEY": CLIENT_ID,
    "SOCIAL_AUTH_OIDC_SECRET": CLIENT_SECRET,
    "SOCIAL_AUTH_OIDC_SCOPE": SCOPE.split(),
    "SOCIAL_AUTH_OIDC_USE_PKCE": True,
}
session: dict[str, Any] = {}
associations: dict[str, AssociationMixin] = {}
nonces: set[tuple[str, int, str]] = set()
given: dict[str, Any] = {}


class Associations(AssociationMixin):
    @classmethod
    def store(cls, server_url: str, association: Any) -> None:
        kept = associations[association.handle] = cls()
        vars(kept).update(vars(association), id=association.handle, server_url=server_url)

    @classmethod
    def get(cls, server_url: str | None = None, handle: str | None = None) -> list[AssociationMixin]:
        return [
            association
            for association in associations.values()
            if (association.server_url, association.handle) == (server_url, handle)
        ]

    @classmethod
    def remove(cls, ids_to_delete: list[str]) -> None:
        for user_id in ids_to_delete:
            del associations[user_id]


class Nonces(NonceMixin):
    @classmethod
    def use(cls, server_url: str, timestamp: int, salt: str) -> bool:
        nonces.add((server_url, timestamp, salt))
        return True

    @classmethod
    def consume(cls, server_url: str, timestamp: int, salt: str) -> bool:
        known = (server_url, timestamp, salt) in nonces
        nonces.discard((server_url, timestamp, salt))
        return known


class Storage(BaseStorage):
    association = Associations
    nonce = Nonces


class Strategy(BaseStrategy):
    def __init__(self, address: str) -> None:
        super().__init__(storage=Storage)
        self._query = dict(parse_qsl(address.partition("?")[2]))

    def get_setting(self, name: str) -> Any:
        return SETTINGS[name]

    def request_data(self, merge: bool = True) -> dict[str, str]:  # noqa: FBT001, FBT002, ARG002 - its signature
        return self._query

    get_request_data = request_data

    def build_absolute_uri(self, path: str | None = None) -> str:
        return path or CALLBACK

    def session_get(self, name: str, default: Any = None) -> Any:
        return session.get(name, default)

    def session_set(self, name: str, value: Any) -> None:
        session[name] = value

    def session_pop(self, name: str) -> Any:
        return session.pop(name, None)

    def authenticate(self, *_: Any, response: dict[str, Any], **__: Any) -> Any:
        given.update(response)
        return SimpleNamespace(**response)


def backend(address: str) -> Any:
    return OpenIdConnectAuth(Strategy(address), redirect_uri=CALLBACK)


def login(address: str) -> Redirect:
    return Redirect(backend(address).auth_url())


def callback(address: str) -> dict[str, str]:
    used = backend(address)
    used.auth_complete()
    given["backend"] = used  # it compares userinfo with the id_token it has seen
    return {"sub": used.id_token["sub"], "id_token": given["id_token"]}


def userinfo(_: str) -> dict[str, str]:
    return given["backend"].user_data(given["access_token"])


def refresh(address: str) -> dict[str, str]:
    used = backend(address)
    given.update(used.refresh_token(given["refresh_token"]))
    return {"sub": used.id_token["sub"], "id_token": given["id_token"]}


serve_handlers({"/login": login, "/callback": callback, "/userinfo": userinfo, "/refresh": refresh})
