"""The location of a network address, from a GeoIP file of the operator; no external service is used."""

from pathlib import Path
from typing import Protocol


class GeoIpLookup(Protocol):
    def country(self, address: str) -> str:
        """The ISO 3166 code of the country; empty when it is not known."""

    def place_name(self, address: str, lang: str) -> str:
        """City and country in that language, as far as they are known: "Stockholm, Sweden"."""


class NoGeoIp:
    """The lookup without a file: no location is known."""

    def country(self, address: str) -> str:  # noqa: ARG002 - the protocol's signature
        return ""

    def place_name(self, address: str, lang: str) -> str:  # noqa: ARG002
        return ""


def open_geoip(file: str) -> GeoIpLookup:
    if not file:
        return NoGeoIp()
    # The GeoIP library takes 2 MB, and few installations have a file.
    from gatehouse.web.http.geoip_file import GeoIpFile  # noqa: PLC0415

    return GeoIpFile(Path(file))
