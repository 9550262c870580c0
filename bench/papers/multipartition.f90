! What BT and SP share: a cube of GRID^3 points in p slices along each axis, p^2 ranks. Rank (i, j) owns the p cells
! (i+c, j-c, c), one in every slice of every axis, so that all ranks work in every stage of a sweep.

subroutine begin
   character(len=16) :: word
   integer :: c, i, j
   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   steps = 10
   if (command_argument_count() > 0) then
      call get_command_argument(1, word)
      read (word, *) steps
   end if
   p = nint(sqrt(real(nranks)))
   if (p*p /= nranks) then
      if (rank == 0) write (error_unit, '(a,i0)') 'the number of ranks must be a square, not ', nranks
      call MPI_Finalize(ierr)
      stop 2, quiet=.true.
   end if
   allocate (outgoing(room), incoming(room), cell(3, 0:p - 1))
   outgoing = 0
   i = mod(rank, p)
   j = rank/p
   do c = 0, p - 1
      cell(:, c) = [modulo(i + c, p), modulo(j - c, p), c]
   end do
   next = [modulo(i + 1, p) + p*j, i + p*modulo(j + 1, p), modulo(i - 1, p) + p*modulo(j + 1, p)]
   before = [modulo(i - 1, p) + p*j, i + p*modulo(j - 1, p), modulo(i + 1, p) + p*modulo(j - 1, p)]
   call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
   call MPI_Bcast(outgoing, 1, MPI_DOUBLE_PRECISION, 0, comm, ierr)
   call MPI_Bcast(outgoing, 1, MPI_DOUBLE_PRECISION, 0, comm, ierr)
   call MPI_Bcast(outgoing, 3, MPI_DOUBLE_PRECISION, 0, comm, ierr)
   call MPI_Barrier(comm, ierr)
end subroutine

subroutine conclude
   call MPI_Allreduce(outgoing, incoming, 5, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
   call MPI_Allreduce(outgoing, incoming, 5, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
   call MPI_Reduce(outgoing, incoming, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm, ierr)
   call MPI_Finalize(ierr)
end subroutine

! Points of a slice along one axis: the first ones are thicker where the grid does not divide.
integer function thickness(slice)
   integer, intent(in) :: slice
   thickness = grid/p
   if (slice < mod(grid, p)) thickness = thickness + 1
end function

! Points of the face that the cell turns to its neighbour along the axis.
integer function face(axis, c)
   integer, intent(in) :: axis, c
   face = thickness(cell(mod(axis, 3) + 1, c))*thickness(cell(mod(axis + 1, 3) + 1, c))
end function

! Of all cells that are not in this slice of the axis.
integer function faces(axis, but)
   integer, intent(in) :: axis, but
   integer :: c
   faces = 0
   do c = 0, p - 1
      if (cell(axis, c) /= but) faces = faces + face(axis, c)
   end do
end function

! The cell in this slice of the axis.
integer function in_slice(axis, slice)
   integer, intent(in) :: axis, slice
   do in_slice = 0, p - 1
      if (cell(axis, in_slice) == slice) return
   end do
end function

! Both sides of all cells, in all directions at once.
subroutine copy_faces
   integer :: axis, requests(12), statuses(MPI_STATUS_SIZE, 12)
   if (p == 1) return
   do axis = 1, 3
      call MPI_Irecv(incoming, 10*faces(axis, p - 1), MPI_DOUBLE_PRECISION, next(axis), 2*axis, comm, &
                     requests(2*axis - 1), ierr)
      call MPI_Irecv(incoming, 10*faces(axis, 0), MPI_DOUBLE_PRECISION, before(axis), 2*axis + 1, comm, &
                     requests(2*axis), ierr)
   end do
   do axis = 1, 3
      call MPI_Isend(outgoing, 10*faces(axis, p - 1), MPI_DOUBLE_PRECISION, next(axis), 2*axis + 1, comm, &
                     requests(2*axis + 5), ierr)
      call MPI_Isend(outgoing, 10*faces(axis, 0), MPI_DOUBLE_PRECISION, before(axis), 2*axis, comm, &
                     requests(2*axis + 6), ierr)
   end do
   call MPI_Waitall(12, requests, statuses, ierr)
end subroutine
