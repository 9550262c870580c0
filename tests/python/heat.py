"""The heat equation of heat.c in Python: rank 1 computes longer, and every third step the last rank is late with what it tells
rank 0. Each rank writes down what it calls, and what its own clock said around each call."""

import array
import json
import os
import time

from mpi4py import MPI

CELLS, STEPS = 64, 12
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL
log = open(os.path.join(os.environ["RECORD_DIR"], f"rank.{rank}.jsonl"), "w", encoding="utf-8")


def noted(name, function, *args, **more):
    start = time.monotonic_ns()
    result = function(*args, **more)
    log.write(json.dumps({"call": name, "start": start, "end": time.monotonic_ns()}) + "\n")
    return result


u = array.array("d", [0.0] * (CELLS + 2))
if rank == 0:
    u[1] = 1000.0
change, most = array.array("d", [0.0]), array.array("d", [0.0])
view = memoryview(u)
for step in range(STEPS):
    requests = [
        noted("MPI_Irecv", comm.Irecv, [view[0:1], MPI.DOUBLE], source=left, tag=1),
        noted("MPI_Irecv", comm.Irecv, [view[CELLS + 1 : CELLS + 2], MPI.DOUBLE], source=right, tag=2),
        noted("MPI_Isend", comm.Isend, [view[1:2], MPI.DOUBLE], dest=left, tag=2),
        noted("MPI_Isend", comm.Isend, [view[CELLS : CELLS + 1], MPI.DOUBLE], dest=right, tag=1),
    ]
    noted("MPI_Waitall", MPI.Request.Waitall, requests)
    new = [u[i] + 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]) for i in range(1, CELLS + 1)]
    change[0] = sum(abs(new[i] - u[i + 1]) for i in range(CELLS))
    u[1 : CELLS + 1] = array.array("d", new)
    time.sleep(0.003 if rank == 1 else 0.001)
    if size > 1 and step % 3 == 2:
        piece = array.array("d", new)
        if rank == size - 1:
            time.sleep(0.002)
            noted("MPI_Send", comm.Send, [piece, MPI.DOUBLE], dest=0, tag=3)
        elif rank == 0:
            noted("MPI_Recv", comm.Recv, [piece, MPI.DOUBLE], source=size - 1, tag=3)
    noted("MPI_Allreduce", comm.Allreduce, [change, MPI.DOUBLE], [most, MPI.DOUBLE], op=MPI.MAX)
log.close()
if rank == 0:
    print(f"heat.py: {size} ranks, change {int(most[0] * 1000)}")
