! Fortran 90 with `use mpi`: a loop over steps around sweeps around an exchange with both neighbours.
! First argument: steps (default 10).
program f_steps
   use mpi
   implicit none
   integer :: ierr, rank, nranks, left, right, steps, step, change, most, total
   integer, asynchronous :: outgoing(16), incoming(16)
   character(len=16) :: word

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   left = modulo(rank - 1, nranks)
   right = modulo(rank + 1, nranks)
   steps = 10
   if (command_argument_count() > 0) then
      call get_command_argument(1, word)
      read (word, *) steps
   end if
   total = 0
   incoming = rank
   do step = 1, steps ! time step
      call relax(step)
      change = incoming(1) + step
      call MPI_Allreduce(change, most, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
      total = modulo(total*31 + most, 1000003)
   end do
   most = 0
   call MPI_Reduce(total, most, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
   if (rank == 0) print '(a,i0,a,i0)', 'f_steps: ', nranks, ' ranks, checksum ', most
   call MPI_Finalize(ierr)

contains

   subroutine relax(step)
      integer, intent(in) :: step
      integer :: sweep
      do sweep = 1, 2
         outgoing = modulo(incoming*3 + step + sweep, 9973)
         call exchange()
      end do
   end subroutine

   subroutine exchange()
      integer :: requests(4)
      call MPI_Irecv(incoming(1), 8, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Irecv(incoming(9), 8, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Isend(outgoing(1), 8, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(3), ierr)
      call MPI_Isend(outgoing(9), 8, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(4), ierr)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
   end subroutine
end program
