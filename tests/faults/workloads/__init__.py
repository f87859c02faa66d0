"""The requests of clients during faults (docs/operations/faults.md), one workload per file."""
