"""The PostgreSQL runner: connections, notifications, statement batching."""
