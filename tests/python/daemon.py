"""The interpreter ends while a thread goes on to call MPI, from new code each time."""

import threading

from mpi4py import MPI

comm = MPI.COMM_SELF
codes = [compile("\n" * (k % 500) + "comm.Barrier()", f"made{k}.py", "exec") for k in range(5000)]
begun = threading.Event()


def work():
    while True:
        for k, code in enumerate(codes):
            exec(code)
            if k == 100:
                begun.set()


threading.Thread(target=work, daemon=True).start()
begun.wait()
print("fine", flush=True)
