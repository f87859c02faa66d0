"""Reads a file in MaxMind's format; loaded only if one is configured (web/http/geoip.py)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import maxminddb

from gatehouse.kernel.addresses import parse_address
from gatehouse.kernel.errors import Misconfigured

FALLBACK_LANG: Final = "en"


class GeoIpFile:
    """A file in MaxMind's format, mapped into memory once; country and city files both work."""

    def __init__(self, file: Path) -> None:
        try:
            self._reader: Final = maxminddb.open_database(file)
        except (OSError, maxminddb.InvalidDatabaseError) as error:
            raise Misconfigured(f"cannot read {file} as a GeoIP database: {error}") from error

    def country(self, address: str) -> str:
        return str(self._lookup(address).get("country", {}).get("iso_code", ""))

    def place_name(self, address: str, lang: str) -> str:
        about = self._lookup(address)
        parts = (localized_name(about.get(kind, {}), lang) for kind in ("city", "country"))
        return ", ".join(part for part in parts if part)

    def _lookup(self, address: str) -> Mapping[str, Any]:
        known = parse_address(address)
        try:
            found = None if known is None else self._reader.get(known)
        except (ValueError, maxminddb.InvalidDatabaseError):  # an IPv6 address in an IPv4 file, or a damaged file
            return {}
        return found if isinstance(found, Mapping) else {}


def localized_name(thing: Mapping[str, Any], lang: str) -> str:
    names = thing.get("names", {})
    return str(names.get(lang) or names.get(FALLBACK_LANG, ""))
