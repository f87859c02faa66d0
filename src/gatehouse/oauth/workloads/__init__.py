"""Workload identities: tokens of foreign issuers authenticate a client, in place of a secret (R11)."""
