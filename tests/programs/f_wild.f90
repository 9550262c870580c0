! Receives from any source and with any tag whose status nobody wants, as wild.c has them: the payload says who sent it and with
! which tag. Rank 0 prints what it got, one line for each message in the order of its receives.
program f_wild
  use mpi
  integer :: error, rank, ranks, i, message(2), requests(2), messages(2,2), which
  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  if (rank /= 0) then
    do i = 1, 4
      message = (/ rank, 10*i + rank /)
      call mpi_send(message, 2, mpi_integer, 0, message(2), mpi_comm_world, error)
    end do
  else
    do i = 1, ranks-1
      call mpi_recv(message, 2, mpi_integer, mpi_any_source, mpi_any_tag, mpi_comm_world, mpi_status_ignore, error)
      print *, 'recv', message
    end do
    do i = 1, ranks-1
      call mpi_irecv(message, 2, mpi_integer, mpi_any_source, mpi_any_tag, mpi_comm_world, requests(1), error)
      call mpi_wait(requests(1), mpi_status_ignore, error)
      print *, 'irecv', message
    end do
    do i = 1, ranks-1
      call mpi_irecv(messages(1,i), 2, mpi_integer, mpi_any_source, mpi_any_tag, mpi_comm_world, requests(i), error)
    end do
    call mpi_waitall(ranks-1, requests, mpi_statuses_ignore, error)
    do i = 1, ranks-1
      print *, 'irecv', messages(:,i)
    end do
    do i = 1, ranks-1
      call mpi_irecv(messages(1,i), 2, mpi_integer, mpi_any_source, mpi_any_tag, mpi_comm_world, requests(i), error)
    end do
    do i = 1, ranks-1
      call mpi_waitany(ranks-1, requests, which, mpi_status_ignore, error)
    end do
    do i = 1, ranks-1
      print *, 'irecv', messages(:,i)
    end do
  end if
  call mpi_finalize(error)
end program f_wild
