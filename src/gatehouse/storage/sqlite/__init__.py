"""The SQLite runner: one writer, many readers."""
