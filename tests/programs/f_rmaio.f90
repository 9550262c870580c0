! Windows and files from Fortran: displacements of kind MPI_ADDRESS_KIND, offsets of kind MPI_OFFSET_KIND, file names
! that are padded with blanks. The file lies in the working directory.
program f_rmaio
   use mpi_f08
   use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
   implicit none
   integer, parameter :: n = 8
   character(len=40), parameter :: name = 'fortran file.dat'
   integer :: rank, nranks, left, right, i, code, total, all, word, length, mode, class
   integer, asynchronous :: mine(n), got(n)
   integer, pointer :: shared(:)
   integer(MPI_ADDRESS_KIND) :: bytes, displacement, extent, lower
   integer(MPI_OFFSET_KIND) :: place, behind, file_size
   type(c_ptr) :: base
   type(MPI_Win) :: win
   type(MPI_File) :: fh
   type(MPI_Request) :: request
   type(MPI_Status) :: status
   type(MPI_Group) :: group, to, from
   type(MPI_Info) :: info
   type(MPI_Datatype) :: stripe, etype, filetype
   character(len=MPI_MAX_OBJECT_NAME) :: text
   character(len=MPI_MAX_DATAREP_STRING) :: representation
   logical :: flag

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks)
   left = modulo(rank - 1, nranks)
   right = modulo(rank + 1, nranks)
   total = 0
   mine = [(100*rank + i, i=1, n)]
   got = 0
   word = storage_size(word)/8

   ! A window on memory of the program.
   bytes = n*word
   call MPI_Win_create(mine, bytes, word, MPI_INFO_NULL, MPI_COMM_WORLD, win)
   call MPI_Win_set_name(win, 'a Fortran window')
   call MPI_Win_get_name(win, text, length)
   total = total + length
   displacement = 2
   call MPI_Win_fence(MPI_MODE_NOPRECEDE, win)
   call MPI_Get(got, 3, MPI_INTEGER, right, displacement, 3, MPI_INTEGER, win)
   call MPI_Win_fence(0, win)
   total = total + sum(got)
   call MPI_Put(rank, 1, MPI_INTEGER, left, 7_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
   call MPI_Put(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
   call MPI_Accumulate(rank, 1, MPI_INTEGER, right, 6_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win)
   call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
   total = total + mine(8) + mine(7)
   call MPI_Win_get_group(win, group)
   call MPI_Group_incl(group, 1, [right], to)
   call MPI_Group_incl(group, 1, [left], from)
   call MPI_Win_post(from, 0, win)
   call MPI_Win_start(to, 0, win)
   call MPI_Put(rank, 1, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
   call MPI_Win_complete(win)
   call MPI_Win_wait(win)
   total = total + mine(1)
   call MPI_Group_free(to)
   call MPI_Group_free(from)
   call MPI_Group_free(group)
   call MPI_Win_free(win)

   ! Windows on memory of the library.
   call MPI_Win_allocate(bytes, word, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
   call c_f_pointer(base, shared, [n])
   call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win)
   shared = 10*rank
   call MPI_Win_unlock(rank, win)
   call MPI_Barrier(MPI_COMM_WORLD)
   call MPI_Win_lock_all(0, win)
   call MPI_Rget(got, 2, MPI_INTEGER, right, 4_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win, request)
   call MPI_Wait(request, MPI_STATUS_IGNORE)
   total = total + got(1)
   call MPI_Barrier(MPI_COMM_WORLD)
   call MPI_Fetch_and_op(rank, got, MPI_INTEGER, right, 1_MPI_ADDRESS_KIND, MPI_REPLACE, win)
   call MPI_Win_flush(right, win)
   total = total + got(1)
   call MPI_Compare_and_swap(nranks, 10*right, got, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, win)
   call MPI_Win_flush_all(win)
   total = total + got(1)
   call MPI_Get_accumulate(mine, 2, MPI_INTEGER, got, 2, MPI_INTEGER, right, 5_MPI_ADDRESS_KIND, 2, &
                           MPI_INTEGER, MPI_SUM, win)
   call MPI_Win_unlock_all(win)
   total = total + got(2)
   call MPI_Win_free(win)
   call MPI_Win_allocate_shared(bytes, word, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
   call MPI_Win_shared_query(win, 0, extent, length, base)
   total = total + int(extent) + length
   call MPI_Win_free(win)

   ! A file of blocks, one to a rank.
   call MPI_Info_create(info)
   call MPI_Info_set(info, 'cb_buffer_size', '65536')
   call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, info, fh)
   call MPI_Info_free(info)
   call MPI_File_get_amode(fh, mode)
   mine = [(100*rank + i, i=1, n)]
   place = int(rank, MPI_OFFSET_KIND)*n*word
   call MPI_File_write_at_all(fh, place, mine, n, MPI_INTEGER, status)
   call MPI_File_sync(fh)
   call MPI_Barrier(MPI_COMM_WORLD)
   place = int(right, MPI_OFFSET_KIND)*n*word
   call MPI_File_read_at(fh, place, got, n, MPI_INTEGER, status)
   call MPI_Get_count(status, MPI_INTEGER, length)
   total = total + length + got(n)
   call MPI_File_iread_at(fh, place, got, 2, MPI_INTEGER, request)
   call MPI_Wait(request, MPI_STATUS_IGNORE)
   total = total + got(2)
   call MPI_File_seek(fh, place, MPI_SEEK_SET)
   call MPI_File_read_all(fh, got, n, MPI_INTEGER, MPI_STATUS_IGNORE)
   call MPI_File_get_position(fh, behind)
   total = total + int(behind)

   ! The same file in stripes.
   call MPI_Type_get_extent(MPI_INTEGER, lower, extent)
   call MPI_Type_create_resized(MPI_INTEGER, lower, extent*nranks, stripe)
   call MPI_Type_commit(stripe)
   place = int(rank, MPI_OFFSET_KIND)*word
   call MPI_File_set_view(fh, place, MPI_INTEGER, stripe, 'native', MPI_INFO_NULL)
   call MPI_File_get_view(fh, behind, etype, filetype, representation)
   call MPI_Type_free(filetype)
   total = total + int(behind) + len_trim(representation)
   call MPI_File_read_all(fh, got, n, MPI_INTEGER, status)
   total = total + got(n)
   call MPI_File_get_byte_offset(fh, 3_MPI_OFFSET_KIND, behind)
   total = total + int(behind)
   place = 3*2_MPI_OFFSET_KIND**30
   call MPI_File_set_size(fh, place)
   call MPI_File_get_size(fh, file_size)
   total = total + int(file_size/2**20)
   call MPI_File_get_atomicity(fh, flag)
   call MPI_File_set_atomicity(fh, .false.)
   call MPI_File_close(fh)
   call MPI_Type_free(stripe)
   call MPI_Barrier(MPI_COMM_WORLD)
   if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL)
   call MPI_Barrier(MPI_COMM_WORLD)
   call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, fh, code)
   call MPI_Error_class(code, class)
   if (class == MPI_ERR_NO_SUCH_FILE) total = total + 1

   all = 0
   call MPI_Reduce(total, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
   if (rank == 0) print '(a,i0,a,i0)', 'f_rmaio: ', nranks, ' ranks, checksum ', all
   call MPI_Finalize()
end program
