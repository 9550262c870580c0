! The heat equation of heat.c in Fortran: rank 1 computes longer, and every third step the last rank is late with what it tells
! rank 0. First argument: steps (default 12).
program f_heat
   use mpi
   implicit none
   integer, parameter :: cells = 64
   integer :: ierr, rank, nranks, left, right, steps, step, requests(4)
   double precision, asynchronous :: u(0:cells + 1)
   double precision :: next(cells), piece(cells), change, most
   character(len=16) :: word

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
   right = merge(rank + 1, MPI_PROC_NULL, rank < nranks - 1)
   steps = 12
   if (command_argument_count() > 0) then
      call get_command_argument(1, word)
      read (word, *) steps
   end if
   u = 0
   if (rank == 0) u(1) = 1000
   do step = 1, steps
      call MPI_Irecv(u(0), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Irecv(u(cells + 1), 1, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Isend(u(1), 1, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(3), ierr)
      call MPI_Isend(u(cells), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(4), ierr)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
      next = u(1:cells) + 0.25d0*(u(0:cells - 1) - 2*u(1:cells) + u(2:cells + 1))
      change = sum(abs(next - u(1:cells)))
      u(1:cells) = next
      call spend(merge(0.003d0, 0.001d0, rank == 1))
      if (nranks > 1 .and. modulo(step, 3) == 0) then
         piece = u(1:cells)
         if (rank == nranks - 1) then
            call spend(0.002d0)
            call MPI_Send(piece, cells, MPI_DOUBLE_PRECISION, 0, 3, MPI_COMM_WORLD, ierr)
         else if (rank == 0) then
            call MPI_Recv(piece, cells, MPI_DOUBLE_PRECISION, nranks - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
         end if
      end if
      call MPI_Allreduce(change, most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
   end do
   if (rank == 0) print '(a,i0,a,i0)', 'f_heat: ', nranks, ' ranks, change ', int(most*1000)
   call MPI_Finalize(ierr)

contains

   subroutine spend(seconds)
      double precision, intent(in) :: seconds
      integer(8) :: rate, now, until
      call system_clock(now, rate)
      until = now + int(seconds*rate, 8)
      do while (now < until)
         call system_clock(now)
      end do
   end subroutine
end program
