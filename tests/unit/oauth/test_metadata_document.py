"""How long a client ID metadata document may be used."""

import pytest

from gatehouse.oauth.metadata_document import cache_seconds

NOON = "Tue, 17 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 300),
        ({"cache-control": "max-age=1"}, 300),
        ({"cache-control": "public, Max-Age=3600"}, 3_600),
        ({"cache-control": "max-age=7200", "age": "3600"}, 3_600),
        ({"cache-control": "max-age=7200", "age": "-1"}, 7_200),
        ({"cache-control": "max-age=7200, max-age=600"}, 600),
        ({"cache-control": "max-age=999999999"}, 86_400),
        ({"cache-control": "max-age=3600, no-store"}, 300),
        ({"cache-control": "max-age=-5"}, 300),
        ({"date": NOON, "expires": "Tue, 17 Nov 2026 13:00:00 GMT"}, 3_600),
        ({"date": NOON, "expires": "Tue, 17 Nov 2026 11:00:00 GMT"}, 300),
        ({"date": NOON, "expires": "0"}, 300),
    ],
)
def test_cache_time_follows_the_headers_between_five_minutes_and_a_day(headers: dict[str, str], seconds: int) -> None:
    assert cache_seconds(headers) == seconds
