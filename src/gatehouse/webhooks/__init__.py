"""Webhooks: events sent to addresses that administrators name, signed, retried, with a delivery log.

Reads only the sealed audit log, so that it sends only committed events and delays no request. Never sends personal
fields, IP addresses or secrets.
"""
