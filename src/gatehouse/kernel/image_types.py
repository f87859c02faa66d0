"""Detects the kind of an image by its first bytes; a file name proves nothing."""

from typing import Final

# Pixels only. An SVG may carry scripts, styles and addresses of other hosts.
IMAGE_SIGNATURES: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
RIFF: Final = b"RIFF"
WEBP: Final = b"WEBP"


def image_media_type(content: bytes) -> str:
    """Return the media type of a PNG, JPEG or WebP; empty for everything else."""
    if content[:4] == RIFF and content[8:12] == WEBP:
        return "image/webp"
    return next((kind for beginning, kind in IMAGE_SIGNATURES if content.startswith(beginning)), "")
