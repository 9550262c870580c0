! NPB BT: block-tridiagonal systems along three axes of a multi-partitioned cube. A step copies the faces of all cells, then
! sweeps forward and back along each axis, stage by stage; messages of a sweep have one length. Requests and statuses are local
! to a subroutine. Pilgrim figure 5, ScalaTrace figure 10, ScalaTrace II figure 7. Ranks: a square. First argument: steps.
program bt
   use, intrinsic :: iso_fortran_env, only: error_unit
   use mpi
   implicit none
   integer, parameter :: grid = 162, room = 1000000
   integer :: ierr, rank, nranks, steps, step, p, comm, next(3), before(3), axis
   integer, allocatable :: cell(:, :)
   double precision, allocatable, asynchronous :: outgoing(:), incoming(:)

   call begin
   do step = 1, steps
      call copy_faces
      do axis = 1, 3
         call solve(axis)
      end do
   end do
   call conclude

contains

   include 'multipartition.f90'

   subroutine solve(axis)
      integer, intent(in) :: axis
      integer :: stage, square, sent, received, status(MPI_STATUS_SIZE)
      square = thickness(0)**2
      do stage = 0, p - 1
         if (stage /= 0) then
            call MPI_Irecv(incoming, 30*square, MPI_DOUBLE_PRECISION, before(axis), 10 + axis, comm, received, ierr)
            call MPI_Wait(sent, status, ierr)
            call MPI_Wait(received, status, ierr)
         end if
         if (stage /= p - 1) &
            call MPI_Isend(outgoing, 30*square, MPI_DOUBLE_PRECISION, next(axis), 10 + axis, comm, sent, ierr)
      end do
      do stage = p - 1, 0, -1
         if (stage /= p - 1) then
            call MPI_Irecv(incoming, 5*square, MPI_DOUBLE_PRECISION, next(axis), 20 + axis, comm, received, ierr)
            call MPI_Wait(sent, status, ierr)
            call MPI_Wait(received, status, ierr)
         end if
         if (stage /= 0) &
            call MPI_Isend(outgoing, 5*square, MPI_DOUBLE_PRECISION, before(axis), 20 + axis, comm, sent, ierr)
      end do
   end subroutine
end program
