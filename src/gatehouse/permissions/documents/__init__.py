"""What requests, files and stored rows say about permissions, read strictly and written back."""
