/* Serial numbers for handles: bound where an object is made, never reused.
 *
 * A communicator, type, group, ... is known by its handle. A library may return one handle for the same object again
 * (MPICH's MPI_Comm_group), so a handle that is made while it is live keeps its serial and is counted.
 *
 * A request handle can stand for many operations at once, so a request is known by the address of the program's
 * variable and the handle. With WITNESS_FORTRAN set (Open MPI's Fortran layer passes temporaries) the address says
 * nothing: a request is known by its handle where only one live request has it, and is otherwise written as "req:@h",
 * one of those with handle number h. */
#define _GNU_SOURCE
#include "witness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAMES[KINDS] = {"comm", "type",    "req", "group", "op",    "info", "errh", "keyval",
                                         "msg",  "session", "win", "file",  "tenum", "cvar", "pvar", "pvars"};

struct entry {
    uintptr_t handle;
    const void *at; /* requests: the program's variable */
    int serial, references, handle_number;
};

/* What one thread makes another may use, so there is one set of tables. Whatever is called from elsewhere takes the
 * lock. */
static struct {
    struct entry *entries;
    int count, room, made;
} tables[KINDS];
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void leave(int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&lock);
}
/* Held until the function returns. */
#define LOCKED                                                                                                      \
    __attribute__((cleanup(leave), unused)) int held = 0;                                                           \
    pthread_mutex_lock(&lock);

/* The serial of the object of each kind that this thread named last: when it has been freed, its handle may be another
 * thread's already. */
static __thread int named[KINDS];

/* Requests as they stood before each call the thread is in. */
static __thread struct {
    MPI_Request *handles;
    int count, room;
} requests_before[8];
#define before requests_before[witness_depth - 1]

/* Communicators under construction by MPI_Comm_idup. */
static struct later {
    MPI_Comm *at;
    int serial;
    struct later *next;
} *later;

static struct entry *find(enum kind kind, uintptr_t handle)
{
    for (int i = tables[kind].count; i-- > 0;)
        if (tables[kind].entries[i].handle == handle)
            return &tables[kind].entries[i];
    return NULL;
}

static struct entry *add(enum kind kind, uintptr_t handle, const void *at, int serial)
{
    if (tables[kind].count == tables[kind].room) {
        tables[kind].room = 2 * tables[kind].room + 16;
        tables[kind].entries = realloc(tables[kind].entries, sizeof(struct entry) * (size_t)tables[kind].room);
    }
    struct entry *entry = &tables[kind].entries[tables[kind].count++];
    *entry = (struct entry){handle, at, serial, 1, 0};
    return entry;
}

static void drop(enum kind kind, struct entry *entry)
{
    struct entry *last = &tables[kind].entries[--tables[kind].count];
    memmove(entry, entry + 1, (size_t)((char *)last - (char *)entry));
}

static void settle_later(void)
{
    for (struct later **at = &later; *at;) {
        struct later *one = *at;
        if (*one->at == MPI_COMM_NULL || find(COMM, HANDLE(*one->at))) {
            at = &one->next;
            continue;
        }
        add(COMM, HANDLE(*one->at), NULL, one->serial);
        *at = one->next;
        free(one);
    }
}

static const char *constant(enum kind kind, uintptr_t handle)
{
    static __thread struct {
        enum kind kind;
        uintptr_t handle;
        const char *name;
    } names[32];
    if (!names[0].name) {
        int n = 0;
#define NAMED(kind_, handle_, name_) names[n].kind = kind_, names[n].handle = HANDLE(handle_), names[n++].name = name_
        NAMED(COMM, MPI_COMM_WORLD, "world");
        NAMED(COMM, MPI_COMM_SELF, "self");
        NAMED(COMM, MPI_COMM_NULL, "MPI_COMM_NULL");
        NAMED(GROUP, MPI_GROUP_NULL, "MPI_GROUP_NULL");
        NAMED(GROUP, MPI_GROUP_EMPTY, "MPI_GROUP_EMPTY");
        NAMED(INFO, MPI_INFO_NULL, "MPI_INFO_NULL");
        NAMED(INFO, MPI_INFO_ENV, "MPI_INFO_ENV");
        NAMED(KEYVAL, MPI_KEYVAL_INVALID, "MPI_KEYVAL_INVALID");
        NAMED(KEYVAL, MPI_TAG_UB, "MPI_TAG_UB");
        NAMED(KEYVAL, MPI_HOST, "MPI_HOST");
        NAMED(KEYVAL, MPI_IO, "MPI_IO");
        NAMED(KEYVAL, MPI_WTIME_IS_GLOBAL, "MPI_WTIME_IS_GLOBAL");
        NAMED(KEYVAL, MPI_APPNUM, "MPI_APPNUM");
        NAMED(KEYVAL, MPI_UNIVERSE_SIZE, "MPI_UNIVERSE_SIZE");
        NAMED(KEYVAL, MPI_LASTUSEDCODE, "MPI_LASTUSEDCODE");
        NAMED(KEYVAL, MPI_WIN_BASE, "MPI_WIN_BASE");
        NAMED(KEYVAL, MPI_WIN_SIZE, "MPI_WIN_SIZE");
        NAMED(KEYVAL, MPI_WIN_DISP_UNIT, "MPI_WIN_DISP_UNIT");
        NAMED(KEYVAL, MPI_WIN_CREATE_FLAVOR, "MPI_WIN_CREATE_FLAVOR");
        NAMED(KEYVAL, MPI_WIN_MODEL, "MPI_WIN_MODEL");
        NAMED(WIN, MPI_WIN_NULL, "MPI_WIN_NULL");
        NAMED(FILE_, MPI_FILE_NULL, "MPI_FILE_NULL");
        NAMED(MESSAGE, MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL");
        NAMED(MESSAGE, MPI_MESSAGE_NO_PROC, "MPI_MESSAGE_NO_PROC");
        NAMED(REQUEST, MPI_REQUEST_NULL, "MPI_REQUEST_NULL");
        NAMED(TYPE, MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL");
        NAMED(OP, MPI_OP_NULL, "MPI_OP_NULL");
        NAMED(ERRHANDLER, MPI_ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL");
#if MPI_VERSION >= 4
        NAMED(SESSION, MPI_SESSION_NULL, "MPI_SESSION_NULL");
#endif
    }
    for (int i = 0; names[i].name; i++)
        if (names[i].kind == kind && names[i].handle == handle)
            return names[i].name;
    return NULL;
}

static int fortran(void)
{
    static int known; /* 1: no, 2: yes */
    if (!known)
        known = getenv("WITNESS_FORTRAN") ? 2 : 1;
    return known == 2;
}

int known_object(enum kind kind, uintptr_t handle)
{
    LOCKED
    return find(kind, handle) != NULL;
}

void put_object(enum kind kind, uintptr_t handle)
{
    LOCKED
    const char *name = constant(kind, handle);
    if (name) {
        put("\"%s\"", name);
        return;
    }
    if (kind == COMM)
        settle_later();
    struct entry *entry = find(kind, handle);
    if (entry) {
        named[kind] = entry->serial;
        put("\"%s:%d\"", NAMES[kind], entry->serial);
    } else if (fortran() && (kind == KEYVAL || kind == ERRHANDLER || kind == OP)) {
        /* Fortran layers make these without a call of C that could be seen. */
        entry = add(kind, handle, NULL, tables[kind].made++);
        put("\"%s:%d@first\"", NAMES[kind], entry->serial);
    } else {
        put("\"%s:unknown\"", NAMES[kind]);
    }
}

/* A handle that one thread is about to free may be made anew by another: `unique` where one handle is one object. */
static void put_made(enum kind kind, uintptr_t handle, int unique)
{
    LOCKED
    if (!constant(kind, handle)) {
        struct entry *entry = find(kind, handle);
        if (entry && !unique)
            entry->references++;
        else
            add(kind, handle, NULL, tables[kind].made++);
    }
    put_object(kind, handle);
}

void put_new_object(enum kind kind, uintptr_t handle)
{
    put_made(kind, handle, kind == COMM || kind == INFO || kind == OP || kind == WIN || kind == FILE_);
}

void put_new_type(MPI_Datatype type) { put_made(TYPE, HANDLE(type), 1); }

void forget_object(enum kind kind, uintptr_t handle)
{
    LOCKED
    for (int i = tables[kind].count; i-- > 0;) {
        struct entry *entry = &tables[kind].entries[i];
        if (entry->handle == handle && entry->serial == named[kind]) {
            if (--entry->references == 0)
                drop(kind, entry);
            return;
        }
    }
}

void put_comm_later(MPI_Comm *comm)
{
    LOCKED
    struct later *one = malloc(sizeof *one);
    *one = (struct later){comm, tables[COMM].made++, later};
    later = one;
    put("\"comm:%d\"", one->serial);
    settle_later();
}

/* A small number for each distinct handle value. */
static int handle_number(uintptr_t handle)
{
    static uintptr_t *seen;
    static int count, room;
    for (int i = 0; i < count; i++)
        if (seen[i] == handle)
            return i;
    if (count == room) {
        room = 2 * room + 16;
        seen = realloc(seen, sizeof *seen * (size_t)room);
    }
    seen[count] = handle;
    return count++;
}

static struct entry *find_request(const MPI_Request *at, MPI_Request handle, int addressed, int *several)
{
    struct entry *found = NULL;
    int by_address = addressed && !fortran();
    *several = 0;
    for (int i = tables[REQUEST].count; i-- > 0;) {
        struct entry *entry = &tables[REQUEST].entries[i];
        if (entry->handle != HANDLE(handle) || (by_address && entry->at != at))
            continue;
        /* `references` counts the doubt: once requests of one handle were mixed up, they stay so until none is left. */
        *several |= found != NULL || entry->references > 1;
        found = entry;
    }
    return found;
}

void put_request(const MPI_Request *at, MPI_Request handle, int addressed)
{
    LOCKED
    const char *name = constant(REQUEST, HANDLE(handle));
    int several;
    if (name) {
        put("\"%s\"", name);
        return;
    }
    struct entry *entry = find_request(at, handle, addressed, &several);
    if (!entry)
        put("\"req:unknown\"");
    else if (several)
        put("\"req:@%d\"", entry->handle_number);
    else
        put("\"req:%d\"", entry->serial);
}

void put_new_request(MPI_Request *at)
{
    LOCKED
    const char *name = constant(REQUEST, HANDLE(*at));
    if (name) {
        put("\"%s\"", name);
        return;
    }
    struct entry *entry = add(REQUEST, HANDLE(*at), at, tables[REQUEST].made++);
    entry->handle_number = handle_number(HANDLE(*at));
    put("\"req:%d@%d\"", entry->serial, entry->handle_number);
}

void remember_requests(const MPI_Request *requests, int n)
{
    if (n > before.room) {
        before.room = 2 * n;
        before.handles = realloc(before.handles, sizeof *before.handles * (size_t)before.room);
    }
    before.count = n > 0 ? n : 0;
    if (n > 0)
        memcpy(before.handles, requests, sizeof *requests * (size_t)n);
}

void forget_completed(const MPI_Request *requests, int n)
{
    LOCKED
    for (int i = 0; i < n && i < before.count; i++) {
        if (before.handles[i] == MPI_REQUEST_NULL || requests[i] != MPI_REQUEST_NULL)
            continue;
        int several;
        struct entry *entry = find_request(&requests[i], before.handles[i], 1, &several);
        if (!entry)
            continue;
        uintptr_t handle = entry->handle;
        drop(REQUEST, entry);
        for (int k = 0; several && k < tables[REQUEST].count; k++)
            if (tables[REQUEST].entries[k].handle == handle)
                tables[REQUEST].entries[k].references = 2;
    }
}
