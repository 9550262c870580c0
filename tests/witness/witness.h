/* The witness: a second, independent account of what a program asked of MPI.
 *
 * A preloaded library, compiled once per MPI library against that library's own mpi.h, that logs every call it
 * knows with all its arguments as one JSON object a line. The tests hold `refrain dump --format json` against it.
 * It shares no code with Refrain, asks its own questions of the MPI library directly (never through the next
 * preload), and favours being obviously right over being fast.
 *
 * Objects get serial numbers that are never reused ("comm:5"); memory is the raw address ("@7ffc0010").
 */
#ifndef WITNESS_H
#define WITNESS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef OPEN_MPI
/* The library's predefined objects. Weak, so that the witness also loads into the launcher, which has none. */
#pragma weak ompi_message_no_proc
#pragma weak ompi_message_null
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_errhandler_null
#pragma weak ompi_mpi_errors_are_fatal
#pragma weak ompi_mpi_errors_return
#pragma weak ompi_mpi_file_null
#pragma weak ompi_mpi_group_empty
#pragma weak ompi_mpi_group_null
#pragma weak ompi_mpi_info_env
#pragma weak ompi_mpi_info_null
#pragma weak ompi_mpi_op_band
#pragma weak ompi_mpi_op_bor
#pragma weak ompi_mpi_op_bxor
#pragma weak ompi_mpi_op_land
#pragma weak ompi_mpi_op_lor
#pragma weak ompi_mpi_op_lxor
#pragma weak ompi_mpi_op_max
#pragma weak ompi_mpi_op_maxloc
#pragma weak ompi_mpi_op_min
#pragma weak ompi_mpi_op_minloc
#pragma weak ompi_mpi_op_no_op
#pragma weak ompi_mpi_op_null
#pragma weak ompi_mpi_op_prod
#pragma weak ompi_mpi_op_replace
#pragma weak ompi_mpi_op_sum
#pragma weak ompi_mpi_win_null
#pragma weak ompi_request_null
#else
#pragma weak MPI_UNWEIGHTED
#pragma weak MPI_WEIGHTS_EMPTY
#endif

/* log.c: one line per call. Arguments are put into named slots in any order (inputs before the call, outputs after
 * it) and written in the order of the function's parameter list. */
extern __thread int witness_depth;        /* how many calls of the program this thread is in: callbacks make more */
extern __thread int witness_entry;        /* 0: called as MPI_X, 1: as PMPI_X */
extern __thread void *witness_caller;     /* where the call returns to */
extern __thread int witness_significant;  /* 0: the next slots are not significant on this rank: null */
extern __thread int witness_ok;           /* the call succeeded, so its outputs were written */
extern __thread int witness_program;      /* the depth at which MPI has called a function of the program */
int from_library(void *caller);           /* that code is the MPI library's own */
/* Whether MPI's layer for Fortran makes that call inside a function of another name: nobody asked for it. */
int on_the_way(void *caller, const char *name);
void *stand_in(void *function);           /* what MPI is given to call in its place */
void line_begin(void);
void time_begin(void); /* the clock's time around the call: nanoseconds of CLOCK_MONOTONIC */
void time_end(void);
void line_end(const char *call, const char *params, int has_result, long result);
void slot(const char *name);
void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
void put_string(const char *text, int length);
void *next_function(const char *name);    /* of the next library in the preload order */
void *library_function(const char *name); /* of the MPI library itself */

/* Asks the MPI library itself. */
#define ASK(name, ...) ((__typeof__(&P##name))library_function("P" #name))(__VA_ARGS__)

/* objects.c: serial numbers for handles. */
enum kind { COMM, TYPE, REQUEST, GROUP, OP, INFO, ERRHANDLER, KEYVAL, MESSAGE, SESSION, WIN, FILE_, TOOL_ENUM, TOOL_CVAR,
            TOOL_PVAR, TOOL_SESSION, KINDS };
int known_object(enum kind kind, uintptr_t handle); /* made, and not freed yet */
void put_object(enum kind kind, uintptr_t handle);
void put_new_object(enum kind kind, uintptr_t handle);
void put_new_type(MPI_Datatype type); /* not one that may be known already, as those that a type was made from */
void forget_object(enum kind kind, uintptr_t handle);
void put_comm_later(MPI_Comm *comm);
void put_request(const MPI_Request *at, MPI_Request handle, int addressed);
void put_new_request(MPI_Request *at);
void remember_requests(const MPI_Request *requests, int n);
void forget_completed(const MPI_Request *requests, int n);

/* values.c: how each kind of value is written. */
struct constant { long value; const char *name; };
extern const struct constant THREAD_LEVELS[], COMPARISONS[], TOPOLOGIES[], ORDERS[], SPLIT_TYPES[], COMBINERS[],
    DISTRIBUTIONS[], DISTRIBUTION_ARGS[], ERROR_CLASSES[];
void put_int(long value);
void put_bool(int value);
void put_undefinable(int value);
void put_peer(int rank);
void put_tag(int tag);
void put_enum(int value, const struct constant *set);
void put_mask(int value, const struct constant *set);
void put_buffer(const void *address);
void put_address(uintptr_t address);
/* What MPI only hands back: null and the small numbers mean nothing to it. */
void put_value(const void *value);
void put_function(void *function);
void put_type(MPI_Datatype type);
void put_op(MPI_Op op);
void put_errhandler(MPI_Errhandler handler);
void put_new_errhandler(MPI_Errhandler handler);
void put_status(const MPI_Status *status, int with_error);
void put_arguments(int *argc, char ***argv);

/* The shape of a communicator as its collectives see it. */
int peers_of(MPI_Comm comm);              /* ranks a collective addresses: the remote ones of an inter-communicator */
int local_size(MPI_Comm comm);
int cart_dims(MPI_Comm comm);
int in_degree(MPI_Comm comm);
/* How much of an array a call fills that has room for more: of a graph's nodes or edges, of a rank's neighbours, of weights,
 * of what a type was made with (integers, addresses, large counts, types), of a category's members. */
int of_graph(MPI_Comm comm, int edges, int room);
int of_cart(MPI_Comm comm, int room);
int of_neighbors(MPI_Comm comm, int rank, int room);
int of_weights(MPI_Comm comm, int out, int room);
int of_type(MPI_Datatype type, int part, int room);
int of_category(int category, const char *call, int room);
#if MPI_VERSION >= 4
int of_large_type(MPI_Datatype type, int part, MPI_Count room);
#endif
int out_degree(MPI_Comm comm);
int is_inter(MPI_Comm comm);
int at_root(int root, MPI_Comm comm);     /* the root's own arguments count here */
int at_leaf(int root, MPI_Comm comm);     /* the arguments of every rank that the root talks to count here */
int takes_part(int root, MPI_Comm comm);  /* neither of the two, in an inter-communicator, where root is PROC_NULL */

#define HANDLE(h) ((uintptr_t)(h))

/* W(name, parameters, arguments, before, after): a function to watch. `before` fills the slots of inputs, `after`
 * those of outputs. Both MPI_X and PMPI_X are defined and go on to the same name of the next library, so that a
 * call that enters as PMPI_X (Open MPI's Fortran) stays one. What the MPI library calls inside a call goes straight back
 * to it; what a callback of the program calls there is the program's, and its line comes before the outer one's.
 * `result` is NUMBER, CODE (an error code) or NOTHING (not logged). */
enum result { NOTHING, CODE, NUMBER };
#define WATCH(type, name, params, args, before, after, result)                                                      \
    static type witness_##name params                                                                               \
    {                                                                                                               \
        static type(*next_mpi) params, (*next_pmpi) params, (*library) params;                                      \
        int profiled = witness_entry;                                                                               \
        if ((witness_depth != witness_program && from_library(witness_caller))                                      \
            || on_the_way(witness_caller, #name)) {                                                                 \
            if (!library)                                                                                           \
                library = library_function("PMPI_" #name);                                                          \
            return library args;                                                                                    \
        }                                                                                                           \
        if (profiled && !next_pmpi)                                                                                 \
            next_pmpi = next_function("PMPI_" #name);                                                               \
        if (!profiled && !next_mpi)                                                                                 \
            next_mpi = next_function("MPI_" #name);                                                                 \
        line_begin();                                                                                               \
        before;                                                                                                     \
        time_begin();                                                                                               \
        type witness_result = (profiled ? next_pmpi : next_mpi)args;                                                \
        time_end();                                                                                                 \
        witness_significant = 1;                                                                                    \
        witness_ok = result != CODE || witness_result == MPI_SUCCESS;                                               \
        after;                                                                                                      \
        line_end("MPI_" #name, #args, result != NOTHING, (long)witness_result);                                     \
        return witness_result;                                                                                      \
    }                                                                                                               \
    __attribute__((visibility("default"))) type MPI_##name params                                                   \
    {                                                                                                               \
        witness_entry = 0;                                                                                          \
        witness_caller = __builtin_return_address(0);                                                               \
        return witness_##name args;                                                                                 \
    }                                                                                                               \
    __attribute__((visibility("default"))) type PMPI_##name params                                                  \
    {                                                                                                               \
        witness_entry = 1;                                                                                          \
        witness_caller = __builtin_return_address(0);                                                               \
        return witness_##name args;                                                                                 \
    }
#define W(name, params, args, before, after) WATCH(int, name, params, args, before, after, CODE)

/* Slots of inputs. */
/* No bare commas in these macros: they travel as arguments of other macros. */
#define SLOT(x, action)                                                                                             \
    slot(#x);                                                                                                       \
    witness_significant ? (void)(action) : put("null");
#define BUF(x) SLOT(x, put_buffer(x))
#define VALUE(x) SLOT(x, put_value(x))
#define INT(x) SLOT(x, put_int(x))
#define UNDEFINABLE(x) SLOT(x, put_undefinable(x))
#define BOOL(x) SLOT(x, put_bool(x))
#define PEER(x) SLOT(x, put_peer(x))
#define TAG(x) SLOT(x, put_tag(x))
#define ENUM(x, set) SLOT(x, put_enum(x, set))
#define TYPE(x) SLOT(x, put_type(x))
#define OP(x) SLOT(x, put_op(x))
#define COMM(x) SLOT(x, put_object(COMM, HANDLE(x)))
#define GROUP(x) SLOT(x, put_object(GROUP, HANDLE(x)))
#define INFO(x) SLOT(x, put_object(INFO, HANDLE(x)))
#define SESSION(x) SLOT(x, put_object(SESSION, HANDLE(x)))
#define KEYVAL(x) SLOT(x, put_object(KEYVAL, HANDLE(x)))
#define WIN(x) SLOT(x, put_object(WIN, HANDLE(x)))
#define FILE_HANDLE(x) SLOT(x, put_object(FILE_, HANDLE(x)))
#define ERRH(x) SLOT(x, put_errhandler(x))
#define STRING(x) SLOT(x, put_string(x, -1))
/* Of what MPI calls, where a call returns to says nothing: at the end of a function it may be a jump. */
#define FUNCTION(x) SLOT(x, put_function((void *)(x))) x = (__typeof__(x))stand_in((void *)(x));
#define STATUS_IN(x) SLOT(x, put_status(x, 0))

/* Handles behind a pointer, read before the call. */
#define REQ(x) SLOT(x, put_request(x, *(x), 1)) remember_requests(x, 1);
#define REQ_VALUE(x) SLOT(x, put_request(NULL, x, 0))
#define REQS(x, n) SLOT(x, LIST(i, n, put_request(&(x)[i], (x)[i], 1))) remember_requests(x, n);
#define COMM_AT(x) SLOT(x, put_object(COMM, HANDLE(*(x))))
#define GROUP_AT(x) SLOT(x, put_object(GROUP, HANDLE(*(x))))
#define TYPE_AT(x) SLOT(x, put_type(*(x)))
#define OP_AT(x) SLOT(x, put_op(*(x)))
#define INFO_AT(x) SLOT(x, put_object(INFO, HANDLE(*(x))))
#define ERRH_AT(x) SLOT(x, put_errhandler(*(x)))
#define KEYVAL_AT(x) SLOT(x, put_object(KEYVAL, HANDLE(*(x))))
#define WIN_AT(x) SLOT(x, put_object(WIN, HANDLE(*(x))))
#define FILE_AT(x) SLOT(x, put_object(FILE_, HANDLE(*(x))))
#define MESSAGE_AT(x) SLOT(x, put_object(MESSAGE, HANDLE(*(x))))
/* After the call: requests that became MPI_REQUEST_NULL are over. `x` was given to REQ or REQS before. */
#define REQS_DONE(x, n) forget_completed(x, n);

/* Arrays. */
#define LIST(i, n, action)                                                                                          \
    ({                                                                                                              \
        put("[");                                                                                                   \
        for (int i = 0; i < (n); i++) {                                                                             \
            if (i)                                                                                                  \
                put(",");                                                                                           \
            action;                                                                                                 \
        }                                                                                                           \
        put("]");                                                                                                   \
    })
#define INTS(x, n) SLOT(x, LIST(i, n, put_int((x)[i])))
#define BOOLS(x, n) SLOT(x, LIST(i, n, put_bool((x)[i])))
#define PEERS(x, n) SLOT(x, LIST(i, n, put_peer((x)[i])))
#define TYPES(x, n) SLOT(x, LIST(i, n, put_type((x)[i])))
#define ENUMS(x, n, set) SLOT(x, LIST(i, n, put_enum((x)[i], set)))
/* Weights of a distributed graph: MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY are addresses. */
#define WEIGHTS(x, n)                                                                                               \
    SLOT(x, (x) == MPI_UNWEIGHTED      ? put("\"MPI_UNWEIGHTED\"")                                                  \
            : (x) == MPI_WEIGHTS_EMPTY ? put("\"MPI_WEIGHTS_EMPTY\"")                                               \
                                       : LIST(i, n, put_int((x)[i])))

/* From here on to the next IF or ALWAYS, slots count only where the condition holds. */
#define IF(condition) witness_significant = (condition);
#define ALWAYS witness_significant = 1;

/* Slots of outputs: null where the call failed. */
#define OUT(x, action)                                                                                              \
    slot(#x);                                                                                                       \
    witness_ok && witness_significant ? (void)(action) : put("null");
#define OUT_INT(x) OUT(x, put_int(*(x)))
#define OUT_UNDEFINABLE(x) OUT(x, put_undefinable(*(x)))
#define OUT_BOOL(x) OUT(x, put_bool(*(x)))
#define OUT_PEER(x) OUT(x, put_peer(*(x)))
#define OUT_ENUM(x, set) OUT(x, put_enum(*(x), set))
#define OUT_INTS(x, n) OUT(x, LIST(i, n, put_int((x)[i])))
#define OUT_BOOLS(x, n) OUT(x, LIST(i, n, put_bool((x)[i])))
#define OUT_PEERS(x, n) OUT(x, LIST(i, n, put_peer((x)[i])))
#define OUT_WEIGHTS(x, n)                                                                                           \
    OUT(x, (x) == MPI_UNWEIGHTED      ? put("\"MPI_UNWEIGHTED\"")                                                   \
           : (x) == MPI_WEIGHTS_EMPTY ? put("\"MPI_WEIGHTS_EMPTY\"")                                                \
                                      : LIST(i, n, put_int((x)[i])))
#define OUT_STRING(x) OUT(x, put_string(x, -1))
#define OUT_ADDRESS(x) OUT(x, put_address((uintptr_t)*(x)))
#define OUT_POINTER(x) OUT(x, put_value(*(void **)(x)))
#define OUT_TYPE(x) OUT(x, put_type(*(x)))
/* One more reference, to be freed by itself: also where a handler is asked for. */
#define NEW_ERRH(x) OUT(x, put_new_errhandler(*(x)))
#define NEW_COMM(x) OUT(x, put_new_object(COMM, HANDLE(*(x))))
#define NEW_COMM_LATER(x) OUT(x, put_comm_later(x))
#define NEW_GROUP(x) OUT(x, put_new_object(GROUP, HANDLE(*(x))))
#define NEW_TYPE(x) OUT(x, put_new_type(*(x)))
#define NEW_OP(x) OUT(x, put_new_object(OP, HANDLE(*(x))))
#define NEW_INFO(x) OUT(x, put_new_object(INFO, HANDLE(*(x))))
#define NEW_KEYVAL(x) OUT(x, put_new_object(KEYVAL, HANDLE(*(x))))
#define NEW_SESSION(x) OUT(x, put_new_object(SESSION, HANDLE(*(x))))
#define NEW_WIN(x) OUT(x, put_new_object(WIN, HANDLE(*(x))))
#define NEW_FILE(x) OUT(x, put_new_object(FILE_, HANDLE(*(x))))
#define NEW_MESSAGE(x) OUT(x, put_new_object(MESSAGE, HANDLE(*(x))))
#define NEW_REQ(x) OUT(x, put_new_request(x))
/* A handle read before the call and freed by it. */
#define FREED(kind, handle)                                                                                         \
    if (witness_ok)                                                                                                 \
        forget_object(kind, HANDLE(handle));

/* An index that says nothing where the flag is false: it may be told or left out. */
#define INDEX_IF(x, flag)                                                                                           \
    slot(#x);                                                                                                       \
    !witness_ok ? put("null") : (flag) ? put_undefinable(*(x)) : put("{\"maybe\":\"MPI_UNDEFINED\"}");
/* How many entries MPI_Waitsome and MPI_Testsome wrote. */
#define COMPLETED(outcount) (*(outcount) == MPI_UNDEFINED ? 0 : *(outcount))

/* Numbers that a call reads and writes: both are logged, the earlier one from `x##_before`. */
#define INOUT_INT(x)                                                                                                \
    slot(#x);                                                                                                       \
    put("{\"in\":%ld,\"out\":", (long)x##_before);                                                                         \
    witness_ok ? put_int(*(x)) : put("null");                                                                       \
    put("}");
#define INOUT_INTS(x, n)                                                                                            \
    slot(#x);                                                                                                       \
    put("{\"in\":");                                                                                                \
    LIST(i, n, put_int(x##_before[i]));                                                                             \
    put(",\"out\":");                                                                                               \
    witness_ok ? LIST(i, n, put_int((x)[i])) : put("null");                                                         \
    put("}");

/* Statuses. Where the call did not write one, the program's wish to ignore it may still be told. */
#define STATUS_IF(x, written)                                                                                       \
    slot(#x);                                                                                                       \
    if ((x) == MPI_STATUS_IGNORE)                                                                                   \
        put(witness_ok && (written) ? "\"MPI_STATUS_IGNORE\"" : "{\"maybe\":\"MPI_STATUS_IGNORE\"}");               \
    else if (witness_ok && (written))                                                                               \
        put_status(x, 0);                                                                                           \
    else                                                                                                            \
        put("null");
#define STATUS(x) STATUS_IF(x, 1)
#define STATUSES_IF(x, n, written)                                                                                  \
    {                                                                                                               \
        int class = MPI_SUCCESS;                                                                                    \
        int wrote = (written);                                                                                      \
        ASK(MPI_Error_class, witness_result, &class);                                                               \
        wrote = wrote && (witness_ok || class == MPI_ERR_IN_STATUS);                                                \
        slot(#x);                                                                                                   \
        if ((x) == MPI_STATUSES_IGNORE)                                                                             \
            put(wrote ? "\"MPI_STATUSES_IGNORE\"" : "{\"maybe\":\"MPI_STATUSES_IGNORE\"}");                         \
        else if (wrote)                                                                                             \
            LIST(i, n, put_status(&(x)[i], class == MPI_ERR_IN_STATUS));                                            \
        else                                                                                                        \
            put("null");                                                                                            \
    }

#endif
