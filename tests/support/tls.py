"""The trust store of the tests' HTTP clients, which is empty.

They use plain HTTP on loopback. By default each client would load all certificate authorities of the machine when it
is created, which takes longer than most requests.
"""

import ssl
from typing import Final

NO_TRUST_STORE: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
