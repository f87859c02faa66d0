"""Parse permission documents of requests, files and stored rows strictly, and write them back."""
