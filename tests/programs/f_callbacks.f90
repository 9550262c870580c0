! Fortran's own functions called by MPI, and calling it; errors in ierr, MPI_IN_PLACE, statuses.
module called_back
  use mpi
  implicit none
  integer :: total = 0
contains
  subroutine add(in, inout, n, datatype)
    integer :: n, datatype, bytes, ierr, i
    integer :: in(n), inout(n)
    call MPI_Type_size(datatype, bytes, ierr)
    do i = 1, n
      inout(i) = inout(i) + in(i) + bytes - 4
    end do
  end subroutine

  subroutine copy(comm, key, extra, value, result, flag, ierr)
    integer :: comm, key, ierr, members
    integer(kind=MPI_ADDRESS_KIND) :: extra, value, result
    logical :: flag
    call MPI_Comm_size(comm, members, ierr)
    total = total + members + key - key + int(extra)
    result = value + 1
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine

  subroutine drop(comm, key, value, extra, ierr)
    integer :: comm, key, ierr, me
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    ! Not of `comm`: for Open MPI 4.1 it is none any more.
    call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
    total = total + 10 * me + int(value) + key - key + int(extra) + comm - comm
    ierr = MPI_SUCCESS
  end subroutine

  subroutine on_error(comm, code)
    integer :: comm, code, class, me, ierr
    call MPI_Error_class(code, class, ierr)
    call MPI_Comm_rank(comm, me, ierr)
    total = total + 100 * class + me
  end subroutine
end module

program f_callbacks
  use called_back
  implicit none
  integer :: ierr, me, members, op, key, mine, copied, handler, code, class, send, sum
  integer :: values(3), room(1), status(MPI_STATUS_SIZE)
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, members, ierr)

  call MPI_Op_create(add, .true., op, ierr)
  values = (/ me, 1, 2 /)
  call MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  total = total + values(1) + values(2) + values(3)
  call MPI_Op_free(op, ierr)

  extra = 5
  value = 7
  call MPI_Comm_create_keyval(copy, drop, key, extra, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, mine, ierr)
  call MPI_Comm_set_attr(mine, key, value, ierr)
  call MPI_Comm_dup(mine, copied, ierr)
  call MPI_Comm_get_attr(copied, key, value, flag, ierr)
  if (flag) total = total + int(value)
  call MPI_Comm_delete_attr(copied, key, ierr)
  call MPI_Comm_free(copied, ierr)
  call MPI_Comm_free(mine, ierr)
  call MPI_Comm_free_keyval(key, ierr)

  call MPI_Comm_dup(MPI_COMM_WORLD, mine, ierr)
  call MPI_Comm_create_errhandler(on_error, handler, ierr)
  call MPI_Comm_set_errhandler(mine, handler, ierr)
  call MPI_Send(values, 1, MPI_INTEGER, members + 5, 0, mine, code)
  call MPI_Error_class(code, class, ierr)
  total = total + class
  call MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Isend(values, 3, MPI_INTEGER, me, 4, mine, send, ierr)
  call MPI_Recv(room, 1, MPI_INTEGER, me, 4, mine, status, code)
  call MPI_Error_class(code, class, ierr)
  total = total + class + status(MPI_TAG)
  call MPI_Wait(send, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_free(mine, ierr)

  call MPI_Reduce(total, sum, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (me == 0) print '(a,i0,a,i0)', 'f_callbacks: ', members, ' ranks, total ', sum
  call MPI_Finalize(ierr)
end program
