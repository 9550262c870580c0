"""Calls while there is a second interpreter."""

import _xxsubinterpreters

from mpi4py import MPI

second = _xxsubinterpreters.create()
for _ in range(3):
    MPI.COMM_WORLD.Barrier()  # at <module>
_xxsubinterpreters.run_string(second, "1 + 1")
MPI.COMM_WORLD.Barrier()  # at <module>
print("fine", flush=True)
