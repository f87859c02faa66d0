"""Whom the tests' own HTTP clients trust: no one.

They speak plain HTTP on loopback. Without this each of them reads every authority this machine trusts as it is
made, which takes longer than what most of them ask.
"""

import ssl
from typing import Final

NO_TRUST_STORE: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
