"""The permission endpoints: requests become a caller and a command, records become the envelope."""
