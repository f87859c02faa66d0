"""`gatehouse version`."""

import platform

import click

from gatehouse import __version__


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(*, as_json: bool) -> None:
    """Print the version."""
    if as_json:
        import json

        click.echo(json.dumps({"version": __version__, "python": platform.python_version()}))
    else:
        click.echo(f"gatehouse {__version__}")
