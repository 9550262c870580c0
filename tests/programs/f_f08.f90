! Fortran 2008 with `use mpi_f08`: typed handles, statuses as derived types, ierror left out.
program f_f08
   use mpi_f08
   implicit none
   integer :: rank, nranks, left, right, i, n, total, dims(2), coords(2), found, done
   integer, allocatable, asynchronous :: outgoing(:), incoming(:)
   integer, allocatable :: counts(:), places(:), gathered(:)
   integer :: indices(4)
   type(MPI_Comm) :: half, grid
   type(MPI_Datatype) :: vector, block
   type(MPI_Request) :: requests(4), request
   type(MPI_Status) :: status, statuses(4)
   logical :: periods(2), flag
   real(kind(1d0)) :: x, y

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks)
   left = modulo(rank - 1, nranks)
   right = modulo(rank + 1, nranks)
   allocate (outgoing(32), incoming(32), counts(nranks), places(nranks), gathered(3*nranks))
   outgoing = [(rank*32 + i, i=1, 32)]
   incoming = 0
   total = 0

   call MPI_Sendrecv(outgoing, 4, MPI_INTEGER, right, 1, incoming, 4, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
   call MPI_Get_count(status, MPI_INTEGER, n)
   total = total + n + status%MPI_SOURCE + incoming(4)
   if (rank > 0) then
      call MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, status)
      call MPI_Recv(incoming, 4, MPI_INTEGER, status%MPI_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      total = total + incoming(1)
   end if
   if (rank < nranks - 1) call MPI_Ssend(outgoing, 2, MPI_INTEGER, rank + 1, 2, MPI_COMM_WORLD)
   call MPI_Send(outgoing, 2, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD)

   do n = 1, 3
      call MPI_Irecv(incoming(1:4), 4, MPI_INTEGER, left, 4, MPI_COMM_WORLD, requests(1))
      call MPI_Irecv(incoming(5:8), 4, MPI_INTEGER, right, 5, MPI_COMM_WORLD, requests(2))
      call MPI_Isend(outgoing(1:4), 4, MPI_INTEGER, right, 4, MPI_COMM_WORLD, requests(3))
      call MPI_Isend(outgoing(5:8), 4, MPI_INTEGER, left, 5, MPI_COMM_WORLD, requests(4))
      select case (n)
      case (1)
         call MPI_Waitall(4, requests, statuses)
      case (2)
         call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
      case default
         ! The first alone is left, so that nobody can be faster.
         do i = 2, 4
            call MPI_Wait(requests(i), MPI_STATUS_IGNORE)
         end do
         found = 3
         do while (found < 4)
            call MPI_Waitsome(4, requests, done, indices, statuses)
            found = found + done
         end do
      end select
      total = total + incoming(1) + incoming(8)
   end do

   call MPI_Ibcast(outgoing, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
   flag = .false.
   do while (.not. flag)
      call MPI_Test(request, flag, MPI_STATUS_IGNORE)
   end do
   total = total + outgoing(2)

   x = 0.5d0*rank
   call MPI_Allreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
   call MPI_Allreduce(MPI_IN_PLACE, outgoing, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
   total = total + outgoing(3) + int(2*y)
   counts = [(1 + mod(i, 3), i=1, nranks)]
   places(1) = 0
   do i = 2, nranks
      places(i) = places(i - 1) + counts(i - 1)
   end do
   call MPI_Gatherv(outgoing, counts(rank + 1), MPI_INTEGER, gathered, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD)
   call MPI_Allgatherv(outgoing, counts(rank + 1), MPI_INTEGER, gathered, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
   total = total + gathered(places(nranks) + 1)

   call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
   call MPI_Exscan(rank, n, 1, MPI_INTEGER, MPI_SUM, half)
   call MPI_Barrier(half)
   call MPI_Comm_free(half)

   dims = 0
   periods = .false.
   call MPI_Dims_create(nranks, 2, dims)
   call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid)
   call MPI_Cart_coords(grid, rank, 2, coords)
   call MPI_Cart_shift(grid, 1, 1, left, right)
   call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 7, incoming, 1, MPI_INTEGER, left, 7, grid, MPI_STATUS_IGNORE)
   total = total + coords(1)
   call MPI_Comm_free(grid)

   call MPI_Type_indexed(2, [1, 2], [0, 4], MPI_INTEGER, vector)
   call MPI_Type_commit(vector)
   call MPI_Bcast(incoming, 1, vector, 0, MPI_COMM_WORLD)
   call MPI_Type_create_subarray(2, [4, 4], [2, 2], [1, 1], MPI_ORDER_FORTRAN, MPI_INTEGER, block)
   call MPI_Type_commit(block)
   call MPI_Bcast(incoming, 1, block, 0, MPI_COMM_WORLD)
   call MPI_Type_free(block)
   call MPI_Type_free(vector)

   n = 0
   call MPI_Reduce(total, n, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
   if (rank == 0) print '(a,i0,a,i0)', 'f_f08: ', nranks, ' ranks, checksum ', n
   call MPI_Finalize()
end program
