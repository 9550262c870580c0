C     Fortran 77 with mpif.h, fixed form: point-to-point, requests, collectives, a split, a grid, a derived type.
      program f_mpifh
      implicit none
      include 'mpif.h'
      integer ierr, rank, nranks, left, right, i, n, total
      integer half, grid, vector, provided
      integer status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
      integer requests(4), request
      integer outgoing(16), incoming(16), dims(2), coords(2)
      integer counts(64), places(64), gathered(192)
      logical periods(2), flag
      double precision x, y

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, nranks, ierr)
      left = mod(rank + nranks - 1, nranks)
      right = mod(rank + 1, nranks)
      total = 0
      do i = 1, 16
         outgoing(i) = rank * 16 + i
         incoming(i) = 0
      end do

      call MPI_SENDRECV(outgoing, 4, MPI_INTEGER, right, 1, incoming, 4,
     &     MPI_INTEGER, left, 1, MPI_COMM_WORLD, status, ierr)
      call MPI_GET_COUNT(status, MPI_INTEGER, n, ierr)
      total = total + n + incoming(4)
      if (rank .gt. 0) then
         call MPI_RECV(incoming, 2, MPI_INTEGER, MPI_ANY_SOURCE, 2,
     &        MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
         total = total + incoming(1)
      end if
      if (rank .lt. nranks - 1) then
         call MPI_SEND(outgoing, 2, MPI_INTEGER, rank + 1, 2,
     &        MPI_COMM_WORLD, ierr)
      end if
      call MPI_SEND(outgoing, 2, MPI_INTEGER, MPI_PROC_NULL, 3,
     &     MPI_COMM_WORLD, ierr)

      do n = 1, 3
         call MPI_IRECV(incoming(1), 4, MPI_INTEGER, left, 4,
     &        MPI_COMM_WORLD, requests(1), ierr)
         call MPI_IRECV(incoming(5), 4, MPI_INTEGER, right, 5,
     &        MPI_COMM_WORLD, requests(2), ierr)
         call MPI_ISEND(outgoing(1), 4, MPI_INTEGER, right, 4,
     &        MPI_COMM_WORLD, requests(3), ierr)
         call MPI_ISEND(outgoing(5), 4, MPI_INTEGER, left, 5,
     &        MPI_COMM_WORLD, requests(4), ierr)
         if (n .eq. 2) then
            call MPI_WAITALL(4, requests, MPI_STATUSES_IGNORE, ierr)
         else
            call MPI_WAITALL(4, requests, statuses, ierr)
         end if
         total = total + incoming(1) + incoming(8)
      end do
      call MPI_IRECV(incoming, 1, MPI_INTEGER, rank, 6,
     &     MPI_COMM_WORLD, request, ierr)
      call MPI_SEND(rank, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD,
     &     ierr)
      flag = .false.
      do while (.not. flag)
         call MPI_TEST(request, flag, status, ierr)
      end do

      x = 0.5d0 * rank
      call MPI_ALLREDUCE(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM,
     &     MPI_COMM_WORLD, ierr)
      total = total + int(2 * y)
      call MPI_ALLREDUCE(MPI_IN_PLACE, outgoing, 4, MPI_INTEGER,
     &     MPI_MAX, MPI_COMM_WORLD, ierr)
      call MPI_BCAST(outgoing, 8, MPI_INTEGER, nranks - 1,
     &     MPI_COMM_WORLD, ierr)
      do i = 1, nranks
         counts(i) = 1 + mod(i, 3)
      end do
      places(1) = 0
      do i = 2, nranks
         places(i) = places(i - 1) + counts(i - 1)
      end do
      call MPI_GATHERV(outgoing, counts(rank + 1), MPI_INTEGER,
     &     gathered, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD,
     &     ierr)
      if (rank .eq. 0) total = total + gathered(1)
      call MPI_ALLGATHERV(outgoing, counts(rank + 1), MPI_INTEGER,
     &     gathered, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      total = total + gathered(places(nranks) + 1)
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)

      call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), -rank, half,
     &     ierr)
      call MPI_ALLREDUCE(rank, n, 1, MPI_INTEGER, MPI_SUM, half, ierr)
      total = total + n
      call MPI_COMM_FREE(half, ierr)

      dims(1) = 0
      dims(2) = 0
      periods(1) = .true.
      periods(2) = .false.
      call MPI_DIMS_CREATE(nranks, 2, dims, ierr)
      call MPI_CART_CREATE(MPI_COMM_WORLD, 2, dims, periods, .false.,
     &     grid, ierr)
      call MPI_CART_COORDS(grid, rank, 2, coords, ierr)
      call MPI_CART_SHIFT(grid, 1, 1, left, right, ierr)
      call MPI_SENDRECV(rank, 1, MPI_INTEGER, right, 7, n, 1,
     &     MPI_INTEGER, left, 7, grid, MPI_STATUS_IGNORE, ierr)
      total = total + coords(1)
      call MPI_COMM_FREE(grid, ierr)

      call MPI_TYPE_VECTOR(2, 2, 4, MPI_INTEGER, vector, ierr)
      call MPI_TYPE_COMMIT(vector, ierr)
      call MPI_BCAST(incoming, 1, vector, 0, MPI_COMM_WORLD, ierr)
      call MPI_TYPE_FREE(vector, ierr)
      call MPI_QUERY_THREAD(provided, ierr)

      n = 0
      call MPI_REDUCE(total, n, 1, MPI_INTEGER, MPI_SUM, 0,
     &     MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) print '(a,i0,a,i0)', 'f_mpifh: ', nranks,
     &     ' ranks, checksum ', n
      call MPI_FINALIZE(ierr)
      end program
