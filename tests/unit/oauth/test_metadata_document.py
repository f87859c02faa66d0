"""How long a client ID metadata document may be used, and the algorithm that it names."""

import pytest

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.metadata_document import MetadataDocument, cache_seconds, client_of_document

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


@pytest.mark.parametrize(
    ("named", "alg"),
    [
        ({}, Algorithm.RS256),
        ({"id_token_signed_response_alg": "ES256"}, Algorithm.ES256),
        *(
            ({"id_token_signed_response_alg": value}, Algorithm.RS256)
            for value in ("HS256", "none", "", None, 5, ["ES256"])
        ),
    ],
)
def test_document_that_names_no_algorithm_of_ours_gets_rs256(named: dict[str, object], alg: Algorithm) -> None:
    address = "https://app.example/client"
    document = MetadataDocument(client_id=address, redirect_uris=("https://app.example/callback",), **named)
    assert client_of_document(document, 0, ()).token_settings.id_token_alg is alg
