"""Where in the world a network address is, by a GeoIP file the operator may have; nobody else is asked."""

from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

GEOIP: Final = "gatehouse.web.geoip"  # loaded where there is a file: its library takes 2 MB


class Places(Protocol):
    def country(self, address: str) -> str:
        """The ISO 3166 code of the country; empty when it is not known."""

    def name(self, address: str, lang: str) -> str:
        """City and country in that language, as far as they are known: "Stockholm, Sweden"."""


class NoPlaces:
    """Without a file nothing is known of any place."""

    def country(self, address: str) -> str:  # noqa: ARG002 - the protocol's signature
        return ""

    def name(self, address: str, lang: str) -> str:  # noqa: ARG002
        return ""


def places(file: str) -> Places:
    if not file:
        return NoPlaces()
    known: Places = import_module(GEOIP).GeoIp(Path(file))
    return known
