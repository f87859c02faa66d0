"""Write a small GeoIP file in MaxMind's format from IPv4 networks and their data."""

from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

MARK: Final = b"\xab\xcd\xefMaxMind.com"
SEPARATOR: Final = bytes(16)
STRING, UINT16, UINT32, MAP, UINT64, ARRAY = 2, 5, 6, 7, 9, 11
FIRST_EXTENDED: Final = 8
LONG: Final = 29  # from this size on, the size has its own byte
NUMBERS: Final = {
    "binary_format_major_version": UINT16,
    "binary_format_minor_version": UINT16,
    "record_size": UINT16,
    "ip_version": UINT16,
    "node_count": UINT32,
    "build_epoch": UINT64,
}

Node = list[Any]  # two children, each a node, an offset in the data, or None


def write_geoip(file: Path, known: Mapping[str, Mapping[str, Any]]) -> Path:
    tree: Node = [None, None]
    data = b""
    for network, facts in known.items():
        insert(tree, IPv4Network(network), len(data))
        data += encode_value(facts)
    nodes = number_nodes(tree)
    count = len(nodes)
    records = b"".join(encode_record(side, nodes, count) for node in nodes.values() for side in node[1])
    file.write_bytes(records + SEPARATOR + data + MARK + encode_value(metadata(count)))
    return file


def insert(tree: Node, network: IPv4Network, offset: int) -> None:
    node = tree
    bits = f"{int(network.network_address):032b}"[: network.prefixlen]
    for bit in bits[:-1]:
        if node[int(bit)] is None:
            node[int(bit)] = [None, None]
        node = node[int(bit)]
    node[int(bits[-1])] = offset


def number_nodes(tree: Node) -> dict[int, tuple[int, Node]]:
    """Map each node's identity to its number; the root has 0."""
    numbered: dict[int, tuple[int, Node]] = {}
    waiting = [tree]
    for node in waiting:
        numbered[id(node)] = (len(numbered), node)
        waiting += [side for side in node if isinstance(side, list)]
    return numbered


def encode_record(side: Node | int | None, nodes: Mapping[int, tuple[int, Node]], count: int) -> bytes:
    if side is None:
        return count.to_bytes(3, "big")
    if isinstance(side, int):
        return (count + len(SEPARATOR) + side).to_bytes(3, "big")
    return nodes[id(side)][0].to_bytes(3, "big")


def metadata(count: int) -> dict[str, Any]:
    return {
        "binary_format_major_version": 2,
        "binary_format_minor_version": 0,
        "build_epoch": 1_800_000_000,
        "database_type": "Test-City",
        "description": {"en": "Some networks"},
        "ip_version": 4,
        "languages": ["en", "de"],
        "node_count": count,
        "record_size": 24,
    }


def encode_value(value: Any, kind: int = 0) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        return control_bytes(STRING, len(text)) + text
    if isinstance(value, int):
        number = value.to_bytes((value.bit_length() + 7) // 8, "big")
        return control_bytes(kind, len(number)) + number
    if isinstance(value, list):
        return control_bytes(ARRAY, len(value)) + b"".join(map(encode_value, value))
    pairs = (encode_value(name) + encode_value(item, NUMBERS.get(name, UINT32)) for name, item in value.items())
    return control_bytes(MAP, len(value)) + b"".join(pairs)


def control_bytes(kind: int, size: int) -> bytes:
    short, more = (size, b"") if size < LONG else (LONG, bytes([size - LONG]))
    if kind < FIRST_EXTENDED:
        return bytes([kind << 5 | short]) + more
    return bytes([short, kind - MAP]) + more
