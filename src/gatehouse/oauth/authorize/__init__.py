"""The authorize endpoint: its request, its decision, and the sign-in it may need."""
