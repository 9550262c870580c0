"""Calls from every kind of place that Python has. A comment beside each call names the function, after "at". The script prints
what it computed, so that a test can compare it with an untraced run. Nobody else calls MPI_Barrier."""

import ctypes
import functools
import sys
import threading

from mpi4py import MPI

comm = MPI.COMM_WORLD


def plain():
    comm.Barrier()  # at plain


class Solver:
    def __init__(self):
        self.steps = 0

    def step(self, scale):
        self.steps += scale
        comm.Barrier()  # at Solver.step

    @property
    def size(self):
        comm.Barrier()  # at Solver.size
        return comm.size


def numbers(count):
    for number in range(count):
        comm.Barrier()  # at numbers
        yield number


def add(left, right):
    comm.Barrier()  # at add
    return left + right


def compare(left, right):
    comm.Barrier()  # at compare
    left, right = left[0], right[0]
    return (left > right) - (left < right)


def sort(values):
    """The C library's qsort calls back into Python."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    array = (ctypes.c_int * len(values))(*values)
    ctypes.CDLL(None).qsort(array, len(values), ctypes.sizeof(ctypes.c_int), kind(compare))  # through sort
    return list(array)


def recursion(depth):
    if depth == 0:
        plain()  # through recursion
        return 0
    return 1 + recursion(depth - 1)


def failing():
    try:
        raise ValueError("seen")
    except ValueError as error:
        comm.Barrier()  # at failing
        return str(error)


def threaded():
    """A thread calls MPI while this one keeps the interpreter busy."""
    done = threading.Event()
    results = []

    def work():
        for number in range(3):
            comm.Barrier()  # at threaded.<locals>.work
            results.append(number)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    spins = 0
    while not done.is_set():
        spins += 1
    thread.join()
    return results


def made():
    """Code that is made, run and gone, again and again, at other lines each time."""
    for number in range(20):
        source = "\n" * number + "comm.Barrier()"
        exec(compile(source, "made.py", "exec"), {"comm": comm})


def main():
    plain()  # through main
    solver = Solver()
    for _ in range(7):
        solver.step(2)  # through main, in a loop
    results = [solver.steps, solver.size]
    results.append([number * number for number in numbers(4)])
    results.append(functools.reduce(add, [1, 2, 3, 4]))
    results.append(sort([3, 1]))
    results.append(recursion(5))
    results.append(failing())
    results.append(list(map(lambda number: comm.Barrier() or number, [1, 2])))  # at main.<locals>.<lambda>
    if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
        results.append(threaded())
    made()
    if comm.rank == 0:
        print(results)
        sys.stdout.flush()


main()
