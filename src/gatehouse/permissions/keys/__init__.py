"""The public keys applications sign with, published and found."""
