"""The address ranges a user JWT can be tied to (R4): subnets of private networks in canonical form."""

from collections.abc import Sequence
from ipaddress import ip_network
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.kernel.addresses import Network, parse_address, parse_network

MAX_RANGES: Final = 32
PRIVATE_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)


def check_fixed_ips(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct ranges as CIDR; a bare address is a range of one. Raises BadAccount.

    The limit counts the texts as sent, before parsing, because duplicates cost as much as distinct ones.
    """
    if len(texts) > MAX_RANGES:
        raise BadAccount(f"fixed_ips: at most {MAX_RANGES} ranges")
    return tuple(dict.fromkeys(_private_range(text) for text in texts))


def _private_range(text: str) -> str:
    try:
        network = parse_network(text)
    except ValueError as error:
        raise BadAccount("fixed_ips: must be canonical CIDR ranges") from error
    if not any(network.version == home.version and network.subnet_of(home) for home in PRIVATE_NETWORKS):  # type: ignore[arg-type]
        raise BadAccount("fixed_ips: must be private networks")
    return str(network)


def single_address_range(address: str) -> str:
    """Return the one-address range of a caller, for fixed_ip=1."""
    parsed = parse_address(address)
    if parsed is None:
        raise BadAccount("the client IP address is unknown")
    return f"{parsed}/{parsed.max_prefixlen}"
