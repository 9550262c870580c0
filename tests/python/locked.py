"""A thread waits, with the interpreter's lock, for one that calls MPI without it. The library is the argument."""

import ctypes
import sys
import threading
import time

from mpi4py import MPI

free = ctypes.CDLL(sys.argv[1])  # gives up the interpreter's lock
keep = ctypes.PyDLL(sys.argv[1])  # keeps it

# This thread waits, with the interpreter's lock, for a thread that calls MPI.
thread = threading.Thread(target=free.locked_barrier)
thread.start()
while not free.is_inside():
    time.sleep(0.001)
keep.take_lock()
thread.join()
print("fine", flush=True)
