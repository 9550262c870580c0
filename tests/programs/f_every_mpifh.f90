! `f_every.h` with `include "mpif.h"`.
#define MPIF_H
#include "f_every.h"
