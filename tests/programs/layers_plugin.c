/* A library that is opened by a program: it asks Fortran's layer how many ranks there are. With STUB: such a layer, which
   only plays MPI on one rank. */
void mpi_comm_size_(int *comm, int *size, int *error);

#ifdef STUB
void mpi_comm_size_(int *comm, int *size, int *error) {
    (void)comm;
    *size = 1;
    *error = 0;
}
#else
int size(int comm);
int size(int comm) {
    int known = -1, error;
    mpi_comm_size_(&comm, &known, &error);
    return known;
}
#endif
