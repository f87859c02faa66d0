"""Whose client ID metadata documents are accepted (R9, R11)."""

from collections.abc import Collection

from msgspec import Struct


class DocumentHosts(Struct, frozen=True, kw_only=True):
    hosts: Collection[str] = ()  # with a port other than 443; `*.host` stands for one level of subdomains
    app_uris: Collection[str] = ()  # `host=uri`: redirect URIs with a private-use scheme

    def is_listed(self, host: str) -> bool:
        return bool(host) and (host in self.hosts or f"*.{host.partition('.')[2]}" in self.hosts)

    def app_uris_of(self, host: str) -> tuple[str, ...]:
        """Return the redirect URIs with a private-use scheme that documents on this host may name."""
        pairs = (entry.partition("=") for entry in self.app_uris)
        return tuple(uri for named, _, uri in pairs if named == host)
