"""Point-to-point, collectives, pickled objects, windows and files through mpi4py, with what was asked of MPI written
down by the script itself: one line of JSON for each call that mpi4py is to make, with the arguments that matter. Calls
that mpi4py makes of its own accord (sizes of types, error handlers) are of functions that do not occur here.
"""

import json
import os
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
size = world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
log = open(os.path.join(os.environ["RECORD_DIR"], f"rank.{rank}.jsonl"), "w")


def note(call, **args):
    log.write(json.dumps({"call": call, "args": args}) + "\n")


def doubles(*numbers):
    return [array("d", numbers), MPI.DOUBLE]


def pickled(thing):
    return len(MPI.pickle.dumps(thing))


def point_to_point():
    inbox = array("d", [0.0] * 8)
    status = MPI.Status()
    for step in range(3):
        count = step + rank + 1
        note("MPI_Isend", count=count, datatype="MPI_DOUBLE", dest=right, tag=step, comm="world")
        outbox = doubles(*range(count))
        request = world.Isend(outbox, right, step)
        world.Recv([inbox, MPI.DOUBLE], MPI.ANY_SOURCE, step, status)
        written = {"source": left, "tag": step, "bytes": 8 * (step + left + 1)}
        note("MPI_Recv", count=8, datatype="MPI_DOUBLE", source="MPI_ANY_SOURCE", tag=step, status=written)
        assert status.Get_source() == left and inbox[: step + left + 1].tolist() == list(range(step + left + 1))
        note("MPI_Wait", status="MPI_STATUS_IGNORE")
        request.Wait()
    if rank % 2:
        note("MPI_Send", count=2, datatype="MPI_INT", dest=right, tag=77)
        world.Send([array("i", [1, 2]), MPI.INT], right, 77)
    else:
        # For nobody mpi4py leaves the message out.
        note("MPI_Send", buf="MPI_BOTTOM", count=0, datatype="MPI_BYTE", dest="MPI_PROC_NULL", tag=77)
        world.Send([array("i", [1, 2]), MPI.INT], MPI.PROC_NULL, 77)
    if left % 2:
        note("MPI_Recv", count=2, datatype="MPI_INT", source=left, tag=77, status="MPI_STATUS_IGNORE")
        world.Recv([array("i", [0, 0]), MPI.INT], left, 77)
    inboxes = [array("i", [0] * 4) for _ in range(4)]
    outboxes = [array("i", [rank] * tag) for tag in range(4)]
    requests = []
    for tag in range(4):
        note("MPI_Irecv", count=4, datatype="MPI_INT", source=left, tag=tag)
        requests.append(world.Irecv([inboxes[tag], MPI.INT], left, tag))
    for tag in reversed(range(4)):
        note("MPI_Isend", count=tag, datatype="MPI_INT", dest=right, tag=tag, comm="world")
        requests.append(world.Isend([outboxes[tag], MPI.INT], right, tag))
    note("MPI_Waitall", count=8, array_of_statuses="MPI_STATUSES_IGNORE")
    MPI.Request.Waitall(requests)
    assert inboxes[3][0] == left
    note("MPI_Sendrecv", sendcount=5, sendtype="MPI_CHAR", dest=left, sendtag=1, recvcount=9, recvtype="MPI_CHAR",
         source=right, recvtag=1)
    world.Sendrecv([b"hello", MPI.CHAR], left, 1, [bytearray(9), MPI.CHAR], right, 1)


def collectives():
    total = array("d", [0.0] * 3)
    note("MPI_Allreduce", count=3, datatype="MPI_DOUBLE", op="MPI_SUM", comm="world")
    world.Allreduce(doubles(rank, 1, 2), [total, MPI.DOUBLE], MPI.SUM)
    assert total[0] == size * (size - 1) / 2
    note("MPI_Reduce", count=3, datatype="MPI_DOUBLE", op="MPI_MAX", root=size - 1)
    world.Reduce(doubles(rank, 1, 2), [total, MPI.DOUBLE] if rank == size - 1 else None, MPI.MAX, size - 1)
    note("MPI_Bcast", count=6, datatype="MPI_INT", root=size - 1, comm="world")
    world.Bcast([array("i", range(6)), MPI.INT], size - 1)
    everybody = array("i", [0] * 2 * size)
    note("MPI_Allgather", sendcount=2, sendtype="MPI_INT", recvcount=2, recvtype="MPI_INT", comm="world")
    world.Allgather([array("i", [rank, rank]), MPI.INT], [everybody, MPI.INT])
    counts = [r + 1 for r in range(size)]
    places = [sum(counts[:r]) for r in range(size)]
    many = array("i", [0] * sum(counts))
    note("MPI_Allgatherv", sendcount=rank + 1, sendtype="MPI_INT", recvcounts=counts, displs=places)
    world.Allgatherv([array("i", [rank] * (rank + 1)), MPI.INT], [many, counts, places, MPI.INT])
    assert many[-1] == size - 1
    note("MPI_Alltoall", sendcount=1, sendtype="MPI_DOUBLE", recvcount=1)
    world.Alltoall(doubles(*[rank] * size), [array("d", [0.0] * size), MPI.DOUBLE])
    note("MPI_Scan", count=1, datatype="MPI_INT", op="MPI_PROD")
    world.Scan([array("i", [2]), MPI.INT], [array("i", [0]), MPI.INT], MPI.PROD)
    note("MPI_Barrier", comm="world")
    world.Barrier()
    note("MPI_Comm_split", comm="world", color=rank % 2, key=-rank)
    half = world.Split(rank % 2, -rank)
    note("MPI_Iallreduce", count=1, datatype="MPI_INT", op="MPI_MIN")
    # Python frees what nobody holds, while MPI still works on it.
    mine, least = array("i", [rank]), array("i", [0])
    request = half.Iallreduce([mine, MPI.INT], [least, MPI.INT], MPI.MIN)
    note("MPI_Wait", status="MPI_STATUS_IGNORE")
    request.Wait()
    assert least[0] == rank % 2
    note("MPI_Type_vector", count=3, blocklength=1, stride=2, oldtype="MPI_DOUBLE")
    column = MPI.DOUBLE.Create_vector(3, 1, 2)
    note("MPI_Type_commit")
    column.Commit()
    note("MPI_Bcast", count=1, root=0, comm="world")
    world.Bcast([array("d", range(6)), 1, column], 0)
    note("MPI_Type_free")
    column.Free()
    note("MPI_Comm_free")
    half.Free()


def objects():
    thing = {"rank": rank, "list": list(range(rank * 100)), "text": "x" * 50}
    theirs = {"rank": left, "list": list(range(left * 100)), "text": "x" * 50}
    note("MPI_Isend", count=pickled(thing), datatype="MPI_BYTE", dest=right, tag=11, comm="world")
    request = world.isend(thing, right, 11)
    length = pickled(theirs)
    note("MPI_Mprobe", source=left, tag=11, status={"source": left, "tag": 11, "bytes": length})
    note("MPI_Mrecv", count=length, datatype="MPI_BYTE")
    assert world.recv(source=left, tag=11) == theirs
    note("MPI_Wait")
    request.wait()
    word = "from the root " * 9
    note("MPI_Bcast", count=1, root=0)
    note("MPI_Bcast", count=pickled(word), datatype="MPI_BYTE", root=0)
    assert world.bcast(word if rank == 0 else None, 0) == word
    note("MPI_Gather", sendcount=1, root=0)
    note("MPI_Gatherv", sendcount=pickled(thing), sendtype="MPI_BYTE", root=0)
    gathered = world.gather(thing, 0)
    assert rank != 0 or [g["rank"] for g in gathered] == list(range(size))


def windows():
    memory = array("d", [0.0] * 10)
    note("MPI_Win_create", size=80, disp_unit=8, comm="world")
    window = MPI.Win.Create(memory, 8, comm=world)
    note("MPI_Win_fence")
    window.Fence()
    note("MPI_Put", origin_count=2, origin_datatype="MPI_DOUBLE", target_rank=right, target_disp=3, target_count=2)
    origin = doubles(rank, rank)
    window.Put(origin, right, 3)
    note("MPI_Win_fence")
    window.Fence()
    assert memory[3] == left
    note("MPI_Accumulate", origin_count=1, target_rank=0, target_disp=7, op="MPI_SUM")
    one = doubles(1)
    window.Accumulate(one, 0, 7, MPI.SUM)
    note("MPI_Win_fence")
    window.Fence()
    note("MPI_Win_lock", lock_type="MPI_LOCK_SHARED", rank=0)
    window.Lock(0, MPI.LOCK_SHARED)
    sum_of_ones = array("d", [0.0])
    note("MPI_Get", origin_count=1, target_rank=0, target_disp=7, target_count=1)
    window.Get([sum_of_ones, MPI.DOUBLE], 0, 7)
    note("MPI_Win_unlock", rank=0)
    window.Unlock(0)
    assert sum_of_ones[0] == size
    note("MPI_Win_free")
    window.Free()


def files():
    path = os.path.join(os.environ["RECORD_DIR"], "numbers.dat")
    note("MPI_File_open", comm="world", filename=path, amode="MPI_MODE_CREATE|MPI_MODE_RDWR")
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    note("MPI_File_write_at", offset=rank * 24, count=3, datatype="MPI_DOUBLE")
    file.Write_at(rank * 24, doubles(rank, rank + 1, rank + 2))
    note("MPI_File_sync")
    file.Sync()
    note("MPI_Barrier", comm="world")
    world.Barrier()
    back = array("d", [0.0] * 3)
    note("MPI_File_read_at_all", offset=left * 24, count=3, datatype="MPI_DOUBLE")
    file.Read_at_all(left * 24, [back, MPI.DOUBLE])
    assert back[2] == left + 2
    note("MPI_File_set_view", disp=rank * 24, etype="MPI_DOUBLE", filetype="MPI_DOUBLE", datarep="native")
    file.Set_view(rank * 24, MPI.DOUBLE, MPI.DOUBLE, "native")
    note("MPI_File_write_all", count=1, datatype="MPI_DOUBLE")
    file.Write_all(doubles(9))
    note("MPI_File_close")
    file.Close()


for part in (point_to_point, collectives, objects, windows, files):
    part()
note("MPI_Finalize")
log.close()
if rank == 0:
    print("all done")
