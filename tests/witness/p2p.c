/* Point-to-point, persistent requests, and completion. */
#include "witness.h"

W(Send, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
  (buf, count, datatype, dest, tag, comm),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  )

W(Ssend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
  (buf, count, datatype, dest, tag, comm),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  )

W(Rsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
  (buf, count, datatype, dest, tag, comm),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  )

W(Bsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
  (buf, count, datatype, dest, tag, comm),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  )

W(Buffer_attach, (void *buffer, int size),
  (buffer, size),
  BUF(buffer) INT(size),
  )

W(Buffer_detach, (void *buffer_addr, int *size),
  (buffer_addr, size),
  ,
  OUT_POINTER(buffer_addr) OUT_INT(size))

W(Isend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Issend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Irsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Ibsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Recv, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status),
  (buf, count, datatype, source, tag, comm, status),
  BUF(buf) INT(count) TYPE(datatype) PEER(source) TAG(tag) COMM(comm),
  STATUS(status))

W(Irecv, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request),
  (buf, count, datatype, source, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(source) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Sendrecv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
 int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status),
  (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) PEER(dest) TAG(sendtag) BUF(recvbuf) INT(recvcount) TYPE(recvtype)
   PEER(source) TAG(recvtag) COMM(comm),
  STATUS(status))

W(Sendrecv_replace, (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
 MPI_Comm comm, MPI_Status *status),
  (buf, count, datatype, dest, sendtag, source, recvtag, comm, status),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(sendtag) PEER(source) TAG(recvtag) COMM(comm),
  STATUS(status))

W(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
  (source, tag, comm, status),
  PEER(source) TAG(tag) COMM(comm),
  STATUS(status))

W(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
  (source, tag, comm, flag, status),
  PEER(source) TAG(tag) COMM(comm),
  OUT_BOOL(flag) STATUS_IF(status, *flag))

W(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
  (source, tag, comm, message, status),
  PEER(source) TAG(tag) COMM(comm),
  NEW_MESSAGE(message) STATUS(status))

W(Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
  (source, tag, comm, flag, message, status),
  PEER(source) TAG(tag) COMM(comm),
  OUT_BOOL(flag) STATUS_IF(status, *flag) IF(*flag) NEW_MESSAGE(message))

W(Mrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status),
  (buf, count, datatype, message, status),
  MPI_Message old = *message; BUF(buf) INT(count) TYPE(datatype) MESSAGE_AT(message),
  STATUS(status) FREED(MESSAGE, old))

W(Imrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request),
  (buf, count, datatype, message, request),
  MPI_Message old = *message; BUF(buf) INT(count) TYPE(datatype) MESSAGE_AT(message),
  NEW_REQ(request) FREED(MESSAGE, old))

W(Send_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Ssend_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Rsend_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Bsend_init, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, dest, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Recv_init, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
 MPI_Request *request),
  (buf, count, datatype, source, tag, comm, request),
  BUF(buf) INT(count) TYPE(datatype) PEER(source) TAG(tag) COMM(comm),
  NEW_REQ(request))

W(Start, (MPI_Request *request),
  (request),
  REQ(request),
  REQS_DONE(request, 1))

W(Startall, (int count, MPI_Request array_of_requests[]),
  (count, array_of_requests),
  INT(count) REQS(array_of_requests, count),
  REQS_DONE(array_of_requests, count))

W(Request_free, (MPI_Request *request),
  (request),
  REQ(request),
  REQS_DONE(request, 1))

W(Wait, (MPI_Request *request, MPI_Status *status),
  (request, status),
  REQ(request),
  STATUS(status) REQS_DONE(request, 1))

W(Waitany, (int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status),
  (count, array_of_requests, indx, status),
  INT(count) REQS(array_of_requests, count),
  OUT_UNDEFINABLE(indx) STATUS(status) REQS_DONE(array_of_requests, count))

W(Waitsome, (int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
 MPI_Status *array_of_statuses),
  (incount, array_of_requests, outcount, array_of_indices, array_of_statuses),
  INT(incount) REQS(array_of_requests, incount),
  OUT_UNDEFINABLE(outcount) OUT_INTS(array_of_indices, COMPLETED(outcount)) STATUSES_IF(array_of_statuses, COMPLETED(outcount), 1)
   REQS_DONE(array_of_requests, incount))

W(Waitall, (int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses),
  (count, array_of_requests, array_of_statuses),
  INT(count) REQS(array_of_requests, count),
  STATUSES_IF(array_of_statuses, count, 1) REQS_DONE(array_of_requests, count))

W(Test, (MPI_Request *request, int *flag, MPI_Status *status),
  (request, flag, status),
  REQ(request),
  OUT_BOOL(flag) STATUS_IF(status, *flag) REQS_DONE(request, 1))

W(Testany, (int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status),
  (count, array_of_requests, indx, flag, status),
  INT(count) REQS(array_of_requests, count),
  INDEX_IF(indx, *flag) OUT_BOOL(flag) STATUS_IF(status, *flag) REQS_DONE(array_of_requests, count))

W(Testsome, (int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
 MPI_Status *array_of_statuses),
  (incount, array_of_requests, outcount, array_of_indices, array_of_statuses),
  INT(incount) REQS(array_of_requests, incount),
  OUT_UNDEFINABLE(outcount) OUT_INTS(array_of_indices, COMPLETED(outcount)) STATUSES_IF(array_of_statuses, COMPLETED(outcount), 1)
   REQS_DONE(array_of_requests, incount))

W(Testall, (int count, MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses),
  (count, array_of_requests, flag, array_of_statuses),
  INT(count) REQS(array_of_requests, count),
  OUT_BOOL(flag) STATUSES_IF(array_of_statuses, count, *flag) REQS_DONE(array_of_requests, count))

W(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status),
  (request, flag, status),
  REQ_VALUE(request),
  OUT_BOOL(flag) STATUS_IF(status, *flag))

W(Cancel, (MPI_Request *request),
  (request),
  REQ(request),
  )

W(Test_cancelled, (const MPI_Status *status, int *flag),
  (status, flag),
  STATUS_IN(status),
  OUT_BOOL(flag))

W(Get_count, (const MPI_Status *status, MPI_Datatype datatype, int *count),
  (status, datatype, count),
  STATUS_IN(status) TYPE(datatype),
  OUT_UNDEFINABLE(count))

W(Get_elements, (const MPI_Status *status, MPI_Datatype datatype, int *count),
  (status, datatype, count),
  STATUS_IN(status) TYPE(datatype),
  OUT_UNDEFINABLE(count))
