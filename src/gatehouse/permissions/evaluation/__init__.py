"""From facts to what a person holds: pure, exact, and kept under the versions it was made from."""
