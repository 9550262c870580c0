! Fortran reaches C through whichever name its MPI library chose.
program f08
  use mpi_f08
  implicit none
  integer :: rank, size, token, total, i
  type(MPI_Request) :: requests(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  do i = 1, 5
    call MPI_Irecv(token, 1, MPI_INTEGER, modulo(rank - 1, size), i, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(rank, 1, MPI_INTEGER, modulo(rank + 1, size), i, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  end do
  call MPI_Allreduce(token, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(a,i0)', 'total ', total
  call MPI_Finalize()
end program
