"""Gatehouse: single sign-on, game login and permissions, in one service."""

__version__: str


def __getattr__(name: str) -> str:
    """Read the version when it is asked for: what reads it takes a tenth of the time of a command."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version  # noqa: PLC0415 - see above

    return version("gatehouse")
