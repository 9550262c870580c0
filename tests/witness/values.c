/* How each kind of value is written, and what the MPI library says about a communicator. */
#include "witness.h"

#include <string.h>

#define C(name) {name, #name}
#define END {0, NULL}
const struct constant THREAD_LEVELS[] = {
    C(MPI_THREAD_SINGLE), C(MPI_THREAD_FUNNELED), C(MPI_THREAD_SERIALIZED), C(MPI_THREAD_MULTIPLE), END};
const struct constant COMPARISONS[] = {C(MPI_IDENT), C(MPI_CONGRUENT), C(MPI_SIMILAR), C(MPI_UNEQUAL), END};
const struct constant TOPOLOGIES[] = {C(MPI_CART), C(MPI_GRAPH), C(MPI_DIST_GRAPH), C(MPI_UNDEFINED), END};
const struct constant ORDERS[] = {C(MPI_ORDER_C), C(MPI_ORDER_FORTRAN), END};
const struct constant SPLIT_TYPES[] = {C(MPI_COMM_TYPE_SHARED), C(MPI_UNDEFINED), END};
const struct constant DISTRIBUTIONS[] = {
    C(MPI_DISTRIBUTE_BLOCK), C(MPI_DISTRIBUTE_CYCLIC), C(MPI_DISTRIBUTE_NONE), END};
const struct constant DISTRIBUTION_ARGS[] = {C(MPI_DISTRIBUTE_DFLT_DARG), END};
const struct constant ERROR_CLASSES[] = {
    C(MPI_SUCCESS), C(MPI_ERR_BUFFER), C(MPI_ERR_COUNT), C(MPI_ERR_TYPE), C(MPI_ERR_TAG), C(MPI_ERR_COMM),
    C(MPI_ERR_RANK), C(MPI_ERR_REQUEST), C(MPI_ERR_ROOT), C(MPI_ERR_GROUP), C(MPI_ERR_OP), C(MPI_ERR_TOPOLOGY),
    C(MPI_ERR_DIMS), C(MPI_ERR_ARG), C(MPI_ERR_UNKNOWN), C(MPI_ERR_TRUNCATE), C(MPI_ERR_OTHER), C(MPI_ERR_INTERN),
    C(MPI_ERR_IN_STATUS), C(MPI_ERR_PENDING), C(MPI_ERR_ACCESS), C(MPI_ERR_AMODE), C(MPI_ERR_ASSERT),
    C(MPI_ERR_BAD_FILE), C(MPI_ERR_BASE), C(MPI_ERR_CONVERSION), C(MPI_ERR_DISP), C(MPI_ERR_DUP_DATAREP),
    C(MPI_ERR_FILE_EXISTS), C(MPI_ERR_FILE_IN_USE), C(MPI_ERR_FILE), C(MPI_ERR_INFO_KEY), C(MPI_ERR_INFO_NOKEY),
    C(MPI_ERR_INFO_VALUE), C(MPI_ERR_INFO), C(MPI_ERR_IO), C(MPI_ERR_KEYVAL), C(MPI_ERR_LOCKTYPE), C(MPI_ERR_NAME),
    C(MPI_ERR_NO_MEM), C(MPI_ERR_NOT_SAME), C(MPI_ERR_NO_SPACE), C(MPI_ERR_NO_SUCH_FILE), C(MPI_ERR_PORT),
    C(MPI_ERR_QUOTA), C(MPI_ERR_READ_ONLY), C(MPI_ERR_RMA_CONFLICT), C(MPI_ERR_RMA_SYNC), C(MPI_ERR_SERVICE),
    C(MPI_ERR_SIZE), C(MPI_ERR_SPAWN), C(MPI_ERR_UNSUPPORTED_DATAREP), C(MPI_ERR_UNSUPPORTED_OPERATION),
    C(MPI_ERR_WIN), C(MPI_ERR_RMA_RANGE), C(MPI_ERR_RMA_ATTACH), C(MPI_ERR_RMA_FLAVOR), C(MPI_ERR_RMA_SHARED), END};
const struct constant COMBINERS[] = {
    C(MPI_COMBINER_NAMED),         C(MPI_COMBINER_DUP),      C(MPI_COMBINER_CONTIGUOUS), C(MPI_COMBINER_VECTOR),
    C(MPI_COMBINER_HVECTOR),       C(MPI_COMBINER_INDEXED),  C(MPI_COMBINER_HINDEXED),   C(MPI_COMBINER_INDEXED_BLOCK),
    C(MPI_COMBINER_HINDEXED_BLOCK), C(MPI_COMBINER_STRUCT),  C(MPI_COMBINER_SUBARRAY),   C(MPI_COMBINER_DARRAY),
    C(MPI_COMBINER_RESIZED),       END};

void put_int(long value) { put("%ld", value); }
void put_bool(int value) { put(value ? "true" : "false"); }

void put_undefinable(int value)
{
    if (value == MPI_UNDEFINED)
        put("\"MPI_UNDEFINED\"");
    else
        put_int(value);
}

void put_peer(int rank)
{
    if (rank == MPI_PROC_NULL)
        put("\"MPI_PROC_NULL\"");
    else if (rank == MPI_ANY_SOURCE)
        put("\"MPI_ANY_SOURCE\"");
    else if (rank == MPI_ROOT)
        put("\"MPI_ROOT\"");
    else
        put_undefinable(rank);
}

void put_tag(int tag)
{
    if (tag == MPI_ANY_TAG)
        put("\"MPI_ANY_TAG\"");
    else
        put_int(tag);
}

void put_enum(int value, const struct constant *set)
{
    while (set->name && set->value != value)
        set++;
    if (set->name)
        put("\"%s\"", set->name);
    else
        put_int(value);
}

/* In the order of the set, joined by bars. */
void put_mask(int value, const struct constant *set)
{
    int written = 0;
    put("\"");
    for (; set->name; set++)
        if ((value & set->value) == set->value) {
            put("%s%s", written++ ? "|" : "", set->name);
            value &= ~(int)set->value;
        }
    if (value || !written)
        put("%s%d", written ? "|" : "", value);
    put("\"");
}

void put_address(uintptr_t address) { put("\"@%lx\"", (unsigned long)address); }

void put_buffer(const void *address)
{
    if (address == MPI_BOTTOM)
        put("\"MPI_BOTTOM\"");
    else if (address == MPI_IN_PLACE)
        put("\"MPI_IN_PLACE\"");
    else
        put_address((uintptr_t)address);
}

void put_value(const void *value)
{
    if (value)
        put_address((uintptr_t)value);
    else
        put("\"NULL\"");
}

void put_function(void *function) { put("\"fn:%lx\"", (unsigned long)(uintptr_t)function); }

/* A predefined type has no construction to tell and knows its own name. */
void put_type(MPI_Datatype type)
{
    if (type != MPI_DATATYPE_NULL && !known_object(TYPE, HANDLE(type))) {
        int integers, addresses, types, combiner, length;
        ASK(MPI_Type_get_envelope, type, &integers, &addresses, &types, &combiner);
        if (combiner == MPI_COMBINER_NAMED) {
            char name[MPI_MAX_OBJECT_NAME];
            ASK(MPI_Type_get_name, type, name, &length);
            put_string(name, length);
            return;
        }
    }
    put_object(TYPE, HANDLE(type));
}

void put_op(MPI_Op op)
{
    const struct {
        MPI_Op op;
        const char *name;
    } names[] = {C(MPI_MAX),  C(MPI_MIN),  C(MPI_SUM),  C(MPI_PROD), C(MPI_LAND),   C(MPI_BAND),   C(MPI_LOR),
                 C(MPI_BOR),  C(MPI_LXOR), C(MPI_BXOR), C(MPI_MAXLOC), C(MPI_MINLOC), C(MPI_REPLACE), C(MPI_NO_OP)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].op == op) {
            put("\"%s\"", names[i].name);
            return;
        }
    put_object(OP, HANDLE(op));
}

void put_errhandler(MPI_Errhandler handler)
{
    if (handler == MPI_ERRORS_RETURN)
        put("\"MPI_ERRORS_RETURN\"");
    else if (handler == MPI_ERRORS_ARE_FATAL)
        put("\"MPI_ERRORS_ARE_FATAL\"");
    else
        put_object(ERRHANDLER, HANDLE(handler));
}

void put_new_errhandler(MPI_Errhandler handler)
{
    if (handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL)
        put_errhandler(handler);
    else
        put_new_object(ERRHANDLER, HANDLE(handler));
}

void put_status(const MPI_Status *status, int with_error)
{
    MPI_Count bytes = -1;
    int cancelled = 0;
    ASK(MPI_Get_elements_x, status, MPI_BYTE, &bytes);
    ASK(MPI_Test_cancelled, status, &cancelled);
    put("{\"source\":");
    put_peer(status->MPI_SOURCE);
    put(",\"tag\":");
    put_tag(status->MPI_TAG);
    put(",\"bytes\":%lld,\"cancelled\":%s", (long long)bytes, cancelled ? "true" : "false");
    if (with_error)
        put(",\"error\":%d", status->MPI_ERROR);
    put("}");
}

void put_arguments(int *argc, char ***argv)
{
    slot("argc");
    if (argc)
        put_int(*argc);
    else
        put("null");
    slot("argv");
    if (argc && argv && *argv)
        LIST(i, *argc, put_string((*argv)[i], -1));
    else
        put("null");
}

int is_inter(MPI_Comm comm)
{
    int inter = 0;
    ASK(MPI_Comm_test_inter, comm, &inter);
    return inter;
}

int local_size(MPI_Comm comm)
{
    int size = 0;
    ASK(MPI_Comm_size, comm, &size);
    return size;
}

int peers_of(MPI_Comm comm)
{
    int size = 0;
    if (!is_inter(comm))
        return local_size(comm);
    ASK(MPI_Comm_remote_size, comm, &size);
    return size;
}

static int own_rank(MPI_Comm comm)
{
    int rank = -1;
    ASK(MPI_Comm_rank, comm, &rank);
    return rank;
}

static int topology(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED;
    ASK(MPI_Topo_test, comm, &kind);
    return kind;
}

int cart_dims(MPI_Comm comm)
{
    int dims = 0;
    if (topology(comm) == MPI_CART)
        ASK(MPI_Cartdim_get, comm, &dims);
    return dims;
}

static int degree(MPI_Comm comm, int out)
{
    int in_count = 0, out_count = 0, weighted;
    switch (topology(comm)) {
    case MPI_CART:
        return 2 * cart_dims(comm);
    case MPI_GRAPH:
        ASK(MPI_Graph_neighbors_count, comm, own_rank(comm), &in_count);
        return in_count;
    case MPI_DIST_GRAPH:
        ASK(MPI_Dist_graph_neighbors_count, comm, &in_count, &out_count, &weighted);
        return out ? out_count : in_count;
    default:
        return 0;
    }
}

static int less(int a, int b) { return a < b ? a : b; }

/* How much of an array a call fills that has room for more. */
int of_graph(MPI_Comm comm, int edges, int room)
{
    int node_count = 0, edge_count = 0;
    ASK(MPI_Graphdims_get, comm, &node_count, &edge_count);
    return less(edges ? edge_count : node_count, room);
}

int of_cart(MPI_Comm comm, int room) { return less(cart_dims(comm), room); }

int of_neighbors(MPI_Comm comm, int rank, int room)
{
    int count = 0;
    ASK(MPI_Graph_neighbors_count, comm, rank, &count);
    return less(count, room);
}

int of_weights(MPI_Comm comm, int out, int room)
{
    int in_count = 0, out_count = 0, weighted = 0;
    ASK(MPI_Dist_graph_neighbors_count, comm, &in_count, &out_count, &weighted);
    return weighted ? less(out ? out_count : in_count, room) : 0;
}

int of_type(MPI_Datatype type, int part, int room)
{
    int parts[4] = {0, 0, 0, 0}, combiner;
    ASK(MPI_Type_get_envelope, type, &parts[0], &parts[1], &parts[3], &combiner);
    return less(parts[part], room);
}

#if MPI_VERSION >= 4
int of_large_type(MPI_Datatype type, int part, MPI_Count room)
{
    MPI_Count parts[4] = {0, 0, 0, 0};
    int combiner;
    ASK(MPI_Type_get_envelope_c, type, &parts[0], &parts[1], &parts[2], &parts[3], &combiner);
    return (int)(parts[part] < room ? parts[part] : room);
}
#endif

int of_category(int category, const char *call, int room)
{
    int name = 0, description = 0, cvars = 0, pvars = 0, categories = 0;
#if MPI_VERSION >= 4
    if (strstr(call, "_events")) {
        ASK(MPI_T_category_get_num_events, category, &cvars);
        return less(cvars, room);
    }
#endif
    ASK(MPI_T_category_get_info, category, NULL, &name, NULL, &description, &cvars, &pvars, &categories);
    return less(strstr(call, "_cvars") ? cvars : strstr(call, "_pvars") ? pvars : categories, room);
}

int in_degree(MPI_Comm comm) { return degree(comm, 0); }
int out_degree(MPI_Comm comm) { return degree(comm, 1); }

int at_root(int root, MPI_Comm comm) { return is_inter(comm) ? root == MPI_ROOT : root == own_rank(comm); }
int at_leaf(int root, MPI_Comm comm) { return !is_inter(comm) || (root != MPI_ROOT && root != MPI_PROC_NULL); }
int takes_part(int root, MPI_Comm comm) { return !is_inter(comm) || root != MPI_PROC_NULL; }
