"""The grant types of the token endpoint, one per file."""
