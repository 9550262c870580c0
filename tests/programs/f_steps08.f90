! f_steps with `use mpi_f08`: typed handles, array sections as buffers, ierror left out.
! First argument: steps (default 10).
program f_steps08
   use mpi_f08
   implicit none
   integer :: rank, nranks, left, right, steps, step, change, most, total
   integer, asynchronous :: outgoing(16), incoming(16)
   character(len=16) :: word

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks)
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
      call MPI_Allreduce(change, most, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
      total = modulo(total*31 + most, 1000003)
   end do
   most = 0
   call MPI_Reduce(total, most, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
   if (rank == 0) print '(a,i0,a,i0)', 'f_steps08: ', nranks, ' ranks, checksum ', most
   call MPI_Finalize()

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
      type(MPI_Request) :: requests(4)
      call MPI_Irecv(incoming(1:8), 8, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1))
      call MPI_Irecv(incoming(9:16), 8, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2))
      call MPI_Isend(outgoing(1:8), 8, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(3))
      call MPI_Isend(outgoing(9:16), 8, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(4))
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
   end subroutine
end program
