"""What we make of the certificates that an authenticator brings along: nothing, because we ask for none.

The library would load pyOpenSSL and pyasn1 to read them, 4 MB in every process; these stand in for that part of it.
"""

from collections.abc import Mapping
from typing import Final, Never


def validate_certificate_chain(*, x5c: list[bytes], pem_root_certs_bytes: list[bytes] | None = None) -> bool:
    """As the library answers when it is given no roots to trust, which is how we ask."""
    if pem_root_certs_bytes:
        raise ValueError(f"{len(x5c)} attestation certificates that cannot be verified")
    return True


def verify_android_key(**_: object) -> Never:
    """Phones send it only to those who ask for attestation."""
    raise ValueError("android-key attestation is not supported")


SUBSTITUTES: Final[Mapping[str, Mapping[str, object]]] = {
    "webauthn.helpers.validate_certificate_chain": {"validate_certificate_chain": validate_certificate_chain},
    "webauthn.registration.formats.android_key": {"verify_android_key": verify_android_key},
}
