! Stores of 4 bytes into three arrays of 1000: array 0 before any mark, array 1 five times while recording is off, array 2 five
! times while it is on. It prints where the arrays are.
program regions
  implicit none
  integer, volatile, save :: arrays(1000, 3)
  integer :: i
  external :: refrain_memory_on, refrain_memory_off
  do i = 1, 3
    print '(A, Z0)', '0x', loc(arrays(1, i))
  end do
  call fill(1)
  do i = 1, 5
    call refrain_memory_off()
    call fill(2)
    call refrain_memory_on()
    call fill(3)
  end do
contains
  subroutine fill(n)
    integer, intent(in) :: n
    integer :: k
    do k = 1, 1000
      arrays(k, n) = k
    end do
  end subroutine
end program
