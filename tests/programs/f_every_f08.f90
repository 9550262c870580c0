! `f_every.h` with `use mpi_f08`.
#define USE_F08
#include "f_every.h"
