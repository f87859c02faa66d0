"""Short lives of the service, each decided by a seed: time is virtual, the disk and the nodes fail (faults R-30).

The services, the storage verbs, the group commit and SQLite are the real ones. Made up are the event loop, whose time
jumps to the next thing to happen, the randomness, and everything that goes wrong.

    python -m tests.faults.simulation --seeds 500 --from 1     # prints what broke, by seed
    python -m tests.faults.simulation --seed 123               # one of them once more, printed step by step
"""
