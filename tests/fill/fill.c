/* What the generated wrappers of fill need to know of the library: a preload that fills every output of a call with
 * random bytes before the call (see crates/e2e/tests/undefined.rs). FILL_SEED is where they begin; without it, or where it is
 * 0, nothing is filled. With an even one only half of each word is random, and the other half a mark by which it is known
 * wherever it turns up: 0x5A5A, and ZZZZ in texts. Only outermost calls are filled: neither
 * what MPI calls inside a call, which is its own business, nor what a callback of the program calls there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SIZE(name, type) const long size_##name = sizeof(type);
SIZE(Comm, MPI_Comm)
SIZE(Group, MPI_Group)
SIZE(Datatype, MPI_Datatype)
SIZE(Op, MPI_Op)
SIZE(Request, MPI_Request)
SIZE(Win, MPI_Win)
SIZE(File, MPI_File)
SIZE(Info, MPI_Info)
SIZE(Errhandler, MPI_Errhandler)
SIZE(Keyval, int)
SIZE(Message, MPI_Message)
#if MPI_VERSION >= 4
SIZE(Session, MPI_Session)
#else
SIZE(Session, void *)
#endif
SIZE(ToolEnum, MPI_T_enum)
SIZE(ToolCvar, MPI_T_cvar_handle)
SIZE(ToolPvar, MPI_T_pvar_handle)
SIZE(ToolPvarSession, MPI_T_pvar_session)
SIZE(ToolEventRegistration, void *)
SIZE(ToolEventInstance, void *)

const long room_error = MPI_MAX_ERROR_STRING;
const long room_version = MPI_MAX_LIBRARY_VERSION_STRING;
const long room_processor = MPI_MAX_PROCESSOR_NAME;
const long room_object = MPI_MAX_OBJECT_NAME;
const long room_port = MPI_MAX_PORT_NAME;
const long room_key = MPI_MAX_INFO_KEY;
const long room_datarep = MPI_MAX_DATAREP_STRING;

/* The frame of the wrapper of the outermost call; null outside. */
static __thread const char *outermost;
static __thread uint64_t state;
static uint64_t seed;

__attribute__((constructor)) static void begin(void)
{
    const char *word = getenv("FILL_SEED");
    seed = word ? strtoull(word, NULL, 0) : 0;
}

/* A call inside another one is deeper in the stack. One that is not shows that the outermost was left by a jump; until
 * then calls that are deeper than it was are taken to be inside. */
int fill_inside(const void *frame) { return (const char *)frame < outermost; }
int fill_enter(const void *frame)
{
    outermost = frame;
    return seed != 0;
}
void fill_leave(void) { outermost = NULL; }

void *fill_next(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);
    if (!next)
        abort();
    return next;
}

/* xorshift64*; where a thread's state lies makes ranks and threads differ. */
static unsigned char draw(void)
{
    if (!state)
        state = seed * 0x9E3779B97F4A7C15ull ^ (uintptr_t)&state;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned char)(state * 0x2545F4914F6CDD1Dull >> 56);
}

void fill_bytes(long at, long size)
{
    unsigned char *bytes = (unsigned char *)at;
    if (!bytes || bytes == (void *)MPI_UNWEIGHTED || bytes == (void *)MPI_WEIGHTS_EMPTY)
        return;
    for (long i = 0; i < size; i++)
        bytes[i] = seed % 2 == 0 && i % 4 >= 2 ? 0x5A : draw();
}

/* No byte of it ends the string. */
void fill_text(long at, long size)
{
    char *text = (char *)at;
    fill_bytes(at, size);
    for (long i = 0; text && i < size; i++)
        if (!text[i] || seed % 2 == 0)
            text[i] = 'Z';
}

/* MPI promises to leave the error alone unless it returns MPI_ERR_IN_STATUS (4.1, 3.2.5). */
void fill_statuses(long at, long count)
{
    MPI_Status *statuses = (MPI_Status *)at;
    if (statuses == MPI_STATUS_IGNORE || statuses == MPI_STATUSES_IGNORE)
        return;
    for (long i = 0; statuses && i < count; i++) {
        int error = statuses[i].MPI_ERROR;
        fill_bytes((long)&statuses[i], sizeof *statuses);
        statuses[i].MPI_ERROR = error;
    }
}
