! `f_every.h` with `use mpi`.
#define USE_MPI
#include "f_every.h"
