! What MPI's clocks return to Fortran, every bit of it: rank 0 prints it for all ranks.
program f_clocks
   use mpi
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none
   integer, parameter :: rounds = 50, count = 2*rounds
   integer :: ierr, rank, nranks, round, i
   double precision :: own(count)
   double precision, allocatable :: all(:)

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   allocate (all(nranks*count))
   do round = 1, rounds
      own(2*round - 1) = MPI_Wtime()
      if (modulo(round, 7) == rank) call MPI_Barrier(MPI_COMM_SELF, ierr)
      own(2*round) = MPI_Wtick()
   end do
   call MPI_Gather(own, count, MPI_DOUBLE_PRECISION, all, count, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
   if (rank == 0) then
      do i = 1, nranks*count
         print '(a,i0,a,z16.16)', 'clock ', (i - 1)/count, ' ', transfer(all(i), 0_int64)
      end do
   end if
   call MPI_Finalize(ierr)
end program f_clocks
