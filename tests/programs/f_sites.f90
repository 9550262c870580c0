! Calls from seven places, through other subroutines and a recursion. Argument: how deep that goes.
module ways
  use mpi
  implicit none
  integer :: rank, size
contains
  subroutine ping(tag)
    integer, intent(in) :: tag
    integer :: out, in, ierror, status(MPI_STATUS_SIZE)
    out = rank
    call MPI_Sendrecv(out, 1, MPI_INTEGER, mod(rank + 1, size), tag, in, 1, MPI_INTEGER, mod(rank + size - 1, size), tag, &
                      MPI_COMM_WORLD, status, ierror)
    if (ierror /= MPI_SUCCESS) stop 1
  end subroutine

  recursive subroutine down(depth)
    integer, intent(in) :: depth
    integer :: ierror
    call ping(1)
    if (depth > 0) call down(depth - 1)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (ierror /= MPI_SUCCESS) stop 1
  end subroutine
end module

program f_sites
  use ways
  implicit none
  integer :: ierror, step, depth
  character(len=16) :: word
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  depth = 4
  if (command_argument_count() > 0) then
    call get_command_argument(1, word)
    read (word, *) depth
  end if
  do step = 1, 10
    call ping(2)
    call down(depth)
    call MPI_Bcast(depth, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  end do
  call MPI_Finalize(ierror)
end program
