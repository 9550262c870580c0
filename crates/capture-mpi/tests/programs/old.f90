! Fortran reaches C through whichever name its MPI library chose.
program old
  use mpi
  implicit none
  integer :: rank, size, token, total, i
  integer :: requests(2), ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  do i = 1, 5
    call MPI_Irecv(token, 1, MPI_INTEGER, modulo(rank - 1, size), i, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(rank, 1, MPI_INTEGER, modulo(rank + 1, size), i, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  call MPI_Allreduce(token, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a,i0)', 'total ', total
  call MPI_Finalize(ierr)
end program
