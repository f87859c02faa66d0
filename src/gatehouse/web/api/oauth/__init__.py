"""The OAuth and OpenID Connect endpoints: bytes become typed requests, records and errors become responses (R3)."""
