! Fortran 90 with `use mpi`: the same ground as f_mpifh, and persistent requests, Waitany, scatter and scan.
program f_usempi
   use mpi
   implicit none
   integer :: ierr, rank, nranks, left, right, i, n, total, half, grid, vector, block, found
   integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4), requests(4), dims(2), coords(2)
   integer, allocatable :: outgoing(:), incoming(:), counts(:), places(:), gathered(:)
   integer :: lengths(2), kinds(2), group, others
   integer(kind=MPI_ADDRESS_KIND) :: starts(2), lower, extent
   logical :: periods(2), flag
   double precision :: x, y

   call MPI_Initialized(flag, ierr)
   call MPI_Init_thread(MPI_THREAD_FUNNELED, n, ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   left = modulo(rank - 1, nranks)
   right = modulo(rank + 1, nranks)
   allocate (outgoing(32), incoming(32), counts(nranks), places(nranks), gathered(3*nranks))
   outgoing = [(rank*32 + i, i=1, 32)]
   incoming = 0
   total = 0

   call MPI_Sendrecv(outgoing, 4, MPI_INTEGER, right, 1, incoming, 4, MPI_INTEGER, left, MPI_ANY_TAG, &
                     MPI_COMM_WORLD, status, ierr)
   call MPI_Get_count(status, MPI_INTEGER, n, ierr)
   total = total + n + status(MPI_SOURCE) + incoming(4)
   call MPI_Recv(incoming, 2, MPI_INTEGER, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)

   do n = 1, 2
      call MPI_Irecv(incoming(1), 4, MPI_INTEGER, left, 4, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Irecv(incoming(5), 4, MPI_INTEGER, right, 5, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Isend(outgoing(1), 4, MPI_INTEGER, right, 4, MPI_COMM_WORLD, requests(3), ierr)
      call MPI_Isend(outgoing(5), 4, MPI_INTEGER, left, 5, MPI_COMM_WORLD, requests(4), ierr)
      if (n == 1) then
         call MPI_Waitall(4, requests, statuses, ierr)
      else
         call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
      end if
      total = total + incoming(1) + incoming(8)
   end do

   call MPI_Recv_init(incoming(1), 4, MPI_INTEGER, left, 6, MPI_COMM_WORLD, requests(1), ierr)
   call MPI_Send_init(outgoing(1), 4, MPI_INTEGER, right, 6, MPI_COMM_WORLD, requests(2), ierr)
   do n = 1, 2
      call MPI_Startall(2, requests, ierr)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
      call MPI_Waitany(2, requests, found, status, ierr)
      total = total + incoming(2)
   end do
   call MPI_Request_free(requests(1), ierr)
   call MPI_Request_free(requests(2), ierr)

   x = 0.25d0*rank
   call MPI_Allreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
   call MPI_Reduce(MPI_IN_PLACE, y, 1, MPI_DOUBLE_PRECISION, MPI_MIN, 0, MPI_COMM_SELF, ierr)
   call MPI_Scan(rank, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
   total = total + n + int(4*y)
   counts = [(1 + mod(i, 3), i=1, nranks)]
   places(1) = 0
   do i = 2, nranks
      places(i) = places(i - 1) + counts(i - 1)
   end do
   call MPI_Allgatherv(outgoing, counts(rank + 1), MPI_INTEGER, gathered, counts, places, MPI_INTEGER, &
                       MPI_COMM_WORLD, ierr)
   total = total + gathered(places(nranks) + 1)
   call MPI_Scatterv(gathered, counts, places, MPI_INTEGER, incoming, counts(rank + 1), MPI_INTEGER, 0, &
                     MPI_COMM_WORLD, ierr)
   call MPI_Alltoall(gathered, 1, MPI_INTEGER, incoming, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
   total = total + incoming(1)

   call MPI_Comm_split(MPI_COMM_WORLD, merge(MPI_UNDEFINED, 1, rank == 0), rank, half, ierr)
   if (half /= MPI_COMM_NULL) then
      call MPI_Bcast(incoming, 2, MPI_INTEGER, 0, half, ierr)
      call MPI_Comm_free(half, ierr)
   end if
   call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
   call MPI_Group_incl(group, 1, [0], others, ierr)
   call MPI_Comm_create(MPI_COMM_WORLD, others, half, ierr)
   if (half /= MPI_COMM_NULL) call MPI_Comm_free(half, ierr)
   call MPI_Group_free(others, ierr)
   call MPI_Group_free(group, ierr)

   dims = 0
   periods = [.true., .false.]
   call MPI_Dims_create(nranks, 2, dims, ierr)
   call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid, ierr)
   call MPI_Cart_get(grid, 2, dims, periods, coords, ierr)
   call MPI_Cart_shift(grid, 0, 1, left, right, ierr)
   call MPI_Sendrecv_replace(outgoing, 2, MPI_INTEGER, right, 7, left, 7, grid, MPI_STATUS_IGNORE, ierr)
   total = total + coords(2) + outgoing(1)
   call MPI_Comm_free(grid, ierr)

   call MPI_Type_vector(2, 2, 4, MPI_INTEGER, vector, ierr)
   call MPI_Type_commit(vector, ierr)
   call MPI_Bcast(incoming, 1, vector, 0, MPI_COMM_WORLD, ierr)
   lengths = [1, 2]
   kinds = [vector, MPI_DOUBLE_PRECISION]
   starts = [0_MPI_ADDRESS_KIND, 64_MPI_ADDRESS_KIND]
   call MPI_Type_create_struct(2, lengths, starts, kinds, block, ierr)
   call MPI_Type_get_extent(block, lower, extent, ierr)
   total = total + int(extent)
   call MPI_Type_free(block, ierr)
   call MPI_Type_free(vector, ierr)

   x = MPI_Wtime()
   n = 0
   call MPI_Reduce(total, n, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
   if (rank == 0) print '(a,i0,a,i0)', 'f_usempi: ', nranks, ' ranks, checksum ', n
   call MPI_Finalize(ierr)
end program
