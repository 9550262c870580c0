! NPB SP: scalar pentadiagonal systems along three axes of a multi-partitioned cube. As BT, but a message of a sweep is as long
! as the cell's face, so lengths vary from stage to stage, and each stage waits for both of its requests at once.
! Pilgrim figure 5, ScalaTrace II figure 7. Ranks: a square. First argument: steps.
program sp
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
      integer :: stage, points, requests(2), statuses(MPI_STATUS_SIZE, 2)
      do stage = 0, p - 1
         points = face(axis, in_slice(axis, stage))
         if (stage /= 0) then
            call MPI_Irecv(incoming, 22*points, MPI_DOUBLE_PRECISION, before(axis), 10 + axis, comm, requests(1), ierr)
            call MPI_Waitall(2, requests, statuses, ierr)
         end if
         if (stage /= p - 1) &
            call MPI_Isend(outgoing, 22*points, MPI_DOUBLE_PRECISION, next(axis), 10 + axis, comm, requests(2), ierr)
      end do
      do stage = p - 1, 0, -1
         points = face(axis, in_slice(axis, stage))
         if (stage /= p - 1) then
            call MPI_Irecv(incoming, 10*points, MPI_DOUBLE_PRECISION, next(axis), 20 + axis, comm, requests(1), ierr)
            call MPI_Waitall(2, requests, statuses, ierr)
         end if
         if (stage /= 0) &
            call MPI_Isend(outgoing, 10*points, MPI_DOUBLE_PRECISION, before(axis), 20 + axis, comm, requests(2), ierr)
      end do
   end subroutine
end program
