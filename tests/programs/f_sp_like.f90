! As NPB's SP exchanges: sweeps in three directions over cells of a multi-partition, each forth and back, with requests and
! statuses that are local to a subroutine and never initialised. The stack below is full of other numbers each time.
! First argument: steps (default 10).
program f_sp_like
   use mpi
   implicit none
   integer, parameter :: cells = 3, words = 40
   integer :: ierr, rank, nranks, steps, step, direction
   integer, asynchronous :: outgoing(words), incoming(words)
   integer :: total, most
   character(len=16) :: word

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   steps = 10
   if (command_argument_count() > 0) then
      call get_command_argument(1, word)
      read (word, *) steps
   end if
   total = 0
   incoming = rank
   outgoing = rank + 1
   do step = 1, steps
      do direction = 1, 3
         call litter(step*3 + direction)
         call sweep(direction)
      end do
      total = modulo(total*31 + incoming(1), 1000003)
   end do
   most = 0
   call MPI_Reduce(total, most, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
   if (rank == 0) print '(a,i0,a,i0)', 'f_sp_like: ', nranks, ' ranks, checksum ', most
   call MPI_Finalize(ierr)

contains

   ! Rubbish where the locals of the next call will lie.
   subroutine litter(seed)
      integer, intent(in) :: seed
      integer, volatile :: rubbish(4096)
      integer :: i, x
      x = seed
      do i = 1, 4096
         x = modulo(x*1103 + 12345 + rank, 1000003)
         rubbish(i) = x
      end do
      if (rubbish(1 + modulo(seed, 4096)) == -1) total = total + 1
   end subroutine

   subroutine sweep(direction)
      integer, intent(in) :: direction
      integer :: cell, requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
      integer :: successor, predecessor
      successor = modulo(rank + direction, nranks)
      predecessor = modulo(rank - direction, nranks)
      do cell = 1, cells
         call MPI_Irecv(incoming, words, MPI_INTEGER, predecessor, direction, MPI_COMM_WORLD, requests(1), ierr)
         outgoing = modulo(outgoing*3 + cell, 9973)
         call MPI_Isend(outgoing, words, MPI_INTEGER, successor, direction, MPI_COMM_WORLD, requests(2), ierr)
         call MPI_Waitall(2, requests, statuses, ierr)
      end do
      do cell = cells, 1, -1
         call MPI_Irecv(incoming, words/2, MPI_INTEGER, successor, 10 + direction, MPI_COMM_WORLD, requests(1), ierr)
         call MPI_Isend(outgoing, words/2, MPI_INTEGER, predecessor, 10 + direction, MPI_COMM_WORLD, requests(2), ierr)
         call MPI_Wait(requests(2), status, ierr)
         call MPI_Wait(requests(1), status, ierr)
      end do
   end subroutine
end program
