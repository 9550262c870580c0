/* Point-to-point of MPI 4: counts of type MPI_Count, MPI_Isendrecv, partitioned communication. */
#include "witness.h"

#if MPI_VERSION >= 4

#define SEND(name)                                                                                                  \
    W(name, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),            \
      (buf, count, datatype, dest, tag, comm),                                                                      \
      BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),                                            \
      )
#define SEND_REQUEST(name)                                                                                          \
    W(name, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,             \
     MPI_Request *request),                                                                                         \
      (buf, count, datatype, dest, tag, comm, request),                                                             \
      BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm),                                            \
      NEW_REQ(request))
#define RECEIVE_REQUEST(name)                                                                                       \
    W(name, (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,                 \
     MPI_Request *request),                                                                                         \
      (buf, count, datatype, source, tag, comm, request),                                                           \
      BUF(buf) INT(count) TYPE(datatype) PEER(source) TAG(tag) COMM(comm),                                          \
      NEW_REQ(request))

SEND(Send_c)
SEND(Ssend_c)
SEND(Rsend_c)
SEND(Bsend_c)
SEND_REQUEST(Isend_c)
SEND_REQUEST(Issend_c)
SEND_REQUEST(Irsend_c)
SEND_REQUEST(Ibsend_c)
SEND_REQUEST(Send_init_c)
SEND_REQUEST(Ssend_init_c)
SEND_REQUEST(Rsend_init_c)
SEND_REQUEST(Bsend_init_c)
RECEIVE_REQUEST(Irecv_c)
RECEIVE_REQUEST(Recv_init_c)

W(Recv_c, (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
 MPI_Status *status),
  (buf, count, datatype, source, tag, comm, status),
  BUF(buf) INT(count) TYPE(datatype) PEER(source) TAG(tag) COMM(comm),
  STATUS(status))

W(Mrecv_c, (void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status),
  (buf, count, datatype, message, status),
  MPI_Message old = *message; BUF(buf) INT(count) TYPE(datatype) MESSAGE_AT(message),
  STATUS(status) FREED(MESSAGE, old))

W(Imrecv_c, (void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request),
  (buf, count, datatype, message, request),
  MPI_Message old = *message; BUF(buf) INT(count) TYPE(datatype) MESSAGE_AT(message),
  NEW_REQ(request) FREED(MESSAGE, old))

#define EXCHANGE(name, count_t, last_t, last, after)                                                                \
    W(name, (const void *sendbuf, count_t sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,   \
     count_t recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, last_t *last),               \
      (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, last),     \
      BUF(sendbuf) INT(sendcount) TYPE(sendtype) PEER(dest) TAG(sendtag) BUF(recvbuf) INT(recvcount)                \
       TYPE(recvtype) PEER(source) TAG(recvtag) COMM(comm),                                                         \
      after)
#define EXCHANGE_IN_PLACE(name, count_t, last_t, last, after)                                                       \
    W(name, (void *buf, count_t count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,       \
     MPI_Comm comm, last_t *last),                                                                                  \
      (buf, count, datatype, dest, sendtag, source, recvtag, comm, last),                                           \
      BUF(buf) INT(count) TYPE(datatype) PEER(dest) TAG(sendtag) PEER(source) TAG(recvtag) COMM(comm),              \
      after)
EXCHANGE(Sendrecv_c, MPI_Count, MPI_Status, status, STATUS(status))
EXCHANGE(Isendrecv, int, MPI_Request, request, NEW_REQ(request))
EXCHANGE(Isendrecv_c, MPI_Count, MPI_Request, request, NEW_REQ(request))
EXCHANGE_IN_PLACE(Sendrecv_replace_c, MPI_Count, MPI_Status, status, STATUS(status))
EXCHANGE_IN_PLACE(Isendrecv_replace, int, MPI_Request, request, NEW_REQ(request))
EXCHANGE_IN_PLACE(Isendrecv_replace_c, MPI_Count, MPI_Request, request, NEW_REQ(request))

W(Buffer_attach_c, (void *buffer, MPI_Count size),
  (buffer, size),
  BUF(buffer) INT(size),
  )

W(Buffer_detach_c, (void *buffer_addr, MPI_Count *size),
  (buffer_addr, size),
  ,
  OUT_POINTER(buffer_addr) OUT_INT(size))

W(Get_count_c, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count),
  (status, datatype, count),
  STATUS_IN(status) TYPE(datatype),
  OUT_UNDEFINABLE(count))

W(Get_elements_c, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count),
  (status, datatype, count),
  STATUS_IN(status) TYPE(datatype),
  OUT_UNDEFINABLE(count))

W(Psend_init, (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
 MPI_Comm comm, MPI_Info info, MPI_Request *request),
  (buf, partitions, count, datatype, dest, tag, comm, info, request),
  BUF(buf) INT(partitions) INT(count) TYPE(datatype) PEER(dest) TAG(tag) COMM(comm) INFO(info),
  NEW_REQ(request))

W(Precv_init, (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
 MPI_Comm comm, MPI_Info info, MPI_Request *request),
  (buf, partitions, count, datatype, source, tag, comm, info, request),
  BUF(buf) INT(partitions) INT(count) TYPE(datatype) PEER(source) TAG(tag) COMM(comm) INFO(info),
  NEW_REQ(request))

W(Pready, (int partition, MPI_Request request),
  (partition, request),
  INT(partition) REQ_VALUE(request),
  )

W(Pready_range, (int partition_low, int partition_high, MPI_Request request),
  (partition_low, partition_high, request),
  INT(partition_low) INT(partition_high) REQ_VALUE(request),
  )

/* MPICH 4.0 forgets that the partitions are const. */
W(Pready_list, (int length, int array_of_partitions[], MPI_Request request),
  (length, array_of_partitions, request),
  INT(length) INTS(array_of_partitions, length) REQ_VALUE(request),
  )

W(Parrived, (MPI_Request request, int partition, int *flag),
  (request, partition, flag),
  REQ_VALUE(request) INT(partition),
  OUT_BOOL(flag))

#endif
