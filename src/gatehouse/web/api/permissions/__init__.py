"""The permission endpoints: what came by wire becomes a caller and a command, records become the envelope."""
