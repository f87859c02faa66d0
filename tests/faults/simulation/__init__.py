"""Short simulated runs of the service, each determined by a seed: time is virtual, disk and nodes fail (faults R-30).

Services, storage, group commit and SQLite are the real ones. Simulated are the event loop, whose time jumps to the
next event, the randomness, and all faults.

    python -m tests.faults.simulation --seeds 500 --from 1  # prints what broke, by seed
    python -m tests.faults.simulation --seed 123            # repeats one, printed step by step
"""
