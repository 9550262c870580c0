! A Fortran program that hangs, on three ranks. The comments behind the calls are what the tests look lines up by.
program stuck
  use mpi
  implicit none
  integer :: rank, number, request, ierr
  double precision :: values(3)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  values = 0
  if (rank == 0) call MPI_Bcast(values, 3, MPI_DOUBLE_PRECISION, 1, MPI_COMM_WORLD, ierr) ! broadcast
  request = MPI_REQUEST_NULL
  if (rank == 1) call MPI_Irecv(number, 1, MPI_INTEGER, 2, 13, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Recv(number, 1, MPI_INTEGER, 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! never sent
  call MPI_Finalize(ierr)
end program stuck
