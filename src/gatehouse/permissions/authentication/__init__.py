"""Who is calling a permission endpoint, and by whose word."""
