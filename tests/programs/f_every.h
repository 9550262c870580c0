! Every function that has a Fortran binding in both libraries, called once or more. One source for the three bindings:
! the program that includes it defines MPIF_H, USE_MPI or USE_F08. Nothing that it does depends on who is faster, so that
! the same calls come of it with every library. For two ranks or more; only the first two talk to each other.
#ifdef USE_F08
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#define ERRHANDLER type(MPI_Errhandler)
#define FILE_HANDLE type(MPI_File)
#define GROUP type(MPI_Group)
#define INFO type(MPI_Info)
#define MESSAGE type(MPI_Message)
#define OP type(MPI_Op)
#define REQUEST type(MPI_Request)
#define WIN type(MPI_Win)
#define STATUS type(MPI_Status)
#define STATUSES(n) type(MPI_Status), dimension(n)
#define BINDING use mpi_f08
#else
#define COMM integer
#define DATATYPE integer
#define ERRHANDLER integer
#define FILE_HANDLE integer
#define GROUP integer
#define INFO integer
#define MESSAGE integer
#define OP integer
#define REQUEST integer
#define WIN integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define STATUSES(n) integer, dimension(MPI_STATUS_SIZE, n)
#ifdef USE_MPI
#define BINDING use mpi
#endif
#endif

! What MPI calls.
module called
contains
#ifdef USE_F08
   subroutine add(in, inout, n, datatype) bind(c)
      use, intrinsic :: iso_c_binding
      use mpi_f08
      type(c_ptr), value :: in, inout
      integer :: n
      type(MPI_Datatype) :: datatype
      integer, pointer :: a(:), b(:)
      call c_f_pointer(in, a, [n])
      call c_f_pointer(inout, b, [n])
      b = a + b
   end subroutine
#else
   subroutine add(in, inout, n, datatype)
      integer :: n, datatype, in(n), inout(n)
      inout = in + inout
   end subroutine
#endif

   ! MPI-2's attributes.
   subroutine copy(object, key, extra, value, result, flag, ierr)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      COMM :: object
      integer :: key, ierr
      integer(kind=MPI_ADDRESS_KIND) :: extra, value, result
      logical :: flag
      result = value + extra
      flag = .true.
      ierr = MPI_SUCCESS
   end subroutine

   subroutine drop(object, key, value, extra, ierr)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      COMM :: object
      integer :: key, ierr
      integer(kind=MPI_ADDRESS_KIND) :: value, extra
      ierr = MPI_SUCCESS
   end subroutine

#ifndef USE_F08
   ! MPI-1's.
   subroutine copy1(object, key, extra, value, result, flag, ierr)
      integer :: object, key, extra, value, result, ierr
      logical :: flag
      result = value + extra
      flag = .true.
      ierr = 0
   end subroutine

   subroutine drop1(object, key, value, extra, ierr)
      integer :: object, key, value, extra, ierr
      ierr = 0
   end subroutine
#endif

   subroutine on_comm(object, code)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      COMM :: object
      integer :: code
   end subroutine

   subroutine on_win(object, code)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      WIN :: object
      integer :: code
   end subroutine

   subroutine on_file(object, code)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      FILE_HANDLE :: object
      integer :: code
   end subroutine

   subroutine query(extra, status, ierr)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      integer(kind=MPI_ADDRESS_KIND) :: extra
      STATUS :: status
      integer :: ierr
      call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierr)
      call MPI_Status_set_elements_x(status, MPI_INTEGER, 3_MPI_COUNT_KIND, ierr)
      call MPI_Status_set_cancelled(status, .false., ierr)
#ifdef USE_F08
      status%MPI_SOURCE = MPI_UNDEFINED
      status%MPI_TAG = MPI_UNDEFINED
#else
      status(MPI_SOURCE) = MPI_UNDEFINED
      status(MPI_TAG) = MPI_UNDEFINED
#endif
      ierr = MPI_SUCCESS
   end subroutine

   subroutine release(extra, ierr)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      integer(kind=MPI_ADDRESS_KIND) :: extra
      integer :: ierr
      ierr = MPI_SUCCESS
   end subroutine

   subroutine cancel(extra, complete, ierr)
#ifdef MPIF_H
      include 'mpif.h'
#else
      BINDING
#endif
      integer(kind=MPI_ADDRESS_KIND) :: extra
      logical :: complete
      integer :: ierr
      ierr = MPI_SUCCESS
   end subroutine
end module

program f_every
   use called
   use, intrinsic :: iso_c_binding, only: c_ptr, c_null_ptr, c_f_pointer
#ifndef MPIF_H
   BINDING
#endif
   implicit none
#ifdef MPIF_H
   include 'mpif.h'
#endif
   integer :: ierr, rank, nranks, n, m, length, i
   integer, target :: a(64) = 0, b(64) = 0, room(4096)
   integer :: counts(64), places(64)
   logical :: flag
   character(len=64) :: text
   character(len=MPI_MAX_OBJECT_NAME) :: title
   character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: long
   COMM :: pair, comm, other
   REQUEST :: request, requests(4)
   STATUS :: status
   DATATYPE :: datatype, another
   INFO :: information
   GROUP :: all, some
   ERRHANDLER :: handler
   integer(kind=MPI_ADDRESS_KIND) :: address, extent, lower, value, extra
   integer(kind=MPI_COUNT_KIND) :: many, more
   integer(kind=MPI_OFFSET_KIND) :: offset

   call MPI_Initialized(flag, ierr)
   call MPI_Init_thread(MPI_THREAD_SERIALIZED, n, ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   a = [(100*rank + i, i=1, 64)]
   call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < 2), rank, pair, ierr)
   if (pair /= MPI_COMM_NULL) then
      call MPI_Comm_rank(pair, rank, ierr)
      call surroundings
      call messages
      call completions
      call persistent
      call collectives
      call nonblocking
      call communicators
      call topologies
      call types
      call attributes
      call windows
      call files
      call MPI_Comm_free(pair, ierr)
   end if
   call MPI_Finalize(ierr)
   call MPI_Finalized(flag, ierr)

contains
   subroutine surroundings
      double precision :: seconds
      call MPI_Query_thread(n, ierr)
      call MPI_Is_thread_main(flag, ierr)
      call MPI_Get_version(n, m, ierr)
      call MPI_Get_library_version(long, length, ierr)
      call MPI_Get_processor_name(long, length, ierr)
      call MPI_Pcontrol(1)
      seconds = MPI_Wtime()
      seconds = MPI_Wtick()
      call MPI_Comm_get_parent(comm, ierr)
      call MPI_Add_error_class(n, ierr)
      call MPI_Add_error_code(n, m, ierr)
      call MPI_Add_error_string(m, 'an error of ours', ierr)
      call MPI_Error_class(m, n, ierr)
      call MPI_Error_string(m, long, length, ierr)

      call MPI_Info_create(information, ierr)
      call MPI_Info_set(information, 'a key', ' a value  ', ierr)
      call MPI_Info_set(information, 'another', 'x', ierr)
      call MPI_Info_get(information, 'a key', 20, text, flag, ierr)
      call MPI_Info_get(information, 'none', 20, text, flag, ierr)
      call MPI_Info_get_valuelen(information, 'a key   ', length, flag, ierr)
      call MPI_Info_get_nkeys(information, n, ierr)
      call MPI_Info_get_nthkey(information, 1, text, ierr)
      call MPI_Info_delete(information, 'another', ierr)
      call MPI_Comm_dup_with_info(pair, information, comm, ierr)
      call MPI_Comm_set_info(comm, information, ierr)
      call MPI_Info_free(information, ierr)
      call MPI_Comm_get_info(comm, information, ierr)
      call MPI_Info_dup(information, information, ierr)
      call MPI_Info_free(information, ierr)
      call MPI_Comm_free(comm, ierr)
   end subroutine

   subroutine messages
      MESSAGE :: found
      n = 1 - rank
      call MPI_Sendrecv(a, 4, MPI_INTEGER, n, 1, b, 4, MPI_INTEGER, n, 1, pair, status, ierr)
      call MPI_Get_count(status, MPI_INTEGER, m, ierr)
      call MPI_Get_elements(status, MPI_INTEGER, m, ierr)
      call MPI_Get_elements_x(status, MPI_INTEGER, many, ierr)
      call MPI_Sendrecv(a, 4, MPI_INTEGER, n, 1, b, 4, MPI_INTEGER, n, 1, pair, MPI_STATUS_IGNORE, ierr)
      call MPI_Sendrecv_replace(b, 4, MPI_INTEGER, n, 2, n, 2, pair, status, ierr)
      call MPI_Sendrecv_replace(b, 4, MPI_INTEGER, n, 2, n, 2, pair, MPI_STATUS_IGNORE, ierr)
      call MPI_Buffer_attach(room, 4096*4, ierr)
      if (rank == 0) then
         call MPI_Send(a, 1, MPI_INTEGER, 1, 3, pair, ierr)
         call MPI_Send(a, 1, MPI_INTEGER, MPI_PROC_NULL, 3, pair, ierr)
         call MPI_Bsend(a, 2, MPI_INTEGER, 1, 4, pair, ierr)
         call MPI_Ssend(a, 3, MPI_INTEGER, 1, 5, pair, ierr)
         call MPI_Barrier(pair, ierr)
         call MPI_Rsend(a, 4, MPI_INTEGER, 1, 6, pair, ierr)
         call MPI_Send(a, 5, MPI_INTEGER, 1, 7, pair, ierr)
         call MPI_Send(a, 5, MPI_INTEGER, 1, 7, pair, ierr)
         call MPI_Send(a, 6, MPI_INTEGER, 1, 8, pair, ierr)
         call MPI_Send(a, 6, MPI_INTEGER, 1, 8, pair, ierr)
         call MPI_Get_address(a, address, ierr)
         call MPI_Type_create_hindexed(1, [2], [address], MPI_INTEGER, datatype, ierr)
         call MPI_Type_commit(datatype, ierr)
         call MPI_Send(MPI_BOTTOM, 1, datatype, 1, 9, pair, ierr)
         call MPI_Type_free(datatype, ierr)
      else
         call MPI_Probe(0, 3, pair, MPI_STATUS_IGNORE, ierr)
         call MPI_Probe(MPI_ANY_SOURCE, 3, pair, status, ierr)
         call MPI_Recv(b, 4, MPI_INTEGER, 0, MPI_ANY_TAG, pair, status, ierr)
         call MPI_Recv(b, 4, MPI_INTEGER, 0, 4, pair, MPI_STATUS_IGNORE, ierr)
         call MPI_Irecv(b, 4, MPI_INTEGER, 0, 6, pair, request, ierr)
         call MPI_Recv(b(11), 4, MPI_INTEGER, 0, 5, pair, MPI_STATUS_IGNORE, ierr)
         call MPI_Barrier(pair, ierr)
         call MPI_Wait(request, status, ierr)
         call MPI_Mprobe(0, 7, pair, found, status, ierr)
         call MPI_Mrecv(b, 5, MPI_INTEGER, found, status, ierr)
         call MPI_Mprobe(0, 7, pair, found, MPI_STATUS_IGNORE, ierr)
         call MPI_Mrecv(b, 5, MPI_INTEGER, found, MPI_STATUS_IGNORE, ierr)
         flag = .false.
         do while (.not. flag)
            call MPI_Iprobe(0, 8, pair, flag, MPI_STATUS_IGNORE, ierr)
         end do
         call MPI_Iprobe(0, 8, pair, flag, status, ierr)
         flag = .false.
         do while (.not. flag)
            call MPI_Improbe(0, 8, pair, flag, found, MPI_STATUS_IGNORE, ierr)
         end do
         call MPI_Imrecv(b, 6, MPI_INTEGER, found, request, ierr)
         call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
         flag = .false.
         do while (.not. flag)
            call MPI_Improbe(0, 8, pair, flag, found, status, ierr)
         end do
         call MPI_Mrecv(b, 6, MPI_INTEGER, found, MPI_STATUS_IGNORE, ierr)
         call MPI_Recv(b, 2, MPI_INTEGER, 0, 9, pair, MPI_STATUS_IGNORE, ierr)
      end if
#ifdef USE_F08
      block
         type(c_ptr) :: attached
         call MPI_Buffer_detach(attached, n, ierr)
      end block
#else
      call MPI_Buffer_detach(room, n, ierr)
#endif
   end subroutine

   ! One request of several is active, so that nobody can be the first.
   subroutine one_active(place, kind)
      integer, intent(in) :: place, kind
      requests = MPI_REQUEST_NULL
      call MPI_Irecv(b, 4, MPI_INTEGER, rank, kind, pair, requests(place), ierr)
      select case (mod(kind, 4))
      case (0)
         call MPI_Isend(a, 4, MPI_INTEGER, rank, kind, pair, request, ierr)
      case (1)
         call MPI_Issend(a, 4, MPI_INTEGER, rank, kind, pair, request, ierr)
      case (2)
         call MPI_Irsend(a, 4, MPI_INTEGER, rank, kind, pair, request, ierr)
      case default
         call MPI_Ibsend(a, 4, MPI_INTEGER, rank, kind, pair, request, ierr)
      end select
   end subroutine

   subroutine completions
      STATUSES(4) :: statuses
      integer :: indices(4), done, index
      call MPI_Buffer_attach(room, 4096*4, ierr)
      call one_active(2, 20)
      call MPI_Waitany(4, requests, index, status, ierr)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      call one_active(3, 21)
      call MPI_Waitany(4, requests, index, MPI_STATUS_IGNORE, ierr)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      call one_active(2, 22)
      call MPI_Waitsome(4, requests, done, indices, statuses, ierr)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      call one_active(4, 23)
      call MPI_Waitsome(4, requests, done, indices, MPI_STATUSES_IGNORE, ierr)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      call one_active(1, 24)
      call MPI_Waitall(4, requests, statuses, ierr)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      call one_active(1, 25)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      do i = 1, 2
         call one_active(i, 26)
         flag = .false.
         do while (.not. flag)
            if (i == 1) call MPI_Testany(4, requests, index, flag, status, ierr)
            if (i == 2) call MPI_Testany(4, requests, index, flag, MPI_STATUS_IGNORE, ierr)
         end do
         call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
         call one_active(i, 27)
         done = 0
         do while (done == 0)
            if (i == 1) call MPI_Testsome(4, requests, done, indices, statuses, ierr)
            if (i == 2) call MPI_Testsome(4, requests, done, indices, MPI_STATUSES_IGNORE, ierr)
         end do
         call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
         call one_active(i, 28)
         flag = .false.
         do while (.not. flag)
            if (i == 1) call MPI_Testall(4, requests, flag, statuses, ierr)
            if (i == 2) call MPI_Testall(4, requests, flag, MPI_STATUSES_IGNORE, ierr)
         end do
         call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
         call one_active(i, 32)
         flag = .false.
         do while (.not. flag)
            call MPI_Request_get_status(requests(i), flag, status, ierr)
         end do
         flag = .false.
         do while (.not. flag)
            if (i == 1) call MPI_Test(requests(i), flag, status, ierr)
            if (i == 2) call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE, ierr)
         end do
         call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      end do
      ! Nothing to wait for.
      call MPI_Waitall(0, requests, MPI_STATUSES_IGNORE, ierr)
      call MPI_Waitall(0, requests, statuses, ierr)
      call MPI_Testall(0, requests, flag, MPI_STATUSES_IGNORE, ierr)
      call MPI_Waitany(0, requests, index, MPI_STATUS_IGNORE, ierr)
      call MPI_Testany(0, requests, index, flag, MPI_STATUS_IGNORE, ierr)
      call MPI_Waitsome(0, requests, done, indices, MPI_STATUSES_IGNORE, ierr)
      call MPI_Testsome(0, requests, done, indices, MPI_STATUSES_IGNORE, ierr)
      call MPI_Startall(0, requests, ierr)
      requests = MPI_REQUEST_NULL
      call MPI_Waitany(4, requests, index, MPI_STATUS_IGNORE, ierr)
      call MPI_Waitsome(4, requests, done, indices, MPI_STATUSES_IGNORE, ierr)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)

      call MPI_Irecv(b, 4, MPI_INTEGER, rank, 30, pair, request, ierr)
      ! Open MPI 4.1 never says yes to who ignores the status.
      call MPI_Request_get_status(request, flag, MPI_STATUS_IGNORE, ierr)
      call MPI_Cancel(request, ierr)
      call MPI_Wait(request, status, ierr)
      call MPI_Test_cancelled(status, flag, ierr)
      extra = 11
      call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
      call MPI_Grequest_complete(request, ierr)
      call MPI_Wait(request, status, ierr)
#ifdef USE_F08
      block
         type(c_ptr) :: attached
         call MPI_Buffer_detach(attached, n, ierr)
      end block
#else
      call MPI_Buffer_detach(room, n, ierr)
#endif
   end subroutine

   subroutine persistent
      call MPI_Buffer_attach(room, 4096*4, ierr)
      do i = 1, 4
         call MPI_Recv_init(b, 4, MPI_INTEGER, rank, 40, pair, requests(1), ierr)
         select case (i)
         case (1)
            call MPI_Send_init(a, 4, MPI_INTEGER, rank, 40, pair, requests(2), ierr)
         case (2)
            call MPI_Bsend_init(a, 4, MPI_INTEGER, rank, 40, pair, requests(2), ierr)
         case (3)
            call MPI_Ssend_init(a, 4, MPI_INTEGER, rank, 40, pair, requests(2), ierr)
         case default
            call MPI_Rsend_init(a, 4, MPI_INTEGER, rank, 40, pair, requests(2), ierr)
         end select
         call MPI_Startall(2, requests, ierr)
         call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
         call MPI_Start(requests(1), ierr)
         call MPI_Start(requests(2), ierr)
         call MPI_Wait(requests(1), status, ierr)
         call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
         call MPI_Request_free(requests(1), ierr)
         call MPI_Request_free(requests(2), ierr)
      end do
#ifdef USE_F08
      block
         type(c_ptr) :: attached
         call MPI_Buffer_detach(attached, n, ierr)
      end block
#else
      call MPI_Buffer_detach(room, n, ierr)
#endif
   end subroutine

   subroutine collectives
      DATATYPE :: kinds(2)
      integer :: sizes(2), at(2), at2(2)
      OP :: sum
      kinds = MPI_INTEGER
      sizes = [1, 2]
      at = [0, 1]
      at2 = [0, 4]
      call MPI_Barrier(pair, ierr)
      call MPI_Bcast(a, 2, MPI_INTEGER, 0, pair, ierr)
      call MPI_Gather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, pair, ierr)
      if (rank == 0) call MPI_Gather(MPI_IN_PLACE, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, pair, ierr)
      if (rank == 1) call MPI_Gather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, pair, ierr)
      call MPI_Gatherv(a, sizes(rank + 1), MPI_INTEGER, b, sizes, at, MPI_INTEGER, 1, pair, ierr)
      call MPI_Scatter(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, pair, ierr)
      call MPI_Scatterv(a, sizes, at, MPI_INTEGER, b, sizes(rank + 1), MPI_INTEGER, 0, pair, ierr)
      call MPI_Allgather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, pair, ierr)
      call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 2, MPI_INTEGER, pair, ierr)
      call MPI_Allgatherv(a, sizes(rank + 1), MPI_INTEGER, b, sizes, at, MPI_INTEGER, pair, ierr)
      call MPI_Alltoall(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, pair, ierr)
      sizes = 1
      call MPI_Alltoallv(a, sizes, at, MPI_INTEGER, b, sizes, at, MPI_INTEGER, pair, ierr)
      call MPI_Alltoallw(a, sizes, at2, kinds, b, sizes, at2, kinds, pair, ierr)
      call MPI_Reduce(a, b, 2, MPI_INTEGER, MPI_MAX, 0, pair, ierr)
      call MPI_Allreduce(a, b, 2, MPI_INTEGER, MPI_BAND, pair, ierr)
      call MPI_Allreduce(MPI_IN_PLACE, b, 2, MPI_INTEGER, MPI_SUM, pair, ierr)
      call MPI_Reduce_scatter(a, b, sizes, MPI_INTEGER, MPI_SUM, pair, ierr)
      call MPI_Reduce_scatter_block(a, b, 2, MPI_INTEGER, MPI_SUM, pair, ierr)
      call MPI_Scan(a, b, 2, MPI_INTEGER, MPI_SUM, pair, ierr)
      call MPI_Exscan(a, b, 2, MPI_INTEGER, MPI_SUM, pair, ierr)
      call MPI_Op_create(add, .true., sum, ierr)
      call MPI_Op_commutative(sum, flag, ierr)
      call MPI_Allreduce(a, b, 2, MPI_INTEGER, sum, pair, ierr)
      call MPI_Reduce_local(a, b, 2, MPI_INTEGER, sum, ierr)
      call MPI_Op_free(sum, ierr)
   end subroutine

   subroutine complete
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
   end subroutine

   subroutine nonblocking
      DATATYPE :: kinds(2)
      integer :: sizes(2), at(2), at2(2)
      kinds = MPI_INTEGER
      sizes = [1, 2]
      at = [0, 1]
      at2 = [0, 4]
      call MPI_Ibarrier(pair, request, ierr)
      call complete
      call MPI_Ibcast(a, 2, MPI_INTEGER, 0, pair, request, ierr)
      call complete
      call MPI_Igather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, pair, request, ierr)
      call complete
      call MPI_Igatherv(a, sizes(rank + 1), MPI_INTEGER, b, sizes, at, MPI_INTEGER, 1, pair, request, ierr)
      call complete
      call MPI_Iscatter(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, pair, request, ierr)
      call complete
      call MPI_Iscatterv(a, sizes, at, MPI_INTEGER, b, sizes(rank + 1), MPI_INTEGER, 0, pair, request, ierr)
      call complete
      call MPI_Iallgather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, pair, request, ierr)
      call complete
      call MPI_Iallgatherv(a, sizes(rank + 1), MPI_INTEGER, b, sizes, at, MPI_INTEGER, pair, request, ierr)
      call complete
      call MPI_Ialltoall(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, pair, request, ierr)
      call complete
      sizes = 1
      call MPI_Ialltoallv(a, sizes, at, MPI_INTEGER, b, sizes, at, MPI_INTEGER, pair, request, ierr)
      call complete
      call MPI_Ialltoallw(a, sizes, at2, kinds, b, sizes, at2, kinds, pair, request, ierr)
      call complete
      call MPI_Ireduce(a, b, 2, MPI_INTEGER, MPI_MAX, 0, pair, request, ierr)
      call complete
      call MPI_Iallreduce(a, b, 2, MPI_INTEGER, MPI_SUM, pair, request, ierr)
      call complete
      call MPI_Ireduce_scatter(a, b, sizes, MPI_INTEGER, MPI_SUM, pair, request, ierr)
      call complete
      call MPI_Ireduce_scatter_block(a, b, 2, MPI_INTEGER, MPI_SUM, pair, request, ierr)
      call complete
      call MPI_Iscan(a, b, 2, MPI_INTEGER, MPI_SUM, pair, request, ierr)
      call complete
      call MPI_Iexscan(a, b, 2, MPI_INTEGER, MPI_SUM, pair, request, ierr)
      call complete
   end subroutine

   subroutine communicators
      GROUP :: rest
      integer :: ranges(3, 1), translated(2)
      call MPI_Comm_dup(pair, comm, ierr)
      call MPI_Comm_compare(pair, comm, n, ierr)
      call MPI_Comm_test_inter(comm, flag, ierr)
      call MPI_Comm_set_name(comm, 'a copy of the pair', ierr)
      call MPI_Comm_get_name(comm, title, length, ierr)
      call MPI_Comm_disconnect(comm, ierr)
      call MPI_Comm_idup(pair, comm, request, ierr)
      call complete
      call MPI_Comm_free(comm, ierr)
      call MPI_Comm_split_type(pair, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, comm, ierr)
      call MPI_Comm_free(comm, ierr)

      call MPI_Comm_group(pair, all, ierr)
      call MPI_Group_size(all, n, ierr)
      call MPI_Group_rank(all, n, ierr)
      call MPI_Group_incl(all, 1, [0], some, ierr)
      call MPI_Group_excl(all, 1, [0], rest, ierr)
      call MPI_Group_compare(some, rest, n, ierr)
      call MPI_Group_translate_ranks(all, 2, [0, 1], some, translated, ierr)
      call MPI_Comm_create(pair, some, comm, ierr)
      if (comm /= MPI_COMM_NULL) call MPI_Comm_free(comm, ierr)
      if (rank == 0) then
         call MPI_Comm_create_group(pair, some, 5, comm, ierr)
         call MPI_Comm_free(comm, ierr)
      end if
      call MPI_Group_free(some, ierr)
      call MPI_Group_union(all, rest, some, ierr)
      call MPI_Group_free(some, ierr)
      call MPI_Group_intersection(all, rest, some, ierr)
      call MPI_Group_free(some, ierr)
      call MPI_Group_difference(all, rest, some, ierr)
      call MPI_Group_free(some, ierr)
      ranges(:, 1) = [0, 1, 1]
      call MPI_Group_range_incl(all, 1, ranges, some, ierr)
      call MPI_Group_free(some, ierr)
      ranges(:, 1) = [1, 1, 1]
      call MPI_Group_range_excl(all, 1, ranges, some, ierr)
      call MPI_Group_free(some, ierr)
      call MPI_Group_free(rest, ierr)
      call MPI_Group_free(all, ierr)

      call MPI_Intercomm_create(MPI_COMM_SELF, 0, pair, 1 - rank, 6, comm, ierr)
      call MPI_Comm_remote_size(comm, n, ierr)
      call MPI_Comm_remote_group(comm, some, ierr)
      call MPI_Group_free(some, ierr)
      call MPI_Gatherv(a, 1, MPI_INTEGER, b, [1], [0], MPI_INTEGER, merge(MPI_ROOT, 0, rank == 0), comm, ierr)
      call MPI_Intercomm_merge(comm, rank == 1, other, ierr)
      call MPI_Comm_free(other, ierr)
      call MPI_Comm_free(comm, ierr)
   end subroutine

   subroutine topologies
      integer :: dims(2), coords(2), neighbours(4), edges(2), sources(4), weights(4), more_weights(4)
      integer(kind=MPI_ADDRESS_KIND) :: at(4)
      DATATYPE :: kinds(4)
      logical :: periods(2), remain(2)
      dims = [2, 1]
      periods = [.true., .false.]
      call MPI_Dims_create(2, 2, dims, ierr)
      call MPI_Cart_map(pair, 2, dims, periods, n, ierr)
      call MPI_Cart_create(pair, 2, dims, periods, .false., comm, ierr)
      call MPI_Topo_test(comm, n, ierr)
      call MPI_Cartdim_get(comm, n, ierr)
      call MPI_Cart_get(comm, 2, dims, periods, coords, ierr)
      call MPI_Cart_coords(comm, 1, 2, coords, ierr)
      call MPI_Cart_rank(comm, coords, n, ierr)
      call MPI_Cart_shift(comm, 0, 1, n, m, ierr)
      remain = [.true., .false.]
      call MPI_Cart_sub(comm, remain, other, ierr)
      call MPI_Comm_free(other, ierr)
      counts(1:4) = 1
      places(1:4) = [0, 1, 2, 3]
      at = [0, 4, 8, 12]
      kinds = MPI_INTEGER
      call MPI_Neighbor_allgather(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, comm, ierr)
      call MPI_Neighbor_allgatherv(a, 1, MPI_INTEGER, b, counts, places, MPI_INTEGER, comm, ierr)
      call MPI_Neighbor_alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, comm, ierr)
      call MPI_Neighbor_alltoallv(a, counts, places, MPI_INTEGER, b, counts, places, MPI_INTEGER, comm, ierr)
      call MPI_Ineighbor_allgather(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, comm, request, ierr)
      call complete
      call MPI_Ineighbor_allgatherv(a, 1, MPI_INTEGER, b, counts, places, MPI_INTEGER, comm, request, ierr)
      call complete
      call MPI_Ineighbor_alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, comm, request, ierr)
      call complete
      call MPI_Ineighbor_alltoallv(a, counts, places, MPI_INTEGER, b, counts, places, MPI_INTEGER, comm, request, ierr)
      call complete
      call MPI_Comm_free(comm, ierr)

      edges = [1, 0]
      call MPI_Graph_map(pair, 2, [1, 2], edges, n, ierr)
      call MPI_Graph_create(pair, 2, [1, 2], edges, .false., comm, ierr)
      call MPI_Graphdims_get(comm, n, m, ierr)
      call MPI_Graph_get(comm, 2, 2, coords, edges, ierr)
      call MPI_Graph_neighbors_count(comm, rank, n, ierr)
      call MPI_Graph_neighbors(comm, rank, 1, neighbours, ierr)
      call MPI_Comm_free(comm, ierr)

      call MPI_Dist_graph_create(pair, 1, [rank], [1], [1 - rank], [3], MPI_INFO_NULL, .false., comm, ierr)
      call MPI_Dist_graph_neighbors_count(comm, n, m, flag, ierr)
      call MPI_Dist_graph_neighbors(comm, 1, sources, weights, 1, neighbours, more_weights, ierr)
      ! Here, since MPICH 4.0 takes every topology for such a one in mpi_f08.
      call MPI_Neighbor_alltoallw(a, counts, at, kinds, b, counts, at, kinds, comm, ierr)
      call MPI_Ineighbor_alltoallw(a, counts, at, kinds, b, counts, at, kinds, comm, request, ierr)
      call complete
      call MPI_Comm_free(comm, ierr)
      call MPI_Dist_graph_create(pair, 1, [rank], [1], [1 - rank], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., comm, ierr)
      call MPI_Comm_free(comm, ierr)
      call MPI_Dist_graph_create_adjacent(pair, 1, [1 - rank], MPI_UNWEIGHTED, 1, [1 - rank], MPI_UNWEIGHTED, &
                                          MPI_INFO_NULL, .false., comm, ierr)
      call MPI_Comm_free(comm, ierr)
   end subroutine

   subroutine types
      integer :: integers(16), lengths(2), combiner, ni, na, nt
      integer(kind=MPI_ADDRESS_KIND) :: addresses(4), where(2)
      DATATYPE :: kinds(4)
      lengths = [1, 2]
      where = [0, 16]
      call MPI_Type_contiguous(3, MPI_INTEGER, datatype, ierr)
      call MPI_Type_set_name(datatype, 'three', ierr)
      call MPI_Type_get_name(datatype, title, length, ierr)
      call MPI_Type_size(datatype, n, ierr)
      call MPI_Type_size_x(datatype, many, ierr)
      call MPI_Type_get_extent(datatype, lower, extent, ierr)
      call MPI_Type_get_extent_x(datatype, many, more, ierr)
      call MPI_Type_get_true_extent(datatype, lower, extent, ierr)
      call MPI_Type_get_true_extent_x(datatype, many, more, ierr)
      call MPI_Type_get_envelope(datatype, ni, na, nt, combiner, ierr)
      call MPI_Type_get_contents(datatype, ni, na, nt, integers, addresses, kinds, ierr)
      call MPI_Type_dup(datatype, another, ierr)
      call MPI_Type_commit(another, ierr)
      call MPI_Type_free(another, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_vector(2, 2, 4, MPI_INTEGER, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_hvector(2, 2, 16_MPI_ADDRESS_KIND, MPI_INTEGER, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_indexed(2, lengths, [0, 4], MPI_INTEGER, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_hindexed(2, lengths, where, MPI_INTEGER, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_indexed_block(2, 2, [0, 4], MPI_INTEGER, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_hindexed_block(2, 2, where, MPI_INTEGER, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      kinds(1) = MPI_INTEGER
      kinds(2) = MPI_DOUBLE_PRECISION
      call MPI_Type_create_struct(2, lengths, where, kinds, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_subarray(2, [4, 4], [2, 2], [1, 1], MPI_ORDER_FORTRAN, MPI_REAL, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_darray(2, 0, 1, [8], [MPI_DISTRIBUTE_BLOCK], [MPI_DISTRIBUTE_DFLT_DARG], [2], MPI_ORDER_FORTRAN, &
                                  MPI_LOGICAL, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_resized(MPI_INTEGER, -4_MPI_ADDRESS_KIND, 12_MPI_ADDRESS_KIND, datatype, ierr)
      call MPI_Type_free(datatype, ierr)
      call MPI_Type_create_f90_integer(6, datatype, ierr)
      call MPI_Type_create_f90_real(6, 30, datatype, ierr)
      call MPI_Type_create_f90_complex(6, 30, datatype, ierr)
      call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, datatype, ierr)
      call sums
      call MPI_Get_address(a(3), address, ierr)

      call MPI_Pack_size(4, MPI_INTEGER, pair, n, ierr)
      n = 0
      call MPI_Pack(a, 4, MPI_INTEGER, room, 256, n, pair, ierr)
      n = 0
      call MPI_Unpack(room, 256, n, b, 4, MPI_INTEGER, pair, ierr)
      call MPI_Pack_external_size('external32', 4, MPI_INTEGER, extent, ierr)
      address = 0
      call MPI_Pack_external('external32', a, 4, MPI_INTEGER, room, 256_MPI_ADDRESS_KIND, address, ierr)
      address = 0
      call MPI_Unpack_external('external32', room, 256_MPI_ADDRESS_KIND, address, b, 4, MPI_INTEGER, ierr)
#ifdef USE_F08
      block
         type(c_ptr) :: memory
         integer, pointer :: words(:)
         call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, ierr)
         call c_f_pointer(memory, words, [16])
         call MPI_Free_mem(words, ierr)
      end block
#else
      block
         integer :: words(*)
         pointer (memory, words)
         call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, ierr)
         call MPI_Free_mem(words, ierr)
      end block
      call removed_types
#endif
   end subroutine

   subroutine sums
#ifdef MPIF_H
      ! Not every mpif.h says what they are.
      integer(kind=MPI_ADDRESS_KIND), external :: MPI_Aint_add, MPI_Aint_diff
#endif
      address = MPI_Aint_add(1000_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND)
      address = MPI_Aint_diff(1000_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND)
   end subroutine

   subroutine attributes
      integer :: key
      call MPI_Comm_dup(pair, comm, ierr)
      extra = 5
      call MPI_Comm_create_keyval(copy, drop, key, extra, ierr)
      do i = -1, 1
         value = i
         call MPI_Comm_set_attr(comm, key, value, ierr)
         call MPI_Comm_get_attr(comm, key, value, flag, ierr)
      end do
      call MPI_Comm_dup(comm, other, ierr)
      call MPI_Comm_get_attr(other, key, value, flag, ierr)
      call MPI_Comm_delete_attr(other, key, ierr)
      call MPI_Comm_get_attr(other, key, value, flag, ierr)
      call MPI_Comm_free(other, ierr)
      call MPI_Comm_free_keyval(key, ierr)
      call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, extra, ierr)
      call MPI_Comm_free_keyval(key, ierr)
      call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, value, flag, ierr)

      call MPI_Type_contiguous(2, MPI_INTEGER, datatype, ierr)
      call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, key, extra, ierr)
      value = 77
      call MPI_Type_set_attr(datatype, key, value, ierr)
      call MPI_Type_get_attr(datatype, key, value, flag, ierr)
      call MPI_Type_delete_attr(datatype, key, ierr)
      call MPI_Type_free_keyval(key, ierr)
      call MPI_Type_free(datatype, ierr)

      call MPI_Comm_create_errhandler(on_comm, handler, ierr)
      call MPI_Comm_set_errhandler(comm, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_Comm_get_errhandler(comm, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER, ierr)
#ifndef USE_F08
      call removed_attributes
#endif
      call MPI_Comm_free(comm, ierr)
   end subroutine

#ifndef USE_F08
   ! Not in MPI any more, but in the libraries.
   subroutine removed_types
      integer :: old, bytes(2)
      external :: MPI_Address, MPI_Type_extent, MPI_Type_lb, MPI_Type_ub, MPI_Type_hvector, MPI_Type_hindexed, MPI_Type_struct
      call MPI_Address(a(1), bytes(1), ierr)
      call MPI_Address(a(3), bytes(2), ierr)
      call MPI_Type_extent(MPI_INTEGER, n, ierr)
      call MPI_Type_lb(MPI_INTEGER, n, ierr)
      call MPI_Type_ub(MPI_INTEGER, n, ierr)
      call MPI_Type_hvector(2, 2, 16, MPI_INTEGER, old, ierr)
      call MPI_Type_free(old, ierr)
      bytes = [0, 16]
      call MPI_Type_hindexed(2, [1, 2], bytes, MPI_INTEGER, old, ierr)
      call MPI_Type_free(old, ierr)
      call MPI_Type_struct(2, [1, 2], bytes, [MPI_INTEGER, MPI_REAL], old, ierr)
      call MPI_Type_free(old, ierr)
   end subroutine

   subroutine removed_attributes
      integer :: key, number
      external :: MPI_Keyval_create, MPI_Keyval_free, MPI_Attr_put, MPI_Attr_get, MPI_Attr_delete
      external :: MPI_Errhandler_create, MPI_Errhandler_set, MPI_Errhandler_get
      call MPI_Keyval_create(copy1, drop1, key, -5, ierr)
      call MPI_Attr_put(comm, key, -7, ierr)
      call MPI_Attr_get(comm, key, number, flag, ierr)
      call MPI_Attr_delete(comm, key, ierr)
      call MPI_Keyval_free(key, ierr)
      call MPI_Errhandler_create(on_comm, handler, ierr)
      call MPI_Errhandler_set(comm, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_Errhandler_get(comm, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
   end subroutine
#endif

   subroutine windows
      WIN :: window
      integer :: key, unit
      integer(kind=MPI_ADDRESS_KIND) :: first
      first = 0
      call MPI_Win_create(a, 256_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, pair, window, ierr)
      call MPI_Win_set_name(window, 'a window', ierr)
      call MPI_Win_get_name(window, title, length, ierr)
      call MPI_Win_create_errhandler(on_win, handler, ierr)
      call MPI_Win_set_errhandler(window, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_Win_get_errhandler(window, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_Win_call_errhandler(window, MPI_ERR_OTHER, ierr)
      call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, key, extra, ierr)
      value = 88
      call MPI_Win_set_attr(window, key, value, ierr)
      call MPI_Win_get_attr(window, key, value, flag, ierr)
      call MPI_Win_delete_attr(window, key, ierr)
      call MPI_Win_free_keyval(key, ierr)
      call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, flag, ierr)
      call MPI_Win_get_info(window, information, ierr)
      call MPI_Win_set_info(window, information, ierr)
      call MPI_Info_free(information, ierr)
      call MPI_Win_get_group(window, all, ierr)
      call MPI_Group_incl(all, 1, [1 - rank], some, ierr)
      call MPI_Win_fence(0, window, ierr)
      call MPI_Put(b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, window, ierr)
      call MPI_Win_fence(0, window, ierr)
      call MPI_Get(b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, window, ierr)
      call MPI_Win_fence(0, window, ierr)
      call MPI_Accumulate(b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, MPI_SUM, window, ierr)
      call MPI_Win_fence(0, window, ierr)
      call MPI_Win_post(some, 0, window, ierr)
      call MPI_Win_start(some, 0, window, ierr)
      call MPI_Win_complete(window, ierr)
      call MPI_Win_wait(window, ierr)
      call MPI_Win_post(some, 0, window, ierr)
      call MPI_Win_start(some, 0, window, ierr)
      call MPI_Win_complete(window, ierr)
      flag = .false.
      do while (.not. flag)
         call MPI_Win_test(window, flag, ierr)
      end do
      call MPI_Group_free(some, ierr)
      call MPI_Group_free(all, ierr)
      call MPI_Win_free(window, ierr)

      call MPI_Win_create(a, 256_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, pair, window, ierr)
      call MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, window, ierr)
      call MPI_Rput(b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, window, request, ierr)
      call complete
      call MPI_Win_flush(1 - rank, window, ierr)
      call MPI_Rget(b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, window, request, ierr)
      call complete
      call MPI_Raccumulate(b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, MPI_SUM, window, request, ierr)
      call complete
      call MPI_Win_flush_local(1 - rank, window, ierr)
      call MPI_Rget_accumulate(a(8), 1, MPI_INTEGER, b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, MPI_SUM, window, &
                               request, ierr)
      call complete
      call MPI_Win_unlock(1 - rank, window, ierr)
      call MPI_Win_lock_all(0, window, ierr)
      call MPI_Get_accumulate(a(8), 1, MPI_INTEGER, b, 1, MPI_INTEGER, 1 - rank, first, 1, MPI_INTEGER, MPI_SUM, window, ierr)
      call MPI_Win_flush_all(window, ierr)
      call MPI_Fetch_and_op(a(8), b, MPI_INTEGER, 1 - rank, first, MPI_SUM, window, ierr)
      call MPI_Win_flush_local_all(window, ierr)
      call MPI_Compare_and_swap(a(8), a(9), b, MPI_INTEGER, 1 - rank, first, window, ierr)
      call MPI_Win_sync(window, ierr)
      call MPI_Win_unlock_all(window, ierr)
      call MPI_Win_free(window, ierr)

      call MPI_Win_create_dynamic(MPI_INFO_NULL, pair, window, ierr)
      call MPI_Win_attach(window, a, 64_MPI_ADDRESS_KIND, ierr)
      call MPI_Win_detach(window, a, ierr)
      call MPI_Win_free(window, ierr)
#ifdef USE_F08
      block
         type(c_ptr) :: base
         call MPI_Win_allocate(64_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, pair, base, window, ierr)
         call MPI_Win_free(window, ierr)
         call MPI_Win_allocate_shared(64_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, pair, base, window, ierr)
         call MPI_Win_shared_query(window, 0, extent, unit, base, ierr)
         call MPI_Win_free(window, ierr)
      end block
#else
      block
         integer(kind=MPI_ADDRESS_KIND) :: base
         call MPI_Win_allocate(64_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, pair, base, window, ierr)
         call MPI_Win_free(window, ierr)
         call MPI_Win_allocate_shared(64_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, pair, base, window, ierr)
         call MPI_Win_shared_query(window, 0, extent, unit, base, ierr)
         call MPI_Win_free(window, ierr)
      end block
#endif
   end subroutine

   ! Each function that has a status once with one and once without.
   subroutine files
      FILE_HANDLE :: file
      integer(kind=MPI_OFFSET_KIND) :: place
      DATATYPE :: etype, filetype
      character(len=40) :: name
      name = 'every.dat'
      call MPI_File_open(pair, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, ierr)
      call MPI_File_create_errhandler(on_file, handler, ierr)
      call MPI_File_set_errhandler(file, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_File_get_errhandler(file, handler, ierr)
      call MPI_Errhandler_free(handler, ierr)
      call MPI_File_call_errhandler(file, MPI_ERR_OTHER, ierr)
      call MPI_File_get_amode(file, n, ierr)
      call MPI_File_get_group(file, all, ierr)
      call MPI_Group_free(all, ierr)
      call MPI_File_get_info(file, information, ierr)
      call MPI_File_set_info(file, information, ierr)
      call MPI_Info_free(information, ierr)
      call MPI_File_set_size(file, 2048_MPI_OFFSET_KIND, ierr)
      ! No more than there is: a rank of Open MPI 4.1 that comes late to a file that has grown leaves out a broadcast.
      call MPI_File_preallocate(file, 1024_MPI_OFFSET_KIND, ierr)
      call MPI_File_get_size(file, offset, ierr)
      call MPI_File_set_atomicity(file, .false., ierr)
      call MPI_File_get_atomicity(file, flag, ierr)
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
      call MPI_File_get_view(file, offset, etype, filetype, text, ierr)
      call MPI_File_get_type_extent(file, MPI_INTEGER, extent, ierr)
      place = 8*rank
      call MPI_File_seek(file, place, MPI_SEEK_SET, ierr)
      call MPI_File_get_position(file, offset, ierr)
      call MPI_File_get_byte_offset(file, 3_MPI_OFFSET_KIND, offset, ierr)
      call MPI_File_write(file, a, 2, MPI_INTEGER, status, ierr)
      call MPI_File_write(file, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_write_all(file, a, 2, MPI_INTEGER, status, ierr)
      call MPI_File_write_all(file, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_sync(file, ierr)
      call MPI_File_seek(file, place, MPI_SEEK_SET, ierr)
      call MPI_File_read(file, b, 2, MPI_INTEGER, status, ierr)
      call MPI_File_read(file, b, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_read_all(file, b, 2, MPI_INTEGER, status, ierr)
      call MPI_File_read_all(file, b, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_write_at(file, place, a, 2, MPI_INTEGER, status, ierr)
      call MPI_File_write_at(file, place, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_write_at_all(file, place, a, 2, MPI_INTEGER, status, ierr)
      call MPI_File_write_at_all(file, place, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_read_at(file, place, b, 2, MPI_INTEGER, status, ierr)
      call MPI_File_read_at(file, place, b, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_read_at_all(file, place, b, 2, MPI_INTEGER, status, ierr)
      call MPI_File_read_at_all(file, place, b, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_seek(file, place, MPI_SEEK_SET, ierr)
      call MPI_File_iwrite(file, a, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_iwrite_all(file, a, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_iwrite_at(file, place, a, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_iwrite_at_all(file, place, a, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_sync(file, ierr)
      call MPI_File_seek(file, place, MPI_SEEK_SET, ierr)
      call MPI_File_iread(file, b, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_iread_all(file, b, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_iread_at(file, place, b, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_iread_at_all(file, place, b, 2, MPI_INTEGER, request, ierr)
      call complete
      call MPI_File_write_all_begin(file, a, 2, MPI_INTEGER, ierr)
      call MPI_File_write_all_end(file, a, status, ierr)
      call MPI_File_write_at_all_begin(file, place, a, 2, MPI_INTEGER, ierr)
      call MPI_File_write_at_all_end(file, a, MPI_STATUS_IGNORE, ierr)
      call MPI_File_seek(file, place, MPI_SEEK_SET, ierr)
      call MPI_File_read_all_begin(file, b, 2, MPI_INTEGER, ierr)
      call MPI_File_read_all_end(file, b, MPI_STATUS_IGNORE, ierr)
      call MPI_File_read_at_all_begin(file, place, b, 2, MPI_INTEGER, ierr)
      call MPI_File_read_at_all_end(file, b, status, ierr)
      ! The shared pointer, in turns.
      call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
      call MPI_File_write_ordered(file, a, 2, MPI_INTEGER, status, ierr)
      call MPI_File_write_ordered(file, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_write_ordered_begin(file, a, 2, MPI_INTEGER, ierr)
      call MPI_File_write_ordered_end(file, a, MPI_STATUS_IGNORE, ierr)
      call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
      call MPI_File_read_ordered(file, b, 2, MPI_INTEGER, status, ierr)
      call MPI_File_read_ordered(file, b, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      call MPI_File_read_ordered_begin(file, b, 2, MPI_INTEGER, ierr)
      call MPI_File_read_ordered_end(file, b, MPI_STATUS_IGNORE, ierr)
      call MPI_File_get_position_shared(file, offset, ierr)
      call MPI_Barrier(pair, ierr)
      call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
      if (rank == 0) then
         call MPI_File_write_shared(file, a, 2, MPI_INTEGER, status, ierr)
         call MPI_File_write_shared(file, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
         call MPI_File_iwrite_shared(file, a, 2, MPI_INTEGER, request, ierr)
         call complete
      end if
      call MPI_Barrier(pair, ierr)
      call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
      if (rank == 0) then
         call MPI_File_read_shared(file, b, 2, MPI_INTEGER, status, ierr)
         call MPI_File_read_shared(file, b, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
         call MPI_File_iread_shared(file, b, 2, MPI_INTEGER, request, ierr)
         call complete
      end if
      call MPI_Barrier(pair, ierr)
      call MPI_File_close(file, ierr)
      if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL, ierr)
   end subroutine
end program
