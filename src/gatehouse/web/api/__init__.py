"""The machine interfaces: OAuth, permissions, games, login, health, keys."""
