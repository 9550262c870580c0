! Elimination forward and substitution backward through the cells of a row, first along x and then along y. The first
! cell of a sweep receives nothing, the last one sends nothing. Every rank has one cell of each row of ranks.
! First argument: steps (default 10).
module cells
   use mpi
   implicit none
   integer, parameter :: n = 8
   integer :: ierr, rank, nranks, ncells, successor, predecessor, total
   integer, asynchronous :: outgoing(n), incoming(n)
   integer :: values(n, 64)

contains

   subroutine x_solve()
      integer :: stage, i, requests(2), statuses(MPI_STATUS_SIZE, 2)
      do stage = 1, ncells ! x forward
         if (stage /= 1) then
            call MPI_Irecv(incoming, n, MPI_INTEGER, predecessor, 1, MPI_COMM_WORLD, requests(1), ierr)
            call scale(stage)
            call MPI_Waitall(2, requests, statuses, ierr)
            do i = 1, n
               values(i, stage) = modulo(values(i, stage)*3 + incoming(i), 9973)
            end do
         else
            do i = 1, n
               values(i, stage) = modulo(values(i, stage)*5 + i, 9973)
            end do
         end if
         do i = 2, n
            values(i, stage) = modulo(values(i, stage) + values(i - 1, stage), 9973)
         end do
         if (stage /= ncells) then
            do i = 1, n
               outgoing(i) = values(i, stage)
            end do
            call MPI_Isend(outgoing, n, MPI_INTEGER, successor, 1, MPI_COMM_WORLD, requests(2), ierr)
         end if
      end do
      do stage = ncells, 1, -1 ! x backward
         if (stage /= ncells) then
            call MPI_Irecv(incoming, n, MPI_INTEGER, successor, 2, MPI_COMM_WORLD, requests(1), ierr)
            call scale(stage + 1)
            call MPI_Waitall(2, requests, statuses, ierr)
            do i = 1, n
               values(i, stage) = modulo(values(i, stage)*3 + incoming(i), 9973)
            end do
         else
            do i = 1, n
               values(i, stage) = modulo(values(i, stage)*5 + i, 9973)
            end do
         end if
         do i = n - 1, 1, -1
            values(i, stage) = modulo(values(i, stage) + values(i + 1, stage), 9973)
         end do
         if (stage /= 1) then
            do i = 1, n
               outgoing(i) = values(i, stage)
            end do
            call MPI_Isend(outgoing, n, MPI_INTEGER, predecessor, 2, MPI_COMM_WORLD, requests(2), ierr)
         end if
         if (stage == 1) call scale(stage)
      end do
   end subroutine

   subroutine y_solve()
      integer :: stage, i, requests(2), statuses(MPI_STATUS_SIZE, 2)
      do stage = 1, ncells ! y forward
         if (stage /= 1) then
            call MPI_Irecv(incoming, n, MPI_INTEGER, predecessor, 3, MPI_COMM_WORLD, requests(1), ierr)
            call scale(stage)
            call MPI_Waitall(2, requests, statuses, ierr)
            do i = 1, n
               values(i, stage) = modulo(values(i, stage)*3 + incoming(i), 9973)
            end do
         end if
         do i = 2, n
            values(i, stage) = modulo(values(i, stage) + values(i - 1, stage), 9973)
         end do
         if (stage /= ncells) then
            do i = 1, n
               outgoing(i) = values(i, stage)
            end do
            call MPI_Isend(outgoing, n, MPI_INTEGER, successor, 3, MPI_COMM_WORLD, requests(2), ierr)
         end if
      end do
      do stage = ncells, 1, -1 ! y backward
         if (stage /= ncells) then
            call MPI_Irecv(incoming, n, MPI_INTEGER, successor, 4, MPI_COMM_WORLD, requests(1), ierr)
            call scale(stage + 1)
            call MPI_Waitall(2, requests, statuses, ierr)
            do i = 1, n
               values(i, stage) = modulo(values(i, stage)*3 + incoming(i), 9973)
            end do
         end if
         do i = n - 1, 1, -1
            values(i, stage) = modulo(values(i, stage) + values(i + 1, stage), 9973)
         end do
         if (stage /= 1) then
            do i = 1, n
               outgoing(i) = values(i, stage)
            end do
            call MPI_Isend(outgoing, n, MPI_INTEGER, predecessor, 4, MPI_COMM_WORLD, requests(2), ierr)
         end if
         if (stage == 1) call scale(stage)
      end do
   end subroutine

   subroutine scale(cell)
      integer, intent(in) :: cell
      total = modulo(total*31 + sum(values(:, cell)), 1000003)
   end subroutine
end module

program f_sweeps
   use cells
   implicit none
   integer :: steps, step, all
   character(len=16) :: word

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   ncells = nranks
   successor = modulo(rank + 1, nranks)
   predecessor = modulo(rank - 1, nranks)
   steps = 10
   if (command_argument_count() > 0) then
      call get_command_argument(1, word)
      read (word, *) steps
   end if
   total = 0
   values = rank
   do step = 1, steps ! time step
      call x_solve()
      call y_solve()
   end do
   all = 0
   call MPI_Reduce(total, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
   if (rank == 0) print '(a,i0,a,i0)', 'f_sweeps: ', nranks, ' ranks, checksum ', all
   call MPI_Finalize(ierr)
end program
