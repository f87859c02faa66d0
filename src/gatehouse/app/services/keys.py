"""The service's own keys: the ring, their rotation, what signs with them, and which node has which master key."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct

from gatehouse import __version__
from gatehouse.app.nodes import NodeReporter
from gatehouse.app.services.core import Core
from gatehouse.app.services.policies import rotation_policy
from gatehouse.kernel.ids import new_node_id
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.nodes import Node
from gatehouse.keys.rotation import KeyRotation, RotationPolicy
from gatehouse.tokens.rsa_signatures import InlineSignatures, RsaSignatures, ThreadedSignatures
from gatehouse.tokens.signer import Signer

RSA_THREADS: Final = 2


class KeyServices(Struct, frozen=True, kw_only=True, eq=False):
    keyring: Keyring
    rotation: KeyRotation
    rotation_policy: RotationPolicy
    signer: Signer
    node_reporter: NodeReporter


def build_keys(core: Core) -> KeyServices:
    masters, clock = core.masters, core.clock
    keyring = Keyring(store=core.storage.keys, masters=masters, clock=clock)
    policy = rotation_policy(core.settings)
    return KeyServices(
        keyring=keyring,
        rotation=KeyRotation(
            store=core.storage.keys, masters=masters, recorder=core.recorder, clock=clock, policy=policy
        ),
        rotation_policy=policy,
        signer=Signer(keyring=keyring, clock=clock, rsa=rsa_signatures(core.settings.server.workers)),
        node_reporter=NodeReporter(store=core.storage.nodes, masters=masters, clock=clock, node=this_node()),
    )


def rsa_signatures(workers: int) -> RsaSignatures:
    if 1 < workers >= len(os.sched_getaffinity(0)):
        return InlineSignatures()
    return ThreadedSignatures(ThreadPoolExecutor(RSA_THREADS, thread_name_prefix="rsa"))


def this_node() -> Node:
    return Node(
        node_id=new_node_id(),
        name=f"{socket.gethostname()} (process {os.getpid()})",
        master_keys="",
        version=__version__,
    )
