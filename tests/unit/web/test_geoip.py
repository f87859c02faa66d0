"""Locations from a GeoIP file."""

from pathlib import Path

import pytest

from gatehouse.kernel.errors import Misconfigured
from gatehouse.web.http.geoip import GeoIpLookup, open_geoip
from tests.support.geoip import write_geoip

SWEDEN = {"iso_code": "SE", "names": {"en": "Sweden", "de": "Schweden"}}
STOCKHOLM = {"city": {"names": {"en": "Stockholm"}}, "country": SWEDEN}


@pytest.fixture
def geoip_lookup(tmp_path: Path) -> GeoIpLookup:
    file = write_geoip(tmp_path / "city.mmdb", {"192.0.2.0/24": STOCKHOLM, "198.51.100.0/25": {"country": SWEDEN}})
    return open_geoip(str(file))


def test_a_place_is_named_in_the_readers_language_as_far_as_it_is_known(geoip_lookup: GeoIpLookup) -> None:
    assert geoip_lookup.place_name("192.0.2.7", "en") == "Stockholm, Sweden"
    assert geoip_lookup.place_name("192.0.2.7", "de") == "Stockholm, Schweden"
    assert geoip_lookup.place_name("192.0.2.7", "fr") == "Stockholm, Sweden"
    assert geoip_lookup.place_name("198.51.100.127", "en") == "Sweden"
    assert geoip_lookup.country("192.0.2.255") == "SE"


@pytest.mark.parametrize("address", ["198.51.100.128", "203.0.113.9", "2001:db8::1", "", "nowhere", "192.0.2.7%eth0"])
def test_an_address_the_file_does_not_know_is_nowhere(geoip_lookup: GeoIpLookup, address: str) -> None:
    assert (geoip_lookup.place_name(address, "en"), geoip_lookup.country(address)) == ("", "")


def test_an_ipv4_address_seen_through_ipv6_is_that_address(geoip_lookup: GeoIpLookup) -> None:
    assert geoip_lookup.country("::ffff:192.0.2.7") == "SE"


def test_every_address_has_no_place_without_a_geoip_file() -> None:
    assert (open_geoip("").place_name("192.0.2.7", "en"), open_geoip("").country("192.0.2.7")) == ("", "")


def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path) -> None:
    other = tmp_path / "city.mmdb"
    other.write_bytes(b"not a database")
    with pytest.raises(Misconfigured, match=r"cannot read .*city\.mmdb as a GeoIP database"):
        open_geoip(str(other))
    with pytest.raises(Misconfigured, match=r"cannot read .*none\.mmdb"):
        open_geoip(str(tmp_path / "none.mmdb"))
