"""What the store of objects keeps, and what it promises."""
